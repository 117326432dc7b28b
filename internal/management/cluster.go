package management

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/move-hook/move-hook/pkg/graph"
)

// FieldManager is the name under which the API server knows our writes.
const FieldManager = "move-hook"

// requestTimeout bounds every request but a watch: a server that accepts and
// never answers must not hold a pass for ever.
const requestTimeout = 60 * time.Second

// Options say which management cluster to open.
type Options struct {
	// Kubeconfig is a path; empty means KUBECONFIG, then the default file, then
	// (in a pod) the in-cluster configuration.
	Kubeconfig string
	// Context is a context of the kubeconfig; empty means its current one.
	Context string
	// UserAgent is sent with every request; empty means client-go's.
	UserAgent string
	// Wrap may wrap the transport (tests count requests with it); nil changes nothing.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Cluster is an open management cluster. It is safe for concurrent use.
type Cluster struct {
	name      string
	host      string
	namespace string
	inPod     bool

	discovery discovery.DiscoveryInterface
	metadata  metadata.Interface
	dynamic   dynamic.Interface
	clientset kubernetes.Interface
	// raw reads lists whose items are decoded one by one.
	raw   rest.Interface
	clock *clock

	mu    sync.Mutex
	kinds *Discovery
	// said is the last Event about each object.
	said map[graph.ID]string
}

// Open reads a kubeconfig. It talks to no server yet. The error names the file
// and the context.
func Open(o Options) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	name, inPod := "the default kubeconfig", false
	if o.Kubeconfig != "" {
		if _, err := os.Stat(o.Kubeconfig); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("kubeconfig %s does not exist: give the path of one", o.Kubeconfig)
		}
		rules.ExplicitPath = o.Kubeconfig
		name = "kubeconfig " + o.Kubeconfig
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context})
	if o.Context != "" {
		name += ", context " + o.Context
	}
	cfg, err := loader.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("%s says nothing of a cluster: give --kubeconfig, or set KUBECONFIG", name)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if raw, err := loader.RawConfig(); err == nil && o.Context == "" {
		switch {
		case raw.CurrentContext != "":
			name += ", context " + raw.CurrentContext
		case len(raw.Clusters) == 0:
			name, inPod = "the cluster of this pod", true
		}
	}
	cfg.UserAgent = cmp.Or(o.UserAgent, cfg.UserAgent)
	if o.Wrap != nil {
		cfg.Wrap(o.Wrap)
	}
	c, err := OpenConfig(cfg, name)
	if err != nil {
		return nil, err
	}
	c.inPod = inPod
	if namespace, _, err := loader.Namespace(); err == nil {
		c.namespace = namespace
	}
	return c, nil
}

// OpenConfig opens a management cluster by a client configuration that the caller
// has; name is how messages call it. cfg is copied.
func OpenConfig(cfg *rest.Config, name string) (*Cluster, error) {
	cfg = rest.CopyConfig(cfg)
	// The server's own fairness limits us; a client-side limit only hides who waits.
	cfg.QPS, cfg.Burst, cfg.RateLimiter = -1, 0, nil
	cfg.WarningHandler = rest.NoWarnings{}
	c := &Cluster{name: name, host: cfg.Host, namespace: metav1.NamespaceDefault, clock: &clock{}, said: map[graph.ID]string{}}
	cfg.Wrap(c.clock.wrap)
	cfg.Wrap((&patience{}).wrap)
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", name, err)
	}
	// Clients that never watch need no context to end a request that nobody answers.
	bounded := *httpClient
	bounded.Timeout = requestTimeout
	raw := rest.CopyConfig(cfg)
	raw.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	var errs [5]error
	c.discovery, errs[0] = discovery.NewDiscoveryClientForConfigAndClient(cfg, &bounded)
	c.metadata, errs[1] = metadata.NewForConfigAndClient(metadata.ConfigFor(cfg), httpClient)
	c.dynamic, errs[2] = dynamic.NewForConfigAndClient(cfg, httpClient)
	c.clientset, errs[3] = kubernetes.NewForConfigAndClient(cfg, &bounded)
	c.raw, errs[4] = rest.UnversionedRESTClientForConfigAndClient(raw, &bounded)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("opening %s: %w", name, err)
	}
	return c, nil
}

// Name is how messages call the management cluster: its kubeconfig and context.
func (c *Cluster) Name() string { return c.name }

// Host is the address of its API server.
func (c *Cluster) Host() string { return c.host }

// Namespace is the one of the kubeconfig's context, or of the pod; "default"
// where neither says.
func (c *Cluster) Namespace() string { return c.namespace }

// HomeNamespace is where something of ours lives that is of no Cluster: in a pod
// on this management cluster its own namespace, else kube-system.
func (c *Cluster) HomeNamespace() string {
	if c.inPod {
		return c.namespace
	}
	return metav1.NamespaceSystem
}

// Clientset gives the typed client for the few kinds that are ours: Leases,
// Events and the record's ConfigMaps.
func (c *Cluster) Clientset() kubernetes.Interface { return c.clientset }

// Now is the time by the API server's clock, as far as its answers told: what is
// compared with creationTimestamps must not come from a clock that runs ahead.
func (c *Cluster) Now() time.Time { return time.Now().Add(c.clock.skew()) }
