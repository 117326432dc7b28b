package pivot

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/watch"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// pair are the two management clusters of a flow; one is nil where it is gone.
type pair struct{ source, target *end }

func sidesOf(source, target *management.Cluster) pair {
	var p pair
	if source != nil {
		p.source = &end{Cluster: source, side: "source"}
	}
	if target != nil {
		p.target = &end{Cluster: target, side: "target"}
	}
	return p
}

// unlessGone gives a management cluster, or nil where it is gone for good: the user has
// to say so, and it must not answer. Whoever is told that it cannot be read is told of
// the way out as well, which is a flag of the command named.
func unlessGone(ctx context.Context, c *management.Cluster, gone bool, namespace, command string, progress flow.Progress) (*management.Cluster, error) {
	if c == nil {
		return nil, nil
	}
	_, err := c.Clusters(ctx, namespace)
	var answer apierrors.APIStatus
	switch {
	case err == nil && gone:
		progress.Say(flow.Update{Time: time.Now(), Warning: true, Message: c.Name() + " answers: it is looked at, although --other-side-is-gone says that it is gone"})
	case err == nil:
	case ctx.Err() != nil:
		return nil, err
	case errors.As(err, &answer):
		// Refused rights or an overloaded server are not a cluster that is gone.
		return nil, fmt.Errorf("%s cannot be read, but something answers there: %w; if it is gone for good, leave out its kubeconfig and say `move-hook %s --other-side-is-gone`",
			c.Name(), err, command)
	case !gone:
		return nil, fmt.Errorf("%s cannot be read, so nobody knows what it reconciles: %w; if it is gone for good, say `move-hook %s --other-side-is-gone`",
			c.Name(), err, command)
	default:
		progress.Say(flow.Update{Time: time.Now(), Warning: true, Message: c.Name() + " is taken for gone, as --other-side-is-gone says: " + err.Error()})
		c = nil
	}
	return c, nil
}

// lock takes the Lease of the namespace, on the source as long as it is there: move,
// resume and rollback exclude each other.
func (p pair) lock(namespace string, progress flow.Progress) func(context.Context) (context.Context, func(), error) {
	return func(ctx context.Context) (context.Context, func(), error) {
		for _, e := range []*end{p.source, p.target} {
			if e == nil {
				continue
			}
			exists, err := e.NamespaceExists(ctx, namespace)
			if err != nil {
				return nil, nil, err
			}
			if exists {
				return watch.Lock(ctx, e.Clientset().CoordinationV1(), namespace, progress)
			}
		}
		return ctx, func() {}, nil
	}
}

// transferred is what a transfer came to: findings stop it before its first write.
type transferred struct {
	writes   []flow.Write
	findings []finding.Finding
}

// transferOf prepares a transfer of Clusters with their own records.
func transferOf(win, lose *end, namespace string, clusters []graph.ID, records map[graph.ID]graph.Snapshot, progress flow.Progress) *transfer {
	t := &transfer{win: win, lose: lose, namespace: namespace, clusters: clusters, records: map[graph.ID]graph.Snapshot{}, progress: progress}
	for _, c := range clusters {
		if s, ok := records[c]; ok {
			t.records[c] = s
		}
	}
	return t
}

// thaw makes a source that clusterctl has paused, and deleted nothing from, movable
// again.
func (p pair) thaw(o MoveOptions) func(context.Context, todo) (transferred, error) {
	return func(ctx context.Context, left todo) (transferred, error) {
		t := transferOf(p.source, p.target, o.Namespace, left.thaw, left.records, o.Progress)
		if err := t.look(ctx); err != nil {
			return transferred{}, err
		}
		if o.DryRun {
			return transferred{writes: planned(left.thaw, "unpaused on the source")}, nil
		}
		err := inOrder(ctx, t.discard, t.look, t.resume)
		return transferred{writes: t.writes}, err
	}
}

// finish does what clusterctl had not done any more when it was interrupted after
// its first deletion: it completes the target, removes the rest of the source, and
// unpauses the target. The source is never unpaused.
func (p pair) finish(o MoveOptions) func(context.Context, todo) (transferred, error) {
	return func(ctx context.Context, left todo) (transferred, error) {
		t := transferOf(p.target, p.source, o.Namespace, left.finish, left.records, o.Progress)
		if err := t.look(ctx); err != nil {
			return transferred{}, err
		}
		if found := t.obstacles(); len(found) > 0 {
			return transferred{findings: found}, nil
		}
		if o.DryRun {
			return transferred{writes: append(t.planned(), planned(left.finish, "unpaused on the target")...)}, nil
		}
		steps := []func(context.Context) error{t.complete, t.mark, t.empty, t.resume}
		err := inOrder(ctx, steps...)
		return transferred{writes: t.writes}, err
	}
}

func inOrder(ctx context.Context, steps ...func(context.Context) error) error {
	for _, do := range steps {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// planned are the writes of a dry run.
func (t *transfer) planned() []flow.Write {
	var writes []flow.Write
	removable := func(graph.ID) bool { return false }
	if t.lose != nil {
		removable = t.removable()
	}
	for _, level := range t.members {
		for _, id := range level {
			if f := t.fateOf(id); f != keep {
				writes = append(writes, flow.Wrote(id, f.String()+" to the "+t.win.side, true))
			}
			if p := presenceOf(t.losing(), id); p != absent && p != unseen && removable(id) {
				writes = append(writes, flow.Wrote(id, "removed from the "+t.lose.side, true))
			}
		}
	}
	return writes
}

func planned(clusters []graph.ID, what string) []flow.Write {
	var writes []flow.Write
	for _, c := range clusters {
		writes = append(writes, flow.Wrote(c, what, true))
	}
	return writes
}

// goOn goes on where an earlier run was interrupted in the middle of clusterctl.
// What was never begun comes after it: clusterctl refuses a namespace with a paused
// Cluster.
func (m *moving) goOn(ctx context.Context) (end bool, err error) {
	for _, part := range []struct {
		name     string
		clusters []graph.ID
		run      func(context.Context, todo) (transferred, error)
	}{
		{"Completing the target and removing the rest of the source", m.todo.finish, m.finish},
		{"Making the source movable again", m.todo.thaw, m.thaw},
	} {
		if len(part.clusters) == 0 {
			continue
		}
		m.o.Progress.Say(flow.Update{Time: time.Now(), Step: part.name})
		did, err := part.run(ctx, m.todo)
		m.result.Writes = append(m.result.Writes, did.writes...)
		var refused refusal
		switch {
		case errors.As(err, &refused):
			m.result.Outcome, m.result.Message = flow.Blocked, refused.Error()
			return true, nil
		case err != nil:
			return true, err
		case len(did.findings) > 0:
			m.result.Outcome, m.result.Findings = flow.Blocked, did.findings
			m.result.Message = fmt.Sprintf("the target cannot be completed, nothing was changed: %s of the record not to be had", objectsOf(len(did.findings)))
			return true, nil
		}
	}
	if m.o.DryRun && len(m.todo.finish)+len(m.todo.thaw) > 0 {
		m.result.Message = "dry run: nothing was changed; an interrupted move would go on"
		return true, nil
	}
	return false, nil
}

// heldByAnother is the outcome where another run works on the namespace.
func (m *moving) heldByAnother(err error) error {
	var held *watch.HeldError
	if !errors.As(err, &held) {
		return err
	}
	m.result.Outcome, m.result.Message = flow.Deferred, held.Error()
	return nil
}

func objectsOf(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}
