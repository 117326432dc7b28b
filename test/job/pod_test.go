package job_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/move-hook/move-hook/test/stack"
)

const systemNamespace = "move-hook-system"

// pod is what kubelet gives a container: a token, the CA, a namespace, a file for its
// last words. It lives in a mount namespace of its own, because the folder of the
// credentials cannot be chosen.
type pod struct {
	dir   string
	token string
	host  string
	port  string
	// index is what a pod of an Indexed Job has in its environment; empty for another.
	index string
}

// result is what one run in a pod came to.
type result struct {
	code           int
	stdout, stderr string
	termination    string
}

func (r result) String() string {
	return fmt.Sprintf("exit code %d\nstdout:\n%s\nstderr:\n%s\ntermination message:\n%s", r.code, r.stdout, r.stderr, r.termination)
}

// podOf makes a pod of a ServiceAccount with a token that the API server has issued.
func podOf(t *testing.T, m *stack.Management, account string) pod {
	t.Helper()
	config := m.RESTConfig()
	token, err := kubernetes.NewForConfigOrDie(config).CoreV1().ServiceAccounts(systemNamespace).
		CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	ca := config.CAData
	if len(ca) == 0 {
		if ca, err = os.ReadFile(config.CAFile); err != nil {
			t.Fatal(err)
		}
	}
	p := pod{dir: t.TempDir(), token: token.Status.Token, host: server.Hostname(), port: server.Port()}
	for name, data := range map[string][]byte{
		corev1.ServiceAccountTokenKey: []byte(p.token), corev1.ServiceAccountRootCAKey: ca,
		corev1.ServiceAccountNamespaceKey: []byte(systemNamespace), "termination-log": nil,
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// through lets the pod find a listener where it would find the API server.
func (p pod) through(t *testing.T, l *stack.Listener) pod {
	t.Helper()
	at := stack.Must(url.Parse(l.URL))(t)
	p.host, p.port = at.Hostname(), at.Port()
	if err := os.WriteFile(filepath.Join(p.dir, corev1.ServiceAccountRootCAKey), l.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// contain puts the files where a pod has them, then becomes the program.
const contain = `set -e
run=$(readlink -f /var/run)
mount -t tmpfs tmpfs "$run"
mkdir -p "$run/secrets/kubernetes.io"
cp -R "$FILES" "$run/secrets/kubernetes.io/serviceaccount"
exec "$@"`

// run runs the real program in the pod, with nothing in its environment that kubelet
// does not put there.
func (p pod) run(t *testing.T, args ...string) result {
	t.Helper()
	return p.runUntil(t, "", args...)
}

// runUntil is run where kubelet ends the pod once the program has said something on
// stderr; empty is never.
func (p pod) runUntil(t *testing.T, words string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	last := filepath.Join(p.dir, "termination-log")
	args = append([]string{"-c", contain, "sh", world.hook}, append(args, "--termination-message-path", last)...)
	cmd := exec.CommandContext(ctx, "/bin/sh", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "FILES=" + p.dir, "HOME=/",
		"KUBERNETES_SERVICE_HOST=" + p.host, "KUBERNETES_SERVICE_PORT=" + p.port}
	if p.index != "" {
		cmd.Env = append(cmd.Env, "JOB_COMPLETION_INDEX="+p.index)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	var stdout bytes.Buffer
	stderr := &listening{words: words, heard: func() { _ = cmd.Process.Signal(syscall.SIGTERM) }}
	cmd.Stdout, cmd.Stderr = &stdout, stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	message, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.said.String(), strings.TrimSpace(string(message))}
}

// listening gathers what is written, and tells once when it has heard the words.
type listening struct {
	said  bytes.Buffer
	words string
	heard func()
	told  bool
}

// Write takes in a part.
func (l *listening) Write(b []byte) (int, error) {
	n, err := l.said.Write(b)
	if !l.told && l.words != "" && strings.Contains(l.said.String(), l.words) {
		l.told = true
		l.heard()
	}
	return n, err
}
