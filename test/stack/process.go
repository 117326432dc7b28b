package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// process is a child that cannot outlive this process.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error // valid once done is closed
}

// command says what to run; its output goes to <logDir>/<name>.log.
type command struct {
	name   string
	path   string
	args   []string
	env    []string
	logDir string
	// The child's ends of pipes, or nil: no input, and output to the log.
	// Files only: with another Reader, Wait would wait for that one's end.
	stdin, stdout *os.File
}

// spawner starts children from one operating system thread that is never given
// back. Linux delivers a parent-death signal when the *thread* that started the
// child ends, and Go ends threads when it likes: started from an ordinary
// goroutine, a child might be killed in the middle of a test.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range work {
			start()
		}
	}()
	return work
})

func startProcess(c command) (*process, error) {
	path := filepath.Join(c.logDir, c.name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // The child has its own descriptor.

	cmd := exec.Command(c.path, c.args...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Dir = c.logDir
	cmd.Stdout, cmd.Stderr = log, log
	if c.stdin != nil {
		cmd.Stdin = c.stdin
	}
	if c.stdout != nil {
		cmd.Stdout = c.stdout
	}
	cmd.SysProcAttr = dieWithParent()

	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	p := &process{name: c.name, cmd: cmd, log: path, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// stop asks the process to end, and ends it after the grace period.
func (p *process) stop(grace time.Duration) {
	if grace > 0 {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
			return
		case <-time.After(grace):
		}
	}
	_ = p.cmd.Process.Kill()
	<-p.done
}

// waitHealthy polls a health endpoint until it answers 200. It gives up at
// once when the process has ended, and then says what it wrote last.
func (p *process) waitHealthy(ctx context.Context, client *http.Client, url string) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		if !p.running() {
			return false, p.exited()
		}
		last = probe(ctx, client, url)
		return last == nil, nil
	})
	if err == nil {
		return nil
	}
	if wait.Interrupted(err) && last != nil {
		err = errors.Join(err, last)
	}
	return fmt.Errorf("%s is not healthy (log: %s): %w", p.name, p.log, err)
}

func (p *process) exited() error {
	end := p.err
	if end == nil {
		end = errors.New("exit code 0")
	}
	return fmt.Errorf("%s ended (%w), its last words:\n%s", p.name, end, tail(p.log, 15))
}

func probe(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // Nothing to do about it.
	body, _ := io.ReadAll(io.LimitReader(response.Body, 2000))
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return nil
}

func tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
