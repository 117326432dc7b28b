// Package arm_test holds what only a real kube-apiserver can prove of the arm and
// the guard: what is stamped, what is denied, and what is left alone. No
// controllers run.
package arm_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/policy"
	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

// world is the management cluster that all tests share, and the program under test.
// Policies are of the whole cluster: no test runs beside another, and each takes
// its own off again.
var world struct {
	*stack.Management
	hook string
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(scenario.WithMoveHook(context.Background(), func(hook string) (code int, err error) {
		world.hook = hook
		world.Management, err = stack.Start(context.Background(), stack.Options{Name: "arm", Bare: true, Progress: os.Stderr})
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

// hook runs the real program and demands an exit code.
func hook(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(t.Context(), world.hook, args...)
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("move-hook %s: exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", strings.Join(args, " "), got, code, &out, &complaints)
	}
	return out.String(), complaints.String()
}

// writes counts what a store asked the API server to store.
type writes struct{ atomic.Int64 }

// store is a Store of admin's, and the count of its writes.
func store(t *testing.T, dryRun bool) (*policy.Store, *writes) {
	t.Helper()
	cfg, count := world.RESTConfig(), &writes{}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" {
				count.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	return policy.New(stack.Must(management.OpenConfig(cfg, "arm"))(t), dryRun), count
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// arm arms until the test ends.
func arm(t *testing.T, o policy.ArmOptions) *policy.Store {
	t.Helper()
	s, _ := store(t, false)
	o.Expires, o.By = time.Hour, "test"
	armed, err := s.Arm(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if armed.Unproven != "" || len(armed.Notes) != 0 {
		t.Errorf("unproven: %q, notes: %q", armed.Unproven, armed.Notes)
	}
	t.Cleanup(func() {
		if _, err := s.Disarm(context.WithoutCancel(t.Context()), nil); err != nil {
			t.Error(err)
		}
	})
	return s
}

// guard guards until the test ends; it returns when the guard is in force.
func guard(t *testing.T) *policy.Store {
	t.Helper()
	s, _ := store(t, false)
	if _, err := s.Guard(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := s.Unguard(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// as is a client of somebody else's.
func as(t *testing.T, change func(*rest.Config)) client.Client {
	t.Helper()
	cfg := world.RESTConfig()
	change(cfg)
	return stack.Must(client.New(cfg, client.Options{Scheme: world.Client().Scheme()}))(t)
}

func namespace(t *testing.T, name string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := world.Client().Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// meta is the metadata of an object as it is stored.
func meta(t *testing.T, o client.Object) metav1.Object {
	t.Helper()
	got := o.DeepCopyObject().(client.Object)
	if err := world.Client().Get(t.Context(), client.ObjectKeyFromObject(o), got); err != nil {
		t.Fatalf("%T %s: %v", o, client.ObjectKeyFromObject(o), err)
	}
	return got
}

// eventually is for what the API server learns of a moment after it is stored.
func eventually(t *testing.T, what string, is func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		last = is(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}

func runKubectl(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, world.Kubectl(), append([]string{"--kubeconfig", world.Kubeconfig()}, args...)...).CombinedOutput()
	return string(out), err
}

// allGroups are the API groups that the server serves, but one.
func allGroups(t *testing.T, but string) ([]string, error) {
	d, err := stack.Must(management.OpenConfig(world.RESTConfig(), "arm"))(t).Discover(t.Context())
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{but: true}
	var groups []string
	for _, k := range d.All() {
		if !seen[k.Group] {
			seen[k.Group] = true
			groups = append(groups, k.Group)
		}
	}
	return groups, nil
}
