package bare_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/move-hook/move-hook/test/stack"
)

// process is the real program while it runs.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	mu   sync.Mutex
	out  bytes.Buffer
}

// Write gathers what it prints.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *process) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.cmd.Args, " ") + "\n" + p.out.String()
}

// launch starts the real program; it is gone at the end of the test.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(world.hook, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // its exit code is what counts
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Log(p)
		}
	})
	return p
}

// signal sends a signal and returns the exit code, -1 for a killed process.
func (p *process) signal(t *testing.T, s os.Signal) int {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	return p.ended(t)
}

func (p *process) ended(t *testing.T) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(2 * time.Minute):
		t.Fatalf("it does not end\n%s", p)
	}
	return p.cmd.ProcessState.ExitCode()
}

// staying is a `post --watch` with its two addresses.
type staying struct {
	*process
	metrics, health string
}

func stay(t *testing.T, args ...string) *staying {
	t.Helper()
	s := &staying{metrics: freeAddress(t), health: freeAddress(t)}
	s.process = launch(t, append([]string{"post", "--watch", "--settle", "1s", "--watch-after", "1s",
		"--metrics-bind-address", s.metrics, "--health-probe-bind-address", s.health}, args...)...)
	eventually(t, s.process, "ready", func() bool { code, _ := fetch(s.health + "/readyz"); return code == http.StatusOK })
	return s
}

// metric is the value of a metric as it is printed; empty where it is not there.
func (s *staying) metric(name string) string {
	_, body := fetch(s.metrics + "/metrics")
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// freeAddress is one on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener := stack.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	return listener.Addr().String()
}

func fetch(address string) (int, string) {
	answer, err := http.Get("http://" + address)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(body)
}

// eventually waits for something; p is what to print if it does not come.
func eventually(t *testing.T, p fmt.Stringer, what string, so func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 90*time.Second, true,
		func(context.Context) (bool, error) { return so(), nil })
	if err != nil {
		t.Fatalf("not %s: %v\n%s", what, err, p)
	}
}
