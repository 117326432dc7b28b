package policy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/move-hook/move-hook/internal/management"
)

// old is an API server of another age: it serves MutatingAdmissionPolicies in one
// version, or not at all, and remembers what it was sent.
type old struct {
	version string
	seen    []string
	bodies  []map[string]any
}

// ServeHTTP answers discovery, and stores nothing.
func (o *old) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer := func(code int, body any) {
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(body); err != nil {
			panic(err)
		}
	}
	type m = map[string]any
	version := m{"groupVersion": group + "/" + o.version, "version": o.version}
	switch path := r.URL.Path; {
	case path == "/api":
		answer(http.StatusOK, m{"kind": "APIVersions", "versions": []string{}})
	case path == "/apis" && o.version == "":
		answer(http.StatusOK, m{"kind": "APIGroupList", "apiVersion": "v1", "groups": []m{}})
	case path == "/apis":
		answer(http.StatusOK, m{"kind": "APIGroupList", "apiVersion": "v1", "groups": []m{{"name": group, "versions": []m{version}, "preferredVersion": version}}})
	case path == "/apis/"+group+"/"+o.version:
		answer(http.StatusOK, m{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group + "/" + o.version,
			"resources": []m{{"name": "mutatingadmissionpolicies", "kind": "MutatingAdmissionPolicy", "verbs": []string{"list"}}}})
	case strings.HasSuffix(path, "/customresourcedefinitions"):
		answer(http.StatusOK, m{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": []m{}})
	case r.Method == http.MethodPost && strings.HasPrefix(path, "/apis/"+group):
		o.seen = append(o.seen, r.Method+" "+path)
		text, err := io.ReadAll(r.Body)
		var body m
		if err != nil || json.Unmarshal(text, &body) != nil {
			panic(fmt.Sprint(err, string(text)))
		}
		o.bodies = append(o.bodies, body)
		answer(http.StatusCreated, body)
	default:
		answer(http.StatusNotFound, m{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})
	}
}

func (o *old) store(t *testing.T, dryRun bool) *Store {
	t.Helper()
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	c, err := management.OpenConfig(&rest.Config{Host: server.URL}, "an older server")
	if err != nil {
		t.Fatal(err)
	}
	return New(c, dryRun)
}

func TestArm_InV1beta1WhereOnlyThatIsServed(t *testing.T) {
	server := &old{version: "v1beta1"}
	armed, err := server.store(t, true).Arm(t.Context(), ArmOptions{Expires: time.Hour})
	if err != nil || len(armed.Writes) != 4 {
		t.Fatalf("%q, %v", armed.Writes, err)
	}
	policies := 0
	for i, path := range server.seen {
		if !strings.HasPrefix(path, "POST /apis/"+group+"/v1beta1/mutatingadmissionpolic") {
			continue
		}
		policies++
		if v := server.bodies[i]["apiVersion"]; v != group+"/v1beta1" {
			t.Errorf("%s: apiVersion %v", path, v)
		}
	}
	if policies != 4 {
		t.Errorf("%q", server.seen)
	}
}

func TestArm_WhereTheAPIIsNotServed(t *testing.T) {
	for _, version := range []string{"", "v1alpha1"} {
		s := (&old{version: version}).store(t, false)
		_, errArm := s.Arm(t.Context(), ArmOptions{Expires: time.Hour})
		_, errGuard := s.Guard(t.Context())
		for what, err := range map[string]error{"MutatingAdmissionPolicy": errArm, "ValidatingAdmissionPolicy": errGuard} {
			want := what + " of " + group + " on an older server: the API server does not serve it"
			if !Unavailable(err) || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}
