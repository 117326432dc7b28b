// Package bare_test holds what a fake API server cannot prove: how a real
// kube-apiserver answers our reads and writes, and that our move set is
// clusterctl's. No controllers run, so objects are what the tests make them.
package bare_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

// world is the management cluster that all tests share, each in namespaces of its
// own, and the program under test.
var world struct {
	*stack.Management
	hook string
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(scenario.WithMoveHook(context.Background(), func(hook string) (code int, err error) {
		world.hook = hook
		world.Management, err = stack.Start(context.Background(), stack.Options{Name: "bare", Bare: true, Progress: os.Stderr})
		if err != nil {
			return 1, err
		}
		defer world.Stop()
		if code = m.Run(); code != 0 {
			world.KeepLogs()
			fmt.Fprintln(os.Stderr, "logs of the API server:", world.LogDir())
		}
		return code, nil
	}))
}

// result is what one run of the real program came to.
type result struct {
	args           []string
	code           int
	stdout, stderr string
}

func (r result) String() string {
	return fmt.Sprintf("move-hook %s: exit code %d\nstdout:\n%s\nstderr:\n%s", strings.Join(r.args, " "), r.code, r.stdout, r.stderr)
}

// hook runs the real program and demands an exit code.
func hook(t *testing.T, code int, args ...string) result {
	t.Helper()
	r := run(t, args...)
	if r.code != code {
		t.Fatalf("want exit code %d\n%s", code, r)
	}
	return r
}

// killed runs the real program and kills it when a proxy has cut it off.
func killed(t *testing.T, cut <-chan struct{}, args ...string) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	go func() {
		select {
		case <-cut:
			kill()
		case <-ctx.Done():
		}
	}()
	if r := runIn(ctx, t, args...); r.code != -1 {
		t.Fatalf("it was not killed\n%s", r)
	}
}

// run runs the real program.
func run(t *testing.T, args ...string) result {
	t.Helper()
	return runIn(t.Context(), t, args...)
}

func runIn(ctx context.Context, t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, world.hook, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{args, cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// open opens the shared management cluster as somebody; nil changes nothing.
func open(t *testing.T, as func(*rest.Config)) *management.Cluster {
	t.Helper()
	cfg := world.RESTConfig()
	if as != nil {
		as(cfg)
	}
	return stack.Must(management.OpenConfig(cfg, "bare"))(t)
}

// user makes a client another user's.
func user(name string) func(*rest.Config) {
	return func(cfg *rest.Config) { cfg.Impersonate.UserName = name }
}

// userKubeconfig is what user is for a program.
func userKubeconfig(t *testing.T, name string) string {
	t.Helper()
	cfg := stack.Must(clientcmd.LoadFromFile(world.Kubeconfig()))(t)
	for _, u := range cfg.AuthInfos {
		u.Impersonate = name
	}
	return writeKubeconfig(t, cfg)
}
