package pivot

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
)

// Only what does not answer, and only if the user says so, is gone.
func TestUnlessGone(t *testing.T) {
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	forbids := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"not you","code":403}`))
	}))
	t.Cleanup(forbids.Close)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	const way = "move-hook resume --other-side-is-gone"
	for name, c := range map[string]struct {
		ctx  context.Context
		host string
		gone bool
		// says is in the error; empty: it is taken for gone.
		says string
	}{
		"away":                        {t.Context(), away.URL, false, way},
		"away, and said to be":        {t.Context(), away.URL, true, ""},
		"answers with a refusal":      {t.Context(), forbids.URL, false, way},
		"said to be gone and answers": {t.Context(), forbids.URL, true, "something answers there"},
		"interrupted":                 {cancelled, away.URL, true, "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, err := management.OpenConfig(&rest.Config{Host: c.host}, "other")
			if err != nil {
				t.Fatal(err)
			}
			var warned []string
			got, err := unlessGone(c.ctx, cluster, c.gone, "fleet", "resume", func(u flow.Update) { warned = append(warned, u.Message) })
			switch {
			case got != nil:
				t.Error("it is looked at")
			case c.says == "" && (err != nil || len(warned) != 1 || !strings.Contains(warned[0], "taken for gone")):
				t.Errorf("error %v, warnings %q", err, warned)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("error %v", err)
			}
		})
	}
}
