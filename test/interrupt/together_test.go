package interrupt_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/stack"
)

func (tr *trial) post() []string {
	return tr.onTargetAlone("post", "--watch-after", "0s", "--timeout", "1m")
}

// work is what took effect on the target, Events and Leases aside.
func (tr *trial) work() []string {
	var work []string
	for _, r := range tr.Target.Mutating() {
		// A write that was refused because another came first did nothing.
		if r.Status < 300 && r.Resource != "events" && r.Resource != "leases" {
			work = append(work, strings.ReplaceAll(r.String(), tr.Namespace, "NAMESPACE"))
		}
	}
	slices.Sort(work)
	return work
}

// TestTogether_TwoPostsDoTheWorkOfOne: they find each other by the Lease, and both
// end well.
func TestTogether_TwoPostsDoTheWorkOfOne(t *testing.T) {
	uninterrupted(t)
	alone, _ := moved(t)
	alone.Target.Forget()
	alone.exits(t, 0, alone.post())
	alone.isMoved(t)
	want := alone.work()
	t.Logf("one post writes %d times", len(want))
	times := 2
	if soak() {
		times = 10
	}
	for i := range times {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			tr, _ := moved(t)
			tr.Target.Forget()
			first, second := tr.start(t, tr.post()...), tr.start(t, tr.post()...)
			for _, r := range []*running{first, second} {
				if code := r.ended(t); code != 0 {
					t.Errorf("post ends with exit code %d", code)
				}
			}
			tr.isMoved(t)
			if diff := cmp.Diff(want, tr.work()); diff != "" {
				t.Errorf("the two did not do the work of one (- one, + two):\n%s", diff)
			}
		})
	}
}

// TestTogether_ALivingHolderIsNamedAndADeadOneIsOutwaited: one resume waits for an
// object that is missing, and holds the Lease of the namespace.
func TestTogether_ALivingHolderIsNamedAndADeadOneIsOutwaited(t *testing.T) {
	uninterrupted(t)
	tr, _ := moved(t)
	ca := &corev1.Secret{}
	if err := world.target.Client().Get(t.Context(), client.ObjectKey{Namespace: tr.Namespace, Name: "c1-ca"}, ca); err != nil {
		t.Fatal(err)
	}
	if err := world.target.Client().Delete(t.Context(), ca); err != nil {
		t.Fatal(err)
	}
	first := tr.start(t, append(tr.args("resume"), "--timeout", "10m")...)
	holder := tr.holder(t)
	var others []*running
	for _, verb := range []string{"resume", "rollback", "move"} {
		others = append(others, tr.start(t, tr.args(verb)...))
	}
	for _, r := range others {
		if code := r.ended(t); code != 3 || !strings.Contains(r.out.String(), "is being pivoted by "+holder) {
			t.Errorf("beside a resume, %s ends with exit code %d and does not name %s", r.cmd.Args[1], code, holder)
		}
	}
	if now := tr.holder(t); now != holder {
		t.Errorf("the Lease went from %s to %s", holder, now)
	}

	// Killed: its Lease stays.
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.ended(t)
	ca.ResourceVersion, ca.UID = "", ""
	if err := world.target.Client().Create(t.Context(), ca); err != nil {
		t.Fatal(err)
	}
	tr.exits(t, 0, tr.args("resume"), holder+" holds the Lease")
	tr.isMoved(t)
	for _, m := range []*stack.Management{world.source, world.target} {
		left := &coordinationv1.LeaseList{}
		if err := m.Client().List(t.Context(), left, client.InNamespace(tr.Namespace)); err != nil || len(left.Items) > 0 {
			t.Errorf("%d Leases are left, %v", len(left.Items), err)
		}
	}
}

// holder waits for the Lease of the namespace and says who has it.
func (tr *trial) holder(t *testing.T) string {
	t.Helper()
	for range 600 {
		for _, m := range []*stack.Management{world.source, world.target} {
			l := &coordinationv1.Lease{}
			err := m.Client().Get(t.Context(), client.ObjectKey{Namespace: tr.Namespace, Name: "move-hook-pivot.lock"}, l)
			if err == nil && l.Spec.HolderIdentity != nil {
				return *l.Spec.HolderIdentity
			}
		}
		wait(t.Context(), 100*time.Millisecond)
	}
	t.Fatal("nobody takes the Lease of the namespace")
	return ""
}

// running is the program while it runs.
type running struct {
	cmd  *exec.Cmd
	out  *bytes.Buffer
	over chan struct{} // closed when it has ended
	tr   *trial
}

func (tr *trial) start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
	cmd, out := tr.Command(ctx, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &running{cmd: cmd, out: out, tr: tr, over: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its exit code is what counts
		close(r.over)
	}()
	t.Cleanup(func() { cancel(); <-r.over })
	return r
}

// ended waits for its end and gives the exit code.
func (r *running) ended(t *testing.T) int {
	t.Helper()
	<-r.over
	r.tr.Note(r.cmd.Args[1], r.cmd, r.out)
	return r.cmd.ProcessState.ExitCode()
}
