package scenario

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Counter stands in front of an API server and remembers what passes.
type Counter struct {
	server *httptest.Server
	dir    string

	mu       sync.Mutex
	total    int
	mutating []string
}

// Count puts a Counter in front of a management cluster.
func Count(m Management) (*Counter, error) {
	cfg := m.RESTConfig()
	upstream, err := url.Parse(cfg.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "move-hook-count-")
	if err != nil {
		return nil, err
	}
	c := &Counter{dir: dir}
	proxy := httputil.NewSingleHostReverseProxy(upstream)
	proxy.Transport = transport
	proxy.FlushInterval = -1 // watches must not wait for a full buffer
	c.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.total++
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			c.mutating = append(c.mutating, r.Method+" "+r.URL.Path)
		}
		c.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	return c, nil
}

// Kubeconfig writes a kubeconfig that leads through the Counter and gives its path.
func (c *Counter) Kubeconfig() (string, error) {
	path := filepath.Join(c.dir, "kubeconfig")
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["counted"] = &clientcmdapi.Cluster{Server: c.server.URL}
	cfg.Contexts["counted"] = &clientcmdapi.Context{Cluster: "counted"}
	cfg.CurrentContext = "counted"
	if err := clientcmd.WriteToFile(*cfg, path); err != nil {
		return "", fmt.Errorf("writing the counting kubeconfig: %w", err)
	}
	return path, nil
}

// Total is the number of requests so far.
func (c *Counter) Total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// Mutating gives the requests that were no reads, as "PATCH /apis/…".
func (c *Counter) Mutating() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.mutating...)
}

// Stop ends the Counter.
func (c *Counter) Stop() {
	c.server.CloseClientConnections()
	c.server.Close()
	_ = os.RemoveAll(c.dir)
}
