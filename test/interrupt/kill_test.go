package interrupt_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/move-hook/move-hook/test/interrupt"
	"github.com/move-hook/move-hook/test/stack"
)

// writes is how often an uninterrupted run writes on each side, and what it leaves.
type writes struct {
	source, target int
	after          interrupt.State
	// creating and deleting are points half way in what clusterctl does on the target
	// and then on the source.
	creating, deleting interrupt.Point
}

// uninterrupted runs a whole move, once for all tests, and says how much it writes.
func uninterrupted(t *testing.T) writes {
	t.Helper()
	// In a test of its own, so that what looks at its Cluster ends with it.
	measured.Do(func() { t.Run("uninterrupted", func(t *testing.T) { measured.writes = measure(t, begin(t)) }) })
	if measured.writes.source == 0 {
		t.Fatal("an uninterrupted move failed before")
	}
	return measured.writes
}

var measured struct {
	sync.Once
	writes writes
}

func measure(t *testing.T, tr *trial) writes {
	t.Helper()
	if code := tr.run(t, nil, "move"); code != 0 {
		t.Fatalf("an uninterrupted move ends with exit code %d", code)
	}
	if err := errors.Join(tr.neverBoth(), interrupt.Same("the target is not what the source was", tr.before, tr.state(t, world.target)),
		interrupt.Same("something is left on the source", interrupt.State{}, tr.state(t, world.source))); err != nil {
		t.Fatal(err)
	}
	w := tr.written()
	w.after = tr.state(t, world.target)
	w.creating = interrupt.Point{Side: interrupt.OnTarget, N: halfway(t, tr.Target.Mutating(), "create"), When: stack.After}
	w.deleting = interrupt.Point{Side: interrupt.OnSource, N: halfway(t, tr.Source.Mutating(), "delete"), When: stack.After}
	t.Logf("an uninterrupted move writes %d times on the source and %d times on the target; half way are %s and %s", w.source, w.target, w.creating, w.deleting)
	return w
}

// written is how often was written since the proxies last forgot.
func (tr *trial) written() writes {
	return writes{source: len(tr.Source.Mutating()), target: len(tr.Target.Mutating())}
}

// halfway is the number of the write in the middle of those to objects of Cluster API.
func halfway(t *testing.T, requests []stack.Request, verb string) int {
	t.Helper()
	var found []int
	for i, r := range requests {
		if r.Verb == verb && strings.HasSuffix(r.Group, "cluster.x-k8s.io") {
			found = append(found, i+1)
		}
	}
	if len(found) < 3 {
		t.Fatalf("only %d of %v are a %s", len(found), requests, verb)
	}
	return found[len(found)/2]
}

// points are all points of a run, or a seeded sample of them. What is there before
// write N is what is there after write N-1, so there is one before, the first.
func (w writes) points(t *testing.T, sample int) []interrupt.Point {
	var all []interrupt.Point
	for _, of := range []struct {
		side   interrupt.Side
		writes int
	}{{interrupt.OnSource, w.source}, {interrupt.OnTarget, w.target}} {
		all = append(all, interrupt.Point{Side: of.side, N: 1, When: stack.Before})
		for n := 1; n <= of.writes; n++ {
			all = append(all, interrupt.Point{Side: of.side, N: n, When: stack.After})
		}
	}
	if soak() {
		return all
	}
	random := interrupt.Seeded(t)
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(sample, len(all))]
}

// TestP4_MoveKilledAnywhereThenResumed kills `move-hook move`, its pre, its clusterctl
// and its post, at a write on either side, before or after it took effect.
func TestP4_MoveKilledAnywhereThenResumed(t *testing.T) {
	killed(t, (*trial).resumed)
}

// killed kills a move at every point that is chosen, and lets judge say what
// becomes of it.
func killed(t *testing.T, judge func(tr *trial, t *testing.T, whole writes) string) {
	t.Helper()
	whole := uninterrupted(t)
	points := whole.points(t, 4)
	rows := interrupt.Each(t, points, func(t *testing.T, i int) interrupt.Row {
		tr := begin(t)
		tr.run(t, &points[i], "move")
		return interrupt.Row{Point: points[i].String() + " of move", Result: judge(tr, t, whole)}
	})
	interrupt.Table(t, rows)
}

// resumed runs resume and judges the end.
func (tr *trial) resumed(t *testing.T, whole writes) string {
	t.Helper()
	code := tr.run(t, nil, "resume")
	if code != 0 {
		t.Errorf("resume ends with exit code %d", code)
		return fmt.Sprintf("not recovered: exit code %d", code)
	}
	if err := tr.isMovedFrom(t, whole); err != nil {
		t.Error(err)
		return "not recovered: the end is another"
	}
	return "recovered"
}

// isMovedFrom: the target is what an uninterrupted move leaves, and the source is empty.
func (tr *trial) isMovedFrom(t *testing.T, whole writes) error {
	t.Helper()
	return errors.Join(tr.neverBoth(), interrupt.Same("the target is not what an uninterrupted move leaves", whole.after, tr.state(t, world.target)),
		interrupt.Same("something is left on the source", interrupt.State{}, tr.state(t, world.source)))
}

// isRestored: the source is what it was before, and the target is empty.
func (tr *trial) isRestored(t *testing.T, _ writes) error {
	t.Helper()
	return errors.Join(tr.neverBoth(), interrupt.Same("the source is not what it was", tr.before, tr.state(t, world.source)), tr.emptyTarget(t))
}

// TestP4_MoveKilledAnywhereThenRolledBack: the source is again what it was before
// pre, as long as post has not begun to release the target.
func TestP4_MoveKilledAnywhereThenRolledBack(t *testing.T) {
	killed(t, (*trial).rolledBack)
}

// rolledBack runs rollback and judges the end. Refused, it has to be for a reason,
// and resume has to work.
func (tr *trial) rolledBack(t *testing.T, whole writes) string {
	t.Helper()
	switch code := tr.run(t, nil, "rollback"); code {
	case 0:
	case 4:
		said := tr.Said()
		if !strings.Contains(said, "AdoptionFinished") {
			t.Error("rollback refuses for another reason than a finished adoption")
			return "not recovered: " + said
		}
		return "refused: AdoptionFinished, then " + tr.resumed(t, whole)
	default:
		t.Errorf("rollback ends with exit code %d", code)
		return fmt.Sprintf("not recovered: exit code %d", code)
	}
	if err := tr.isRestored(t, whole); err != nil {
		t.Error(err)
		return "not recovered: the end is another"
	}
	return "recovered"
}

// emptyTarget: what no record names stays there, for it might have been there before.
func (tr *trial) emptyTarget(t *testing.T) error {
	t.Helper()
	have := tr.state(t, world.target)
	delete(have, "ConfigMap/moved-by-label")
	delete(have, "ClusterClass.cluster.x-k8s.io/class")
	return interrupt.Same("something is left on the target", interrupt.State{}, have)
}
