package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/report"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/test/stack"
)

// Check is one thing that has to hold after a pivot, and what was seen.
type Check struct {
	Name   string
	OK     bool
	Detail string
}

// Proof is what a pivot left behind and what happened meanwhile.
type Proof struct {
	Before, After []report.MachineRow
	Checks        []Check
	// SecondPost is the post that had nothing left to do.
	SecondPost Run
}

// Failed gives the checks that do not hold.
func (p Proof) Failed() []Check {
	return slices.DeleteFunc(slices.Clone(p.Checks), func(c Check) bool { return c.OK })
}

func (p *Proof) check(name string, ok bool, detail string, args ...any) {
	p.Checks = append(p.Checks, Check{Name: name, OK: ok, Detail: fmt.Sprintf(detail, args...)})
}

// Pivot moves the Cluster with `mover` (which runs move-hook and clusterctl in
// whatever way is to be proved) and collects the proof. It keeps watching for
// `after` once everything is done: a controller that takes its time is caught too.
func Pivot(ctx context.Context, e Env, key client.ObjectKey, after time.Duration, mover func(context.Context) error) (Proof, error) {
	var p Proof
	before, err := Snapshot(ctx, e.Source, key)
	if err != nil {
		return p, err
	}
	p.Before = report.MachineRows(before)
	source, err := stack.Watch(ctx, e.Source)
	if err != nil {
		return p, err
	}
	defer source.Stop()
	target, err := stack.Watch(ctx, e.Target)
	if err != nil {
		return p, err
	}
	defer target.Stop()
	if err := mover(ctx); err != nil {
		return p, err
	}
	if err := p.look(ctx, e, key, before); err != nil {
		return p, err
	}
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return p, ctx.Err()
	}
	return p, p.count(ctx, e, key, source, target)
}

// look judges what is there after the pivot.
func (p *Proof) look(ctx context.Context, e Env, key client.ObjectKey, before graph.Snapshot) error {
	available := ""
	err := wait.PollUntilContextTimeout(ctx, time.Second, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		cluster := &clusterv1.Cluster{}
		if err := e.Target.Client().Get(ctx, key, cluster); err != nil {
			return false, err
		}
		c := conditions.Get(cluster, clusterv1.AvailableCondition)
		if c == nil {
			return false, nil
		}
		available = c.Message
		return c.Status == metav1.ConditionTrue, nil
	})
	p.check("the target is Available", err == nil, "%s", strings.TrimSpace("Cluster "+key.String()+" "+available))

	left, err := movable(ctx, e.Source, key.Namespace)
	if err != nil {
		return err
	}
	p.check("the source is empty", len(left) == 0, "%d objects left%s", len(left), first(left))

	verify, err := e.Hook(ctx, "verify", "--kubeconfig", e.Source.Kubeconfig(), "--to-kubeconfig", e.Target.Kubeconfig(), "-n", key.Namespace)
	if err != nil {
		return err
	}
	p.check("verify is green", verify.Code == 0, "exit code %d", verify.Code)

	g, err := read(ctx, e.Target, key.Namespace)
	if err != nil {
		return err
	}
	var pending, held []string
	for o := range g.All() {
		if _, ok := o.Labels[graph.AdoptionLabel]; ok {
			pending = append(pending, o.ID.String())
		}
		if _, ok := o.Annotations[graph.HeldAnnotation]; ok {
			held = append(held, o.ID.String())
		}
	}
	p.check("the adoption label is cleared", len(pending) == 0, "on %d objects%s", len(pending), first(pending))
	p.check("the holds are gone", len(held) == 0, "on %d objects%s", len(held), first(held))

	now := g.Snapshot(before.Cluster)
	diff := owners(before, now)
	p.check("the owner graph equals the source's", len(diff) == 0, "%d objects compared, %d differ%s", len(before.Nodes), len(diff), first(diff))
	p.After = report.MachineRows(now)
	return nil
}

// count judges what happened meanwhile, and that a second post does nothing.
func (p *Proof) count(ctx context.Context, e Env, key client.ObjectKey, source, target *stack.Watcher) error {
	if err := errors.Join(source.Err(), target.Err()); err != nil {
		return err
	}
	var want, gone []string
	for _, row := range p.Before {
		name := strings.TrimPrefix(row.Machine, key.Namespace+"/")
		want = append(want, "created "+name)
		gone = append(gone, "deleted "+name+" for the move")
	}
	came, went := machines(target, key.Namespace), machines(source, key.Namespace)
	p.check("no controller made or deleted a Machine on the target", slices.Equal(came, want),
		"%d arrived by clusterctl%s", len(want), unlike(came, want))
	p.check("no controller made or deleted a Machine on the source", slices.Equal(went, gone),
		"%d removed by clusterctl%s", len(gone), unlike(went, gone))
	both := slices.DeleteFunc(stack.BothUnpaused(source, target, 100*time.Millisecond), func(s string) bool { return !strings.HasPrefix(s, key.String()+":") })
	p.check("never reconciled on both sides", len(both) == 0, "%d times unpaused on both sides%s", len(both), first(both))

	proxy, err := stack.Proxy(e.Target)
	if err != nil {
		return err
	}
	defer proxy.Close()
	p.SecondPost, err = e.Hook(ctx, "post", "--to-kubeconfig", proxy.Kubeconfig(), "-n", key.Namespace, "--timeout", "2m")
	if err != nil {
		return err
	}
	writes := proxy.Mutating()
	p.check("a second post writes nothing", p.SecondPost.Code == 0 && len(writes) == 0 && len(proxy.Requests()) > 0,
		"exit code %d, %d requests, %d of them mutating", p.SecondPost.Code, len(proxy.Requests()), len(writes))
	for _, w := range writes {
		p.Checks[len(p.Checks)-1].Detail += "; " + w.String()
	}
	return nil
}

// unlike adds what was seen where that is not what should have been.
func unlike(seen, want []string) string {
	if slices.Equal(seen, want) {
		return ""
	}
	return fmt.Sprintf("; seen: %v, expected: %v", seen, want)
}

// machines says which Machines of the namespace came and went, sorted.
func machines(w *stack.Watcher, namespace string) []string {
	var out []string
	for _, e := range w.Events(stack.Machines) {
		if e.Key.Namespace != namespace {
			continue
		}
		line := string(e.Type) + " " + e.Key.Name
		if e.Type == stack.Deleted && e.ForMove {
			line += " for the move"
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// Snapshot takes the ownership graph of a Cluster as it is now.
func Snapshot(ctx context.Context, m Management, key client.ObjectKey) (graph.Snapshot, error) {
	g, err := read(ctx, m, key.Namespace)
	if err != nil {
		return graph.Snapshot{}, err
	}
	return g.Snapshot(graph.ID{Group: graph.CoreGroup, Kind: "Cluster", Namespace: key.Namespace, Name: key.Name}), nil
}

func read(ctx context.Context, m Management, namespace string) (*graph.Graph, error) {
	c, err := management.OpenConfig(m.RESTConfig(), m.Name())
	if err != nil {
		return nil, err
	}
	g, warnings, err := c.Read(ctx, management.Scope{Namespace: namespace})
	if err == nil && len(warnings) > 0 {
		err = fmt.Errorf("the %s was not read whole: %v", m.Name(), warnings)
	}
	return g, err
}

// movable names what clusterctl would still move, without the shared ClusterClasses.
func movable(ctx context.Context, m Management, namespace string) ([]string, error) {
	g, err := read(ctx, m, namespace)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, id := range g.MoveSet().In() {
		out = append(out, id.String())
	}
	return out, nil
}

// owners compares two snapshots by identity: who is there, and who owns it.
func owners(before, now graph.Snapshot) []string {
	var diff []string
	line := func(n graph.SnapshotNode) string {
		var owners []string
		for _, o := range n.Owners {
			owners = append(owners, fmt.Sprintf("%s controller=%v", o.ID, o.Controller != nil && *o.Controller))
		}
		slices.Sort(owners)
		return strings.Join(owners, ", ")
	}
	for _, n := range before.Nodes {
		other, ok := now.Node(n.ID)
		switch {
		case !n.Moves:
		case !ok:
			diff = append(diff, n.ID.String()+" is not there")
		case line(n) != line(*other):
			diff = append(diff, fmt.Sprintf("%s is owned by %q and was by %q", n.ID, line(*other), line(n)))
		}
	}
	return diff
}

func first(of []string) string {
	if len(of) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s …)", of[0])
}
