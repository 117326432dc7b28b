package adopt

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/move-hook/move-hook/pkg/graph"
)

// restored is a target after a restore: complete, held, labelled, without owners.
func restored() *memory {
	w := newMemory()
	for _, o := range (sample{name: "c1", controlPlane: 3, workers: []workers{{name: "md-1", replicas: 4}}}).objects() {
		w.create(arrival{owners: "none", held: true, pending: true, status: true}.carried(o))
	}
	w.tick(time.Minute)
	return w
}

// spy lets a test answer in the World's place.
type spy struct {
	*memory
	apply func(a Action, dryRun bool) (Outcome, error, bool)
}

func (s *spy) Apply(ctx context.Context, a Action, dryRun bool) (Outcome, error) {
	if o, err, mine := s.apply(a, dryRun); mine {
		return o, err
	}
	return s.memory.Apply(ctx, a, dryRun)
}

func TestPass_ProbesEverythingBeforeTheFirstWrite(t *testing.T) {
	w := restored()
	refused := errors.New("denied by a policy")
	s := &spy{memory: w, apply: func(a Action, dryRun bool) (Outcome, error, bool) {
		// The very last action of the plan, in its last step.
		return 0, refused, dryRun && a.Target().Name == "md-1-3" && a.Target().GroupKind() == graph.Secret
	}}
	p, err := Pass(context.Background(), s, w.cluster)
	if !errors.Is(err, refused) {
		t.Errorf("err = %v, want the probe's", err)
	}
	if len(w.writes) > 0 || p.Writes() == 0 {
		t.Errorf("%d of %d planned writes happened although the probe failed", len(w.writes), p.Writes())
	}
	if want := p.Writes() - 1; w.dryRuns != want {
		t.Errorf("%d actions were probed, want %d beside the refused one", w.dryRuns, want)
	}
}

func TestPass_OwnersAreLookedAtAgain(t *testing.T) {
	for name, meddle := range map[string]func(*memory){
		"deleted": func(w *memory) { delete(w.objects, coreID(graph.Machine, "c1-cp-0")) },
		"being deleted": func(w *memory) {
			metaOf(w.objects[w.cluster])["deletionTimestamp"] = w.now.Format(time.RFC3339)
		},
		"recreated": func(w *memory) { metaOf(w.objects[w.cluster])["uid"] = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			w := restored()
			w.meddle = meddle
			if _, err := Pass(context.Background(), w, w.cluster); err != nil {
				t.Fatal(err)
			}
			if len(w.writes) > 0 {
				t.Errorf("wrote %v", w.writes)
			}
		})
	}
}

func TestPass_EndsWhereTheWorldMoved(t *testing.T) {
	w := restored()
	moved := coreID(graph.Machine, "c1-cp-1")
	w.meddle = func(w *memory) { // between the probe and the write
		o := clone(w.objects[moved])
		metaOf(o)["ownerReferences"] = []any{content{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "w"}}
		w.store(moved, o)
	}
	p, err := Pass(context.Background(), w, w.cluster)
	if err != nil {
		t.Fatal(err)
	}
	steps := slices.Collect(p.Steps())
	if len(steps) < 3 {
		t.Fatalf("the plan has %d steps", len(steps))
	}
	// The rest of the step ran beside it, the next step did not.
	if want := len(steps[0]) + len(steps[1]) - 1; len(w.writes) != want {
		t.Errorf("%d writes, want the first two steps without the moved Machine: %d", len(w.writes), want)
	}
	if slices.ContainsFunc(w.writes, func(s string) bool { return strings.Contains(s, moved.String()+":") }) {
		t.Errorf("%s was written over", moved)
	}
}

func TestPass_AnErrorEndsItAfterTheStep(t *testing.T) {
	w := restored()
	away := errors.New("connection lost")
	s := &spy{memory: w, apply: func(a Action, dryRun bool) (Outcome, error, bool) {
		return 0, away, !dryRun && a.Target().Name == "c1-cp" && a.Target().GroupKind() == graph.KubeadmControlPlane
	}}
	p, err := Pass(context.Background(), s, w.cluster)
	if !errors.Is(err, away) {
		t.Fatalf("err = %v", err)
	}
	first := slices.Collect(p.Steps())[0]
	if len(w.writes) != len(first)-1 {
		t.Errorf("%d writes, want only the others of the first step: %d", len(w.writes), len(first)-1)
	}
}

func TestPass_SideBySideIsBounded(t *testing.T) {
	w := restored()
	var running, most atomic.Int32
	gate := make(chan struct{})
	s := &spy{memory: w, apply: func(Action, bool) (Outcome, error, bool) {
		n := running.Add(1)
		for {
			m := most.Load()
			if n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		if n == sideBySide {
			close(gate) // the step is wider than the bound: now as many run as ever will
		}
		<-gate
		running.Add(-1)
		return Applied, nil, true
	}}
	wide := make(Step, 0, 20)
	for _, id := range w.ids()[:20] {
		wide = append(wide, CloseRecord{On: Target{ID: id}})
	}
	var closed atomic.Bool
	s.apply = once(&closed, s.apply)
	if _, err := apply(context.Background(), s, wide, false); err != nil {
		t.Fatal(err)
	}
	if got := most.Load(); got != sideBySide {
		t.Errorf("%d at once, want %d", got, sideBySide)
	}
}

// once keeps a gate from being closed twice: after the first time everything passes.
func once(done *atomic.Bool, f func(Action, bool) (Outcome, error, bool)) func(Action, bool) (Outcome, error, bool) {
	var n atomic.Int32
	return func(a Action, dryRun bool) (Outcome, error, bool) {
		if n.Add(1) > sideBySide || done.Load() {
			done.Store(true)
			return Applied, nil, true
		}
		return f(a, dryRun)
	}
}

func TestPass_CancelledBeforeTheStepWritesNothing(t *testing.T) {
	w := restored()
	ctx, cancel := context.WithCancel(context.Background())
	w.meddle = func(*memory) { cancel() }
	if _, err := Pass(ctx, w, w.cluster); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	if len(w.writes) > 0 {
		t.Errorf("wrote %v", w.writes)
	}
}

func TestPass_SecondRunWritesNothing(t *testing.T) {
	w := restored()
	if p, err := w.finish(); err != nil || p.Phase != Adopted {
		t.Fatalf("%s, %v", p, err)
	}
	w.writes, w.dryRuns = nil, 0
	w.named = true // also when it is asked for by name
	if p, err := w.finish(); err != nil || p.Phase != Adopted {
		t.Fatalf("%s, %v", p, err)
	}
	if len(w.writes)+w.dryRuns > 0 {
		t.Errorf("the second run wrote %v", w.writes)
	}
}

func TestPass_EventsNameWhatIsMissing(t *testing.T) {
	w := newMemory()
	s := sample{name: "c1", controlPlane: 1, workers: []workers{{name: "md-1", replicas: 1}}}
	w.record = snapshotOf(w.cluster, s.objects())
	w.create(recordMap("c1"))
	for _, o := range s.objects()[:3] { // the Cluster, its infrastructure and the control plane
		w.create(arrival{owners: "none"}.carried(o))
	}
	if _, err := w.settle(); err != nil {
		t.Fatal(err)
	}
	e := w.events[0]
	if e.Reason != "AdoptionDeferred" || e.Warning || e.On.Kind != "KubeadmControlPlane" {
		t.Errorf("event %+v", e)
	}
	if want := "Waiting for Secret default/c1-ca does not exist (the move or restore); "; !strings.HasPrefix(e.Message, want) {
		t.Errorf("message %q", e.Message)
	}
	if want := "; and 15 more"; !strings.HasSuffix(e.Message, want) {
		t.Errorf("message %q, want %q at its end", e.Message, want)
	}
	w.other = OtherUnpaused
	for _, o := range s.objects() {
		w.create(arrival{owners: "none"}.carried(o))
	}
	if _, err := w.settle(); err != nil {
		t.Fatal(err)
	}
	if e := w.events[len(w.events)-1]; e.Reason != "AdoptionBlocked" || !e.Warning {
		t.Errorf("event %+v", e)
	}
}

func TestPass_ObserveFails(t *testing.T) {
	away := errors.New("away")
	w := &blind{memory: newMemory(), err: away}
	if p, err := Pass(context.Background(), w, w.cluster); !errors.Is(err, away) || p.Writes() > 0 {
		t.Errorf("%s, %v", p, err)
	}
}

type blind struct {
	*memory
	err error
}

func (b *blind) Observe(context.Context, graph.ID) (State, error) { return State{}, b.err }
