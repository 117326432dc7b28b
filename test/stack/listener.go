package stack

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Listener stands before an API server and hears what is asked about Secrets, and
// all that is answered to anything. An APIProxy keeps neither the Accept header nor
// the answers.
type Listener struct {
	*httptest.Server
	forward *httputil.ReverseProxy

	mu      sync.Mutex
	before  func(*http.Request)
	secrets []SecretsRequest
	// answers are kept apart: those of several watches come in turns.
	answers []*bytes.Buffer
}

// SecretsRequest is one request about Secrets.
type SecretsRequest struct {
	Method, Accept string
	DryRun, Watch  bool
}

// String is the method and what it is about.
func (r SecretsRequest) String() string {
	switch {
	case r.DryRun:
		return r.Method + " (dry run)"
	case r.Watch:
		return r.Method + " (watch)"
	}
	return r.Method
}

// MetadataOnly says that nothing else is asked for.
func (r SecretsRequest) MetadataOnly() bool {
	for i, accept := range strings.Split(r.Accept, ",") {
		// client-go adds plain JSON for servers older than v1.15, last.
		if !strings.Contains(accept, "as=PartialObjectMetadata") && (i == 0 || accept != "application/json") {
			return false
		}
	}
	return true
}

// Listen starts a listener before m's API server. Clients speak plain HTTP to it
// and are admin to the API server.
func Listen(m API) (*Listener, error) {
	l, err := newListener(m.RESTConfig())
	if err != nil {
		return nil, err
	}
	l.Server = httptest.NewServer(l)
	return l, nil
}

// ListenTLS starts a listener that is to its clients what m's API server is: they
// speak TLS to it, trust its CA, and are to the API server who their token says.
func ListenTLS(m API) (*Listener, error) {
	l, err := newListener(rest.AnonymousClientConfig(m.RESTConfig()))
	if err != nil {
		return nil, err
	}
	l.Server = httptest.NewUnstartedServer(l)
	l.EnableHTTP2 = true
	l.StartTLS()
	return l, nil
}

func newListener(config *rest.Config) (*Listener, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	l := &Listener{before: func(*http.Request) {}}
	l.forward = &httputil.ReverseProxy{
		Transport: transport,
		// The client shall see that there is no answer, and nothing else.
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		FlushInterval: -1, // watches must not wait for a full buffer
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			// The transport then asks for compression itself, and undoes it.
			r.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: func(r *http.Response) error {
			answer := &bytes.Buffer{}
			l.mu.Lock()
			l.answers = append(l.answers, answer)
			l.mu.Unlock()
			r.Body = overheard{io.TeeReader(r.Body, ear{l, answer}), r.Body}
			return nil
		},
	}
	return l, nil
}

// CA is the certificate that clients of ListenTLS trust, as PEM.
func (l *Listener) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.Certificate().Raw})
}

// Before has f run with each request that comes from now on, before it is forwarded.
func (l *Listener) Before(f func(*http.Request)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = f
}

// ServeHTTP forwards one request.
func (l *Listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	before := l.before
	if slices.Contains(strings.Split(r.URL.Path, "/"), "secrets") {
		query := r.URL.Query()
		l.secrets = append(l.secrets, SecretsRequest{r.Method, r.Header.Get("Accept"), query.Has("dryRun"), query.Has("watch")})
	}
	l.mu.Unlock()
	before(r)
	l.forward.ServeHTTP(w, r)
}

// Heard says whether an answer carried a text, as it is or as JSON writes bytes, and
// what was asked about Secrets; then it forgets.
func (l *Listener) Heard(text string) (bool, []SecretsRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	encoded := base64.StdEncoding.EncodeToString([]byte(text))
	found := slices.ContainsFunc(l.answers, func(answer *bytes.Buffer) bool {
		return bytes.Contains(answer.Bytes(), []byte(text)) || bytes.Contains(answer.Bytes(), []byte(encoded))
	})
	asked := l.secrets
	l.answers, l.secrets = nil, nil
	return found, asked
}

type overheard struct {
	io.Reader
	io.Closer
}

// ear takes in the parts of one answer.
type ear struct {
	of     *Listener
	answer *bytes.Buffer
}

// Write takes in a part.
func (e ear) Write(data []byte) (int, error) {
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	return e.answer.Write(data)
}

// FillSecrets gives every Secret of a namespace these data, and none else.
func FillSecrets(ctx context.Context, m API, namespace, data string) error {
	secrets := &corev1.SecretList{}
	if err := m.Client().List(ctx, secrets, client.InNamespace(namespace)); err != nil {
		return err
	}
	if len(secrets.Items) == 0 {
		return fmt.Errorf("there are no Secrets in namespace %s", namespace)
	}
	for i := range secrets.Items {
		secrets.Items[i].Data = map[string][]byte{"value": []byte(data)}
		if err := m.Client().Update(ctx, &secrets.Items[i]); err != nil {
			return err
		}
	}
	return nil
}
