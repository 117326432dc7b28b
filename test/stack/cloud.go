package stack

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"

	"github.com/move-hook/move-hook/test/stack/internal/cloudapi"
)

// Cloud is where the machines of workload clusters live: one process outside
// every management cluster that is given it. A workload cluster that moves from
// one to another keeps its machines, its API server and its etcd members.
type Cloud struct {
	process *process
	ports   *portBlock
	logs    *logFolder

	mu      sync.Mutex // one conversation at a time
	stdin   io.WriteCloser
	answers *bufio.Reader
}

// StartCloud starts a cloud. Pair and Start do so by themselves; call it for
// more than two management clusters over one cloud.
func StartCloud(ctx context.Context, o CloudOptions) (*Cloud, error) {
	tools, err := buildOnly(ctx, o.Progress, nil, nil)
	if err != nil {
		return nil, err
	}
	logs, err := newLogFolder(o.LogDir, "cloud")
	if err != nil {
		return nil, err
	}
	ports, err := reservePorts()
	if err != nil {
		return nil, err
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	answers, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p, err := startProcess(command{
		name: "cloud", path: tools.cloud, logDir: logs.dir, stdin: in, stdout: out,
		args: []string{
			"--v=2", "--host=" + cmp.Or(o.Host, "127.0.0.1"),
			"--first-port=" + strconv.Itoa(ports.first+1), "--last-port=" + strconv.Itoa(ports.first+blockSize-1),
		},
	})
	// The child has its own; with these open its end would never be seen.
	_, _ = in.Close(), out.Close()
	if err != nil {
		ports.release()
		return nil, err
	}
	return &Cloud{process: p, ports: ports, logs: logs, stdin: stdin, answers: bufio.NewReader(answers)}, nil
}

// CloudOptions say how to start a cloud.
type CloudOptions struct {
	LogDir   string    // default: a new folder below os.TempDir
	Progress io.Writer // of building the programs; default: none
	Host     string    // this machine's address for those who use the API servers of workload clusters; default: 127.0.0.1
}

// Serve runs the Dev provider's controllers for a management cluster that is not the
// stack's and that has the provider's webhooks, until the cloud stops.
func (c *Cloud) Serve(name, kubeconfig string) error {
	return c.do(cloudapi.Request{Start: &cloudapi.Start{Name: name, Kubeconfig: kubeconfig, HealthAddr: "0"}})
}

// LogDir is the folder of the cloud's log.
func (c *Cloud) LogDir() string { return c.logs.dir }

// Stop ends the cloud and with it every workload cluster's machines.
func (c *Cloud) Stop() {
	_ = c.stdin.Close()
	c.process.stop(0)
	c.ports.release()
	c.logs.remove()
}

func (c *Cloud) do(request cloudapi.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if _, err := c.stdin.Write(append(data, '\n')); err != nil {
		return c.gone(err)
	}
	line, err := c.answers.ReadBytes('\n')
	if err != nil {
		return c.gone(err)
	}
	var answer cloudapi.Answer
	if err := json.Unmarshal(line, &answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return fmt.Errorf("the cloud: %s", answer.Error)
	}
	return nil
}

func (c *Cloud) gone(err error) error {
	if c.process.running() {
		return err
	}
	return errors.Join(err, c.process.exited())
}

// logFolder holds the logs of processes. One that nobody asked for is removed
// when the stack stops, unless something is to be found in it.
type logFolder struct {
	dir  string
	keep bool
}

func newLogFolder(dir, name string) (*logFolder, error) {
	if dir != "" {
		return &logFolder{dir: dir, keep: true}, os.MkdirAll(dir, 0o755)
	}
	dir, err := os.MkdirTemp("", "move-hook-stack-"+name+"-")
	return &logFolder{dir: dir}, err
}

func (l *logFolder) remove() {
	if !l.keep {
		_ = os.RemoveAll(l.dir)
	}
}
