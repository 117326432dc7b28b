package management

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// flaky is a server that fails a number of requests and answers with their body then.
func flaky(t *testing.T, fails int, how func(w http.ResponseWriter)) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/well" {
			return
		}
		body, _ := io.ReadAll(r.Body)
		if int(asked.Add(1)) <= fails {
			how(w)
			return
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

func status(code int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { w.WriteHeader(code) }
}

func abort(http.ResponseWriter) { panic(http.ErrAbortHandler) }

func TestPatience(t *testing.T) {
	for name, c := range map[string]struct {
		fails int
		how   func(http.ResponseWriter)
		// heard: the server has answered something before.
		heard bool
		path  string
		want  int // 0: an error instead of an answer
		asked int64
	}{
		"a lost connection is tried again with the whole body": {fails: 5, how: abort, heard: true, want: 200, asked: 6},
		"so is what a server cannot answer now":                {fails: 3, how: status(503), heard: true, want: 200, asked: 4},
		"but not for long":                                     {fails: 9, how: status(500), heard: true, want: 500, asked: tries},
		"a server that never answered is soon given up":        {fails: 9, how: abort, asked: tries},
		"a refusal is believed at once":                        {fails: 9, how: status(403), heard: true, want: 403, asked: 1},
		"a conflict is the caller's matter":                    {fails: 9, how: status(409), heard: true, want: 409, asked: 1},
		"so is what is too much": {fails: 9, heard: true, want: 503, asked: 1, how: func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
		}},
		"and a watch": {fails: 9, how: status(503), heard: true, path: "?watch=true", want: 503, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, asked := flaky(t, c.fails, c.how)
			client := &http.Client{Transport: (&patience{}).wrap(http.DefaultTransport)}
			if c.heard {
				answer, err := client.Get(url + "/well")
				if err != nil {
					t.Fatal(err)
				}
				_ = answer.Body.Close()
			}
			answer, err := client.Post(url+c.path, "text/plain", strings.NewReader("the body"))
			switch {
			case err != nil && c.want != 0, err == nil && c.want != answer.StatusCode:
				t.Fatalf("%v, %v; want status %d", answer, err, c.want)
			case err == nil:
				body, _ := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				if c.want == 200 && string(body) != "the body" {
					t.Errorf("the last request had the body %q", body)
				}
			}
			if asked.Load() != c.asked {
				t.Errorf("asked %d times, want %d", asked.Load(), c.asked)
			}
		})
	}
}

func TestPatience_AWatchWhoseAnswerWasLostIsGivenUpOneThatIsQuietIsNot(t *testing.T) {
	t.Parallel()
	const limit = 200 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/lost" {
			<-r.Context().Done()
			return
		}
		_ = http.NewResponseController(w).Flush()
		time.Sleep(2 * limit)
		_, _ = io.WriteString(w, "an event")
	}))
	t.Cleanup(server.Close)
	ask := func(path string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		return answeredWithin(limit, http.DefaultTransport, r)
	}
	if answer, err := ask("/lost"); err == nil {
		_ = answer.Body.Close()
		t.Error("a lost answer is taken for one")
	} else if !strings.Contains(err.Error(), "no answer to a watch") {
		t.Errorf("the error is %q", err)
	}
	answer, err := ask("/quiet")
	if err != nil {
		t.Fatal(err)
	}
	if event, err := io.ReadAll(answer.Body); err != nil || string(event) != "an event" {
		t.Errorf("a quiet watch ends with %q, %v", event, err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Error(err)
	}
}
