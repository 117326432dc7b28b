package bare_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/stack"
)

// confidential is what every Secret of the test holds.
const confidential = "bytes-that-no-answer-may-carry"

// listener stands before the API server and hears every answer. stack.APIProxy
// keeps neither the Accept header nor what was answered.
type listener struct {
	*httptest.Server
	mu      sync.Mutex
	secrets []ask
	answers bytes.Buffer
}

// ask is one request for Secrets.
type ask struct {
	method, accept string
	dryRun, watch  bool
}

func listen(t *testing.T) *listener {
	t.Helper()
	cfg := world.RESTConfig()
	target := stack.Must(url.Parse(cfg.Host))(t)
	l := &listener{}
	forward := &httputil.ReverseProxy{
		Transport:     stack.Must(rest.TransportFor(cfg))(t),
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			// The transport then asks for compression itself, and undoes it.
			r.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: func(r *http.Response) error {
			r.Body = overheard{io.TeeReader(r.Body, l), r.Body}
			return nil
		},
	}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, part := range strings.Split(r.URL.Path, "/") {
			if part == "secrets" {
				query := r.URL.Query()
				l.mu.Lock()
				l.secrets = append(l.secrets, ask{r.Method, r.Header.Get("Accept"), query.Has("dryRun"), query.Has("watch")})
				l.mu.Unlock()
			}
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(l.Close)
	return l
}

type overheard struct {
	io.Reader
	io.Closer
}

// Write takes in a part of an answer.
func (l *listener) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answers.Write(data)
}

// heard says whether an answer carried the bytes, and what was asked; then it forgets.
func (l *listener) heard() (bool, []ask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, asked := l.answers.Bytes(), l.secrets
	found := bytes.Contains(all, []byte(confidential)) ||
		bytes.Contains(all, []byte(base64.StdEncoding.EncodeToString([]byte(confidential))))
	l.answers.Reset()
	l.secrets = nil
	return found, asked
}

func TestSecrets_AreReadAsMetadataOnly(t *testing.T) {
	const cluster, namespace = "c-00000", stack.SyntheticNamespace
	stack.Must(stack.Synthetic(t.Context(), world.Management, 1))(t)
	secrets := &corev1.SecretList{}
	if err := world.Client().List(t.Context(), secrets, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(secrets.Items) == 0 {
		t.Fatal("there are no Secrets")
	}
	for i := range secrets.Items {
		secrets.Items[i].Data = map[string][]byte{"value": []byte(confidential)}
		if err := world.Client().Update(t.Context(), &secrets.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := stack.Provisioned(t.Context(), world, namespace); err != nil {
		t.Fatal(err)
	}
	l := listen(t)

	// The listener hears Secrets where they are read whole, in both encodings.
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		whole := stack.Must(client.New(&rest.Config{Host: l.URL, ContentConfig: rest.ContentConfig{ContentType: contentType}}, client.Options{}))(t)
		if err := whole.List(t.Context(), &corev1.SecretList{}, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		if found, asked := l.heard(); !found || len(asked) != 1 {
			t.Fatalf("%s: the listener is deaf: %v", contentType, asked)
		}
	}

	kubeconfig := serverKubeconfig(t, l.URL)
	at := []string{"--kubeconfig", kubeconfig, "-n", namespace}
	check := func(want func(ask) bool, code int, args ...string) {
		t.Helper()
		r := hook(t, code, append(args, at...)...)
		found, asked := l.heard()
		if found {
			t.Errorf("data of a Secret was answered to\n%s", r)
		}
		var wanted int
		for _, a := range asked {
			// client-go adds plain JSON for servers older than v1.15, last.
			for i, accept := range strings.Split(a.accept, ",") {
				if !strings.Contains(accept, "as=PartialObjectMetadata") && (i == 0 || accept != "application/json") {
					t.Errorf("%s: %s of Secrets accepts %q", strings.Join(args, " "), a.method, a.accept)
				}
			}
			if want(a) {
				wanted++
			}
		}
		if wanted == 0 {
			t.Errorf("%s: among %d requests for Secrets is none of those that this is about: nothing is proven", strings.Join(args, " "), len(asked))
		}
	}
	list := func(a ask) bool { return a.method == http.MethodGet && !a.watch }
	check(list, 0, "graph")
	check(list, 0, "graph", "-o", "json")
	check(list, 0, "verify")
	// After a pivot, Secrets have the UIDs of the source: that post repairs.
	hook(t, 0, append([]string{"pre"}, at...)...)
	makeStale(t, namespace, cluster+"-ca")
	l.heard()
	check(func(a ask) bool { return a.method == http.MethodPatch && a.dryRun }, 0, "post", "--dry-run", "--timeout", "1m")
	check(func(a ask) bool { return a.watch }, 0, "post", "--dry-run", "--timeout", "1m")
}

// makeStale gives the owners of a Secret the UIDs of other copies.
func makeStale(t *testing.T, namespace, name string) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := world.Client().Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	for i := range secret.OwnerReferences {
		secret.OwnerReferences[i].UID = "of-another-copy"
	}
	if len(secret.OwnerReferences) == 0 || secret.Labels[clusterv1.ClusterNameLabel] == "" {
		t.Fatalf("Secret %s has no owner or does not say its Cluster", name)
	}
	if err := world.Client().Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}
