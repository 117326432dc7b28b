package stack

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options say how to start a management cluster.
type Options struct {
	// Name is for logs, kubeconfigs and messages; default "management".
	Name string
	// Bare starts an API server with every CRD of Cluster API and nothing
	// else: no controllers, no webhooks, no conversion between versions.
	Bare bool
	// GarbageCollector runs kube-controller-manager in bare mode too.
	GarbageCollector bool
	// Cloud is where machines live; default: a cloud that stops with this
	// management cluster. Without meaning in bare mode.
	Cloud *Cloud
	// LogDir is where every process writes its log; default: a new folder
	// below os.TempDir, removed by Stop unless KeepLogs was called.
	LogDir string
	// APIServerArgs are added to the command line of kube-apiserver.
	APIServerArgs []string
	// Progress gets a line per program that has to be built; default: none.
	Progress io.Writer
}

// Management is a running management cluster: etcd, kube-apiserver,
// kube-controller-manager and upstream's providers, each a process of its own
// that ends with this one, however this one ends.
type Management struct {
	name    string
	options Options
	tools   *tools
	dir     string // data and credentials; removed by Stop
	logs    *logFolder
	ports   *portBlock
	ca      *authority
	server  apiServer
	config  *rest.Config
	client  client.WithWatch
	http    *http.Client // for health endpoints

	ownCloud  *Cloud
	providers []installed

	mu        sync.Mutex
	processes []*process
	managers  []*process
	inCloud   bool // the cloud runs controllers for this cluster
}

// API is what observing a management cluster takes; the helpers that observe
// serve any other one as well.
type API interface {
	Name() string
	// RESTConfig and Client are an administrator's.
	RESTConfig() *rest.Config
	Client() client.WithWatch
}

// Start starts a management cluster and returns when its controllers and
// webhooks answer: about 20 seconds, or 5 in bare mode, after the programs
// have been built.
func Start(ctx context.Context, o Options) (_ *Management, err error) {
	if o.Name == "" {
		o.Name = "management"
	}
	m := &Management{name: o.Name, options: o}
	defer func() {
		if err != nil {
			if m.logs != nil {
				m.logs.keep = true
				err = fmt.Errorf("starting management cluster %q (logs: %s): %w", o.Name, m.logs.dir, err)
			}
			m.Stop()
		}
	}()
	if m.tools, err = build(ctx, o.Progress); err != nil {
		return nil, err
	}
	if m.dir, err = os.MkdirTemp("", "move-hook-stack-"+o.Name+"-data-"); err != nil {
		return nil, err
	}
	if m.logs, err = newLogFolder(o.LogDir, o.Name); err != nil {
		return nil, err
	}
	if m.ports, err = reservePorts(); err != nil {
		return nil, err
	}
	if err := m.startAPIServer(ctx); err != nil {
		return nil, err
	}
	if err := m.connect(); err != nil {
		return nil, err
	}
	if err := m.install(ctx); err != nil {
		return nil, err
	}
	if o.Bare && !o.GarbageCollector {
		return m, nil
	}
	if err := m.startControllerManager(ctx); err != nil {
		return nil, err
	}
	if o.Bare {
		return m, nil
	}
	if o.Cloud == nil {
		if m.ownCloud, err = StartCloud(ctx, CloudOptions{LogDir: m.logs.dir}); err != nil {
			return nil, err
		}
		m.options.Cloud = m.ownCloud
	}
	return m, m.StartManagers(ctx)
}

// Stop ends every process of the management cluster and removes its data. It
// may be called twice, and on a nil Management.
func (m *Management) Stop() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inCloud {
		_ = m.leaveCloud()
	}
	for _, p := range append(m.managers, m.processes...) {
		if !p.running() {
			m.keepLogs() // it ended without being told to
		}
		p.stop(0) // its data go as well: nothing to end in good order
	}
	m.managers, m.processes = nil, nil
	if m.ownCloud != nil {
		m.ownCloud.Stop()
		m.ownCloud = nil
	}
	if m.ports != nil {
		m.ports.release()
		m.ports = nil
	}
	_ = os.RemoveAll(m.dir)
	if m.logs != nil {
		m.logs.remove()
	}
}

// Name is the name from the options.
func (m *Management) Name() string { return m.name }

// RESTConfig is for the user "admin", who may do everything. It has no
// client-side limit on requests.
func (m *Management) RESTConfig() *rest.Config { return rest.CopyConfig(m.config) }

// Client reads and writes as admin and knows the types of Cluster API, of the
// kubeadm providers, of the Dev provider and of clusterctl's inventory.
func (m *Management) Client() client.WithWatch { return m.client }

// Kubeconfig is the path of admin's kubeconfig, "<name>.kubeconfig".
func (m *Management) Kubeconfig() string { return filepath.Join(m.dir, m.name+".kubeconfig") }

// Clusterctl is the path of the clusterctl that matches the providers.
func (m *Management) Clusterctl() string { return m.tools.path(clusterctl) }

// Kubectl is the path of a kubectl that matches the API server.
func (m *Management) Kubectl() string { return m.tools.path(kubectl) }

// LogDir is the folder with the log of every process.
func (m *Management) LogDir() string { return m.logs.dir }

// KeepLogs has Stop leave the logs where they are.
func (m *Management) KeepLogs() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keepLogs()
}

func (m *Management) keepLogs() {
	m.logs.keep = true
	if m.options.Cloud != nil {
		m.options.Cloud.logs.keep = true
	}
}

// Process is one running program of a management cluster.
type Process struct {
	Name string
	PID  int
	Log  string
}

// Processes lists what runs for this management cluster, the cloud included.
func (m *Management) Processes() []Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := append(append([]*process{}, m.processes...), m.managers...)
	if m.options.Cloud != nil {
		all = append(all, m.options.Cloud.process)
	}
	var list []Process
	for _, p := range all {
		if p.running() {
			list = append(list, Process{Name: p.name, PID: p.pid(), Log: p.log})
		}
	}
	return list
}

func (m *Management) connect() (err error) {
	m.config, m.client, err = Connect(m.Kubeconfig())
	return err
}

// Connect gives what an API needs for the current context of a kubeconfig.
func Connect(kubeconfig string) (*rest.Config, client.WithWatch, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{} // of the Docker kinds, which are deprecated and read with the others
	scheme, err := NewScheme()
	if err != nil {
		return nil, nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	return config, c, err
}

// userKubeconfig writes a kubeconfig for u and returns its path.
func (m *Management) userKubeconfig(file string, u user) (string, error) {
	path := filepath.Join(m.dir, file+".kubeconfig")
	return path, m.ca.writeKubeconfig(path, m.name, m.server.url(), u)
}

func localAddress(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
