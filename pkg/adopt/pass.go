package adopt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/move-hook/move-hook/pkg/graph"
)

// sideBySide bounds how many actions of one step run at the same time.
const sideBySide = 8

// Pass observes one Cluster, decides, and writes what was decided: everything is
// probed with a dry run before the first write, the owners that will be referred
// to are looked at once more, and each step ends before the next begins.
//
// It returns the plan it followed, also beside an error. A plan with Writes() > 0
// means "observe again", whether or not all of it was written: a pass ends without
// error where the world moved on. The error is the World's; what was asked of the
// server may then have happened or not.
func Pass(ctx context.Context, w World, cluster graph.ID) (Plan, error) {
	state, err := w.Observe(ctx, cluster)
	if err != nil {
		return Plan{Cluster: cluster}, err
	}
	plan := Decide(state)
	if e, ok := eventOf(&state, plan); ok {
		w.Tell(e)
	}
	if plan.Writes() == 0 {
		return plan, nil
	}
	for step := range plan.Steps() {
		if moved, err := apply(ctx, w, step, true); err != nil || moved {
			return plan, err
		}
	}
	if owners := plan.Owners(); len(owners) > 0 {
		if ok, err := w.Confirm(ctx, owners); err != nil || !ok {
			return plan, err
		}
	}
	for step := range plan.Steps() {
		if moved, err := apply(ctx, w, step, false); err != nil || moved {
			return plan, err
		}
	}
	if plan.Closes() {
		w.Tell(Event{Cluster: cluster, On: speaker(&state), Reason: "Adopted", Message: "Adopted " + cluster.String() + ": owners are right, labels and holds are gone"})
	}
	return plan, nil
}

// apply performs the actions of one step side by side and waits for all of them.
func apply(ctx context.Context, w World, step Step, dryRun bool) (moved bool, err error) {
	type result struct {
		outcome Outcome
		err     error
	}
	results := make([]chan result, len(step))
	slots := make(chan struct{}, sideBySide)
	for i, a := range step {
		results[i] = make(chan result, 1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			if ctx.Err() != nil {
				results[i] <- result{err: ctx.Err()}
				return
			}
			outcome, err := w.Apply(ctx, a, dryRun)
			results[i] <- result{outcome, err}
		}()
	}
	var errs []error
	for _, c := range results {
		r := <-c
		moved = moved || r.outcome == Moved
		errs = append(errs, r.err)
	}
	return moved, errors.Join(errs...)
}

// eventOf is what a plan has to say before it is carried out. That the same thing
// is not said twice is the World's memory.
func eventOf(s *State, p Plan) (Event, bool) {
	e := Event{Cluster: p.Cluster, On: speaker(s)}
	var things []string
	switch p.Phase {
	case Deferred:
		e.Reason = "AdoptionDeferred"
		for _, m := range p.Waiting {
			things = append(things, m.String())
		}
		e.Message = "Waiting for " + firstOf(things)
	case Blocked:
		e.Reason, e.Warning = "AdoptionBlocked", true
		for _, f := range p.Refusals {
			things = append(things, f.String())
		}
		e.Message = "Refusing to adopt: " + firstOf(things)
	case Adopting, AwaitingStatus, Releasing, Watching, Adopted:
		return Event{}, false
	}
	return e, true
}

func firstOf(things []string) string {
	const shown = 3
	if len(things) <= shown {
		return strings.Join(things, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(things[:shown], "; "), len(things)-shown)
}

// speaker is the object that Events are about: the control plane, or the Cluster
// where that is not there. Zero while neither is.
func speaker(s *State) Target {
	if s.Graph == nil {
		return Target{}
	}
	cluster, ok := s.Graph.Object(s.Cluster)
	if !ok {
		return Target{}
	}
	if ref, ok := cluster.RefTo(graph.FieldControlPlaneRef); ok {
		if cp, ok := s.Graph.Object(ref); ok {
			return targetOf(cp)
		}
	}
	return targetOf(cluster)
}
