package stack

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/util/keyutil"
)

// startTimeout is for one program on a machine that does other things too.
const startTimeout = 2 * time.Minute

// apiServer is the address of an API server and the command that runs it.
type apiServer struct {
	port    int
	etcd    string
	command command
	process *process
}

func (s apiServer) url() string { return "https://" + localAddress(s.port) }

func (m *Management) caFile() string { return filepath.Join(m.dir, "ca.crt") }

func (m *Management) tokenKeyFile() string { return filepath.Join(m.dir, "service-accounts.key") }

func (m *Management) startAPIServer(ctx context.Context) (err error) {
	// Only health endpoints are asked through it, of processes that we started.
	m.http = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
	}}
	if m.ca, err = newAuthority("move-hook test stack, " + m.name); err != nil {
		return err
	}
	tokenKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	tokenPEM, err := keyutil.MarshalPrivateKeyToPEM(tokenKey)
	if err != nil {
		return err
	}
	if err := writeFiles(map[string][]byte{m.caFile(): m.ca.pem, m.tokenKeyFile(): tokenPEM}); err != nil {
		return err
	}
	if err := m.startEtcd(ctx); err != nil {
		return err
	}
	if m.server.port, err = m.ports.port(); err != nil {
		return err
	}
	dir := filepath.Join(m.dir, "apiserver")
	if err := writeFiles(nil); err != nil {
		return err
	}
	certFile, keyFile, err := m.ca.writeServing(dir)
	if err != nil {
		return err
	}
	m.server.command = command{name: kubeAPIServer, path: m.tools.path(kubeAPIServer), logDir: m.logs.dir, args: append([]string{
		"--advertise-address=127.0.0.1",
		"--allow-privileged=true",
		"--authorization-mode=RBAC",
		"--bind-address=127.0.0.1",
		"--client-ca-file=" + m.caFile(),
		"--endpoint-reconciler-type=none",
		"--etcd-servers=" + m.server.etcd,
		"--profiling=false",
		"--secure-port=" + strconv.Itoa(m.server.port),
		"--service-account-issuer=" + m.server.url(),
		"--service-account-key-file=" + m.tokenKeyFile(),
		"--service-account-signing-key-file=" + m.tokenKeyFile(),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--tls-cert-file=" + certFile,
		"--tls-private-key-file=" + keyFile,
	}, m.options.APIServerArgs...)}
	if _, err := m.userKubeconfig(m.name, user{"admin", []string{"system:masters"}}); err != nil {
		return err
	}
	return m.runAPIServer(ctx)
}

func (m *Management) startEtcd(ctx context.Context) error {
	port, err := m.ports.port()
	if err != nil {
		return err
	}
	m.server.etcd = "http://" + localAddress(port)
	p, err := startProcess(command{name: etcd, path: m.tools.path(etcd), logDir: m.logs.dir, args: []string{
		"--advertise-client-urls=" + m.server.etcd,
		"--data-dir=" + filepath.Join(m.dir, "etcd"),
		"--listen-client-urls=" + m.server.etcd,
		"--listen-peer-urls=http://127.0.0.1:0",
		"--log-level=warn",
		"--quota-backend-bytes=" + strconv.Itoa(8<<30), // the scale tests fill the default of 2 GiB
		"--unsafe-no-fsync",                            // nobody wants these data after a crash
	}})
	if err != nil {
		return err
	}
	m.processes = append(m.processes, p)
	return p.waitHealthy(ctx, m.http, m.server.etcd+"/health")
}

func (m *Management) runAPIServer(ctx context.Context) error {
	p, err := startProcess(m.server.command)
	if err != nil {
		return err
	}
	m.server.process = p
	m.processes = append(m.processes, p)
	return p.waitHealthy(ctx, m.http, m.server.url()+"/readyz")
}

// KillAPIServer ends the API server as a power cut would; etcd goes on.
func (m *Management) KillAPIServer() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server.process.stop(0)
	m.processes = without(m.processes, m.server.process)
}

// RestartAPIServer starts the API server again, on the same address and data.
func (m *Management) RestartAPIServer(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runAPIServer(ctx)
}

func without(list []*process, gone *process) []*process {
	var left []*process
	for _, p := range list {
		if p != gone {
			left = append(left, p)
		}
	}
	return left
}

// controllers of kube-controller-manager that a management cluster without
// nodes has work for.
var controllers = []string{
	"clusterrole-aggregation-controller", // the core provider's rights are an aggregated role
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"ttl-after-finished-controller",
	"validatingadmissionpolicy-status-controller",
}

// startControllerManager comes after the CRDs: the garbage collector looks for
// new kinds only every 30 seconds.
func (m *Management) startControllerManager(ctx context.Context) error {
	port, err := m.ports.port()
	if err != nil {
		return err
	}
	kubeconfig, err := m.userKubeconfig(kubeControllerManager, user{name: "system:kube-controller-manager"})
	if err != nil {
		return err
	}
	p, err := startProcess(command{name: kubeControllerManager, path: m.tools.path(kubeControllerManager), logDir: m.logs.dir, args: []string{
		"--authentication-skip-lookup",
		"--bind-address=127.0.0.1",
		"--cert-dir=" + filepath.Join(m.dir, kubeControllerManager),
		"--controllers=" + strings.Join(controllers, ","),
		"--kube-api-burst=400",
		"--kube-api-qps=200",
		"--kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--root-ca-file=" + m.caFile(),
		"--secure-port=" + strconv.Itoa(port),
		"--service-account-private-key-file=" + m.tokenKeyFile(),
		"--use-service-account-credentials=true", // so that policies see the garbage collector under its own name
	}})
	if err != nil {
		return err
	}
	m.processes = append(m.processes, p)
	return p.waitHealthy(ctx, m.http, "https://"+localAddress(port)+"/healthz")
}
