package stack

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Request is one call that went through a proxy.
type Request struct {
	Time      time.Time
	Verb      string // get, list, watch, create, update, patch, delete, deletecollection
	Group     string
	Resource  string // with a subresource: "machines/status"
	Namespace string
	Name      string
	DryRun    bool
	Body      string // of what is not a read; the first 64 KiB
	Status    int    // of the answer; 0 when there was none
}

// String is "patch machines fleet/c1-cp-0".
func (r Request) String() string {
	text := r.Verb + " " + r.Resource + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
	if r.DryRun {
		text += " (dry run)"
	}
	return strings.TrimRight(text, " /")
}

// Mutates says whether the request changes an object. Dry runs do not, nor do
// reviews, which are created only to be answered.
func (r Request) Mutates() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return !r.DryRun && r.Group != "authorization.k8s.io" && r.Group != "authentication.k8s.io"
	default:
		return false
	}
}

// APIProxy stands before an API server, remembers what is asked of it, and can
// cut its clients off at a chosen write, as a killed process or a lost network would.
type APIProxy struct {
	dir     string
	address string
	config  *rest.Config
	forward *httputil.ReverseProxy
	info    *request.RequestInfoFactory

	mu       sync.Mutex
	server   *http.Server
	requests []*Request
	writes   int // since CutAt
	cutAt    int
	cutWhen  Moment
	cutVerb  string        // of the writes that count; empty is all
	cutBy    *Request      // the write that was cut at
	cut      chan struct{} // closed when the clients are cut off
	faults   faults
}

// Moment is when a proxy cuts, seen from the write that it cuts at.
type Moment int

// Before: the write does not reach the API server. After: it takes effect, and
// the client does not hear of it.
const (
	Before Moment = iota
	After
)

// Proxy starts a proxy before m's API server. Clients speak plain HTTP to it
// and are admin to the API server.
func Proxy(m API) (*APIProxy, error) {
	config := m.RESTConfig()
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	p := &APIProxy{
		address: localAddress(0),
		info:    &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")},
		cut:     make(chan struct{}),
	}
	p.forward = &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // watches must not wait for a full buffer
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		// The API server is away: the client shall see just that, and no answer.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	if p.dir, err = os.MkdirTemp("", "move-hook-stack-proxy-"); err != nil {
		return nil, err
	}
	if err := p.listen(); err != nil {
		return nil, err
	}
	p.config = &rest.Config{Host: "http://" + p.address, QPS: -1}
	return p, p.writeKubeconfig(m.Name())
}

// listen takes any free port the first time, and the same one again after a cut.
func (p *APIProxy) listen() error {
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		return err
	}
	p.address = listener.Addr().String()
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	p.server = server
	go func() { _ = server.Serve(listener) }()
	return nil
}

func (p *APIProxy) writeKubeconfig(name string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: p.config.Host}
	config.AuthInfos["proxy"] = &clientcmdapi.AuthInfo{}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: "proxy"}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, p.Kubeconfig())
}

// Close ends the proxy and every connection through it.
func (p *APIProxy) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.server.Close()
	_ = os.RemoveAll(p.dir)
}

// Kubeconfig is the path of a kubeconfig whose server is the proxy.
func (p *APIProxy) Kubeconfig() string { return filepath.Join(p.dir, "kubeconfig") }

// RESTConfig is for a client in this process.
func (p *APIProxy) RESTConfig() *rest.Config { return rest.CopyConfig(p.config) }

// Requests are all that came, in order, discovery and health left out.
func (p *APIProxy) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	requests := make([]Request, 0, len(p.requests))
	for _, r := range p.requests {
		requests = append(requests, *r)
	}
	return requests
}

// Mutating are the requests that change an object.
func (p *APIProxy) Mutating() []Request {
	return slices.DeleteFunc(p.Requests(), func(r Request) bool { return !r.Mutates() })
}

// Counts says how often each "verb resource" was asked for.
func (p *APIProxy) Counts() map[string]int {
	counts := map[string]int{}
	for _, r := range p.Requests() {
		counts[r.Verb+" "+r.Resource]++
	}
	return counts
}

// Forget empties the memory.
func (p *APIProxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = nil
}

// CutAt has the proxy cut its clients off at the n-th write from now (1: the
// next), and returns a channel that is closed when that has happened. From
// then on connections are refused, until Heal. Refused, and not accepted and
// dropped: that, client-go would take for a hiccup and repeat reads for ten seconds.
func (p *APIProxy) CutAt(n int, when Moment) <-chan struct{} { return p.CutAtVerb("", n, when) }

// CutAtVerb is CutAt where only the writes with this verb count; empty is all.
func (p *APIProxy) CutAtVerb(verb string, n int, when Moment) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes, p.cutAt, p.cutWhen, p.cutVerb, p.cutBy, p.cut = 0, n, when, verb, nil, make(chan struct{})
	return p.cut
}

// WasCutAt is the write that it was cut at since the last CutAt; empty if it was not.
func (p *APIProxy) WasCutAt() Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cutBy == nil {
		return Request{}
	}
	return *p.cutBy
}

// Cut has the proxy cut its clients off now, until Heal.
func (p *APIProxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.cut: // it is cut already
	default:
		p.cutNow()
	}
}

// Heal lets everything through again and forgets an outstanding CutAt.
func (p *APIProxy) Heal() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutAt = 0
	select {
	case <-p.cut:
		p.cut = make(chan struct{})
		return p.listen()
	default:
		return nil
	}
}

func (p *APIProxy) cutNow() {
	close(p.cut)
	_ = p.server.Close()
}

// ServeHTTP forwards one request and remembers it.
func (p *APIProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, err := p.info.NewRequestInfo(r)
	if err != nil || !info.IsResourceRequest {
		if p.isCut() {
			panic(http.ErrAbortHandler)
		}
		if fault := p.draw(r, "get"); fault != "" {
			p.fail(w, r, &Request{}, fault)
			return
		}
		p.forward.ServeHTTP(w, r)
		return
	}
	asked := &Request{
		Time: time.Now(), Verb: info.Verb, Group: info.APIGroup, Resource: info.Resource, Namespace: info.Namespace, Name: info.Name,
		DryRun: r.URL.Query().Has("dryRun"),
	}
	if info.Subresource != "" {
		asked.Resource += "/" + info.Subresource
	}
	if asked.Body, err = peek(r); err != nil {
		panic(http.ErrAbortHandler)
	}
	if strings.HasPrefix(asked.Verb, "delete") && dryRunIn(asked.Body) {
		asked.DryRun = true
	}
	if asked.Name == "" && asked.Verb == "create" {
		asked.Name = nameIn(asked.Body)
	}
	cutBefore, cutAfter := p.arrive(asked)
	if cutBefore {
		panic(http.ErrAbortHandler)
	}
	if cutAfter {
		p.forwardUnheard(r)
		panic(http.ErrAbortHandler)
	}
	recorder := &statusRecorder{ResponseWriter: w}
	defer func() { p.answered(asked, recorder.status) }()
	if fault := p.draw(r, asked.Verb); fault != "" {
		p.fail(recorder, r, asked, fault)
		return
	}
	p.forward.ServeHTTP(recorder, r)
}

// arrive remembers a request and says whether the clients are, or are now, cut off.
func (p *APIProxy) arrive(asked *Request) (before, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.cut:
		return true, false // it is not remembered: it came to nobody
	default:
	}
	p.requests = append(p.requests, asked)
	counts := asked.Mutates() && (p.cutVerb == "" || p.cutVerb == asked.Verb)
	if counts {
		p.writes++
	}
	if p.cutAt == 0 || !counts || p.writes != p.cutAt {
		return false, false
	}
	p.cutBy = asked
	if p.cutWhen == Before {
		p.cutNow()
	}
	return p.cutWhen == Before, p.cutWhen == After
}

// forwardUnheard lets the write take effect, then cuts.
func (p *APIProxy) forwardUnheard(r *http.Request) {
	p.forward.ServeHTTP(&nowhere{header: http.Header{}}, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutNow()
}

func (p *APIProxy) isCut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.cut:
		return true
	default:
		return false
	}
}

func (p *APIProxy) answered(asked *Request, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked.Status = status
}

// peek reads the body of what is not a read, and puts it back.
func peek(r *http.Request) (string, error) {
	if r.Method == http.MethodGet || r.Body == nil {
		return "", nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", errors.Join(err, r.Body.Close())
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return string(body[:min(len(body), 64<<10)]), nil
}

// dryRunIn says whether the options of a deletion, which come in its body, are for a
// dry run.
func dryRunIn(body string) bool {
	options := &metav1.DeleteOptions{}
	if o, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(body), nil, options); err == nil {
		if decoded, ok := o.(*metav1.DeleteOptions); ok {
			options = decoded
		}
	} else {
		_ = json.Unmarshal([]byte(body), options) // else there are none
	}
	return len(options.DryRun) > 0
}

// nameIn finds the name of the object that is created: it is not in the path.
// Built-in kinds may come as protobuf; others are JSON.
func nameIn(body string) string {
	object := &metav1.PartialObjectMetadata{}
	if builtIn, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(body), nil, nil); err == nil {
		if m, err := meta.Accessor(builtIn); err == nil {
			object.Name, object.GenerateName = m.GetName(), m.GetGenerateName()
		}
	} else {
		_ = json.Unmarshal([]byte(body), object) // else there is none
	}
	return cmp.Or(object.Name, object.GenerateName)
}

// statusRecorder notes the status of an answer on its way.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the status.
func (s *statusRecorder) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap gives the reverse proxy the Flush of the real one.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// nowhere is for an answer that nobody shall hear.
type nowhere struct{ header http.Header }

// Header is written to and never sent.
func (n *nowhere) Header() http.Header { return n.header }

// Write drops the data.
func (n *nowhere) Write(data []byte) (int, error) { return len(data), nil }

// WriteHeader drops the status.
func (n *nowhere) WriteHeader(int) {}
