package adopt

import (
	"fmt"
	"slices"
	"time"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
	"github.com/move-hook/move-hook/pkg/order"
)

// Decide says where one Cluster stands and what has to be written next. It is
// total and deterministic: what it cannot judge it refuses or waits for. s is not
// changed. The order of judgement:
//
//	not part of a pivot        adopted, with a note
//	the record is closed       adopted, unless marks of ours are left
//	the record is not whole    deferred
//	something is missing       deferred
//	adopting would harm        blocked
//	stand-alone Machines       adopting: a free control plane is held before it is given any
//	owners are wrong           adopting: owners before dependents
//	labels are missing         adopting: those of Machines that were stand-alone
//	no controllers run         adopting: scalers are held; then awaiting-status
//	the Cluster is held by us  adopting: it alone is released
//	status is not rebuilt      awaiting-status
//	marks of ours are left     releasing
//	released not long ago      watching
//	watched                    watching, with the steps that close the record
func Decide(s State) Plan {
	if why := impossible(&s); why != "" {
		return refused(s.Cluster, []finding.Finding{about(idImpossibleState, s.Cluster, why)}, nil)
	}
	v := newView(&s)
	released, isReleased, err := v.released()
	if err != nil {
		f := differs(idImpossibleState, s.Cluster, "metadata.annotations["+labels.Released+"]", v.cluster.Annotations[labels.Released], "a time",
			"the time of the release cannot be read")
		return refused(s.Cluster, []finding.Finding{f}, nil)
	}
	marked := v.marked()
	if p, done := v.outside(len(marked) > 0 || v.arrived(), isReleased); done {
		return p
	}
	if isReleased && len(marked) == 0 && v.cluster != nil {
		return v.watch(released)
	}
	return v.adopt(marked)
}

// impossible says what makes a State no question at all.
func impossible(s *State) string {
	switch {
	case s.Graph == nil:
		return "nothing was read"
	case s.Cluster.GroupKind() != graph.Cluster || s.Cluster.Name == "":
		return "it is no Cluster"
	case s.Record.Snapshot != nil && s.Record.Snapshot.Cluster != s.Cluster:
		return fmt.Sprintf("the record is of %s", s.Record.Snapshot.Cluster)
	}
	return ""
}

// outside answers for Clusters that are not, not yet, or no longer being adopted.
func (v *view) outside(marked, released bool) (Plan, bool) {
	r := v.Record
	announced := v.annotated(labels.Record)
	remembers := v.annotated(labels.Released)
	switch {
	case len(r.Partial) > 0:
		return deferred(v.Cluster, slices.Clone(r.Partial), time.Time{}), true
	case r.Closed && announced && !released:
		// The record was closed by an earlier pivot; the one of this pivot is yet to come.
		return deferred(v.Cluster, []Missing{v.awaitedRecord("is closed, and a record of this pivot was announced")}, time.Time{}), true
	case r.Closed && !marked && !released:
		return adopted(v.Cluster), true
	case r.Snapshot == nil && !r.Closed && announced:
		return deferred(v.Cluster, []Missing{v.awaitedRecord("does not exist")}, time.Time{}), true
	case r.Snapshot == nil && !r.Closed && !v.Named && !marked && !remembers:
		return adopted(v.Cluster, about(idNotPartOfAPivot, v.Cluster, "nothing says that it is being pivoted; nothing is done to it")), true
	}
	return Plan{}, false
}

func (v *view) annotated(key string) bool {
	if v.cluster == nil {
		return false
	}
	_, ok := v.cluster.Annotations[key]
	return ok
}

// awaitedRecord names the record's first ConfigMap, as move-hook pre names it.
func (v *view) awaitedRecord(what string) Missing {
	id := graph.ID{Kind: graph.ConfigMap.Kind, Namespace: v.Cluster.Namespace, Name: "move-hook-record-" + v.Cluster.Name}
	if len(v.Record.Objects) > 0 {
		id = v.Record.Objects[0].ID
	}
	return Missing{Object: id, What: what, Maker: byPre}
}

// adopt is the way to the release.
func (v *view) adopt(marked []*graph.Object) Plan {
	missing := v.incomplete()
	if v.cluster == nil {
		return deferred(v.Cluster, missing, time.Time{})
	}
	verdicts := v.judgeAll(v.members)
	refusals, notes := v.refusals(), v.userPauses()
	rollouts, toCome := v.rollouts()
	refusals, notes = append(refusals, rollouts...), slices.Concat(notes, toCome, v.otherControlPlane())
	for _, d := range verdicts {
		for _, f := range d.faults {
			switch f.cure {
			case wait:
				// Once for each owner: all that it should own waits with it.
				if !slices.ContainsFunc(missing, func(m Missing) bool { return m.Object == f.await.Object }) {
					missing = append(missing, f.await)
				}
			case refuse:
				refusals = append(refusals, f.Finding)
			case keep:
				notes = append(notes, f.Finding)
			case repair:
			}
		}
	}
	if len(missing) > 0 {
		return deferred(v.Cluster, missing, time.Time{})
	}
	if until, newest := v.settled(); v.record == nil && v.Now.Before(until) {
		return deferred(v.Cluster, []Missing{{Object: newest.ID, What: fmt.Sprintf("arrived less than %s ago", v.Policy.Settle)}}, until)
	}
	if len(refusals) > 0 {
		return refused(v.Cluster, refusals, notes)
	}
	if step := v.holdFirst(verdicts); len(step) > 0 {
		return repairing(v.Cluster, []Step{step}, notes)
	}
	if steps := v.repairs(verdicts); len(steps) > 0 {
		return repairing(v.Cluster, append([]Step{v.unheldWatch(marked)}, steps...), notes)
	}
	if step := v.labelStandAlone(); len(step) > 0 {
		return repairing(v.Cluster, []Step{step}, notes)
	}
	if v.ControllersDown {
		return v.scaledDown(notes)
	}
	if c := v.release(v.cluster); !c.Empty() {
		a := ChangeMeta{On: targetOf(v.cluster), Change: c, Reason: "owners are right: its status can be rebuilt"}
		return repairing(v.Cluster, []Step{{a}}, notes)
	}
	if waiting := v.unbuilt(); len(waiting) > 0 {
		return awaiting(v.Cluster, waiting, notes)
	}
	if len(marked) > 0 || len(v.Record.Objects) > 0 || len(v.ownersHeld()) > 0 {
		return releasing(v.Cluster, v.releaseSteps(marked), notes)
	}
	if steps := v.closingSteps(); len(steps) > 0 {
		// Nothing was held, so nothing is watched: only what was announced is left on the Cluster.
		return closing(v.Cluster, steps, notes)
	}
	return adopted(v.Cluster, notes...)
}

// watch is what follows the release: owners are put right where somebody wrote
// old ones again, and nothing else is judged, for controllers are at work.
func (v *view) watch(released time.Time) Plan {
	notes := v.userPauses()
	if v.Record.Closed {
		// Killed while closing: only annotations are left, also those of late arrivals.
		return closing(v.Cluster, append([]Step{v.giveBack(v.judgeAll(v.members))}, v.closingSteps()...), notes)
	}
	if refusals := sourceUnpaused(v); len(refusals) > 0 {
		return refused(v.Cluster, refusals, notes)
	}
	judged := v.members
	if v.record != nil {
		judged = slices.DeleteFunc(slices.Clone(judged), func(o *graph.Object) bool {
			_, ok := v.recorded(o.ID)
			return !ok && !labels.OwnersHeld(labels.MetaOf(o))
		})
	}
	verdicts := v.judgeAll(judged)
	for _, d := range verdicts {
		for _, f := range d.faults {
			if f.cure == keep || f.cure == refuse {
				notes = append(notes, f.Finding)
			}
		}
	}
	notes = verified(notes)
	if moved := v.moved(released); len(moved) > 0 {
		return closing(v.Cluster, append([]Step{v.giveBack(verdicts)}, v.closingSteps()...), append(notes, moved...))
	}
	if steps := v.repairs(verdicts); len(steps) > 0 {
		return repairing(v.Cluster, steps, notes)
	}
	if step := v.giveBack(verdicts); len(step) > 0 {
		return releasing(v.Cluster, []Step{step}, notes)
	}
	if waiting := v.unbuilt(); len(waiting) > 0 {
		return awaiting(v.Cluster, waiting, notes)
	}
	if until := released.Add(v.Policy.WatchAfter); v.Now.Before(until) {
		return watching(v.Cluster, until, []Missing{{Object: v.Cluster, What: fmt.Sprintf("is watched for %s after its release", v.Policy.WatchAfter)}}, notes)
	}
	return closing(v.Cluster, v.closingSteps(), notes)
}

// unheldWatch lets a Cluster that nothing holds be watched from its repair on: its
// controllers are free, and there will be no release to remember. It is the first
// write, so that a process killed between the repairs finds that it was watching.
func (v *view) unheldWatch(marked []*graph.Object) Step {
	if len(marked) > 0 || len(v.Record.Objects) > 0 || v.ControllersDown {
		return nil
	}
	return v.markReleased()
}

func (v *view) judgeAll(objects []*graph.Object) []*verdict {
	out := make([]*verdict, 0, len(objects))
	for _, o := range objects {
		out = append(out, v.judge(o))
	}
	return out
}

// repairs puts the writes into levels of ownership, owners first, one step a level.
func (v *view) repairs(verdicts []*verdict) []Step {
	actions, wants := map[graph.ID]SetOwners{}, map[graph.ID][]graph.ID{}
	for _, d := range verdicts {
		wants[d.object.ID] = d.wants
		if a, ok := d.action(); ok {
			actions[d.object.ID] = a
		}
	}
	if len(actions) == 0 {
		return nil
	}
	ids := func(yield func(graph.ID) bool) {
		for _, d := range verdicts {
			if !yield(d.object.ID) {
				return
			}
		}
	}
	levels, _ := order.Of(ids, func(id graph.ID) []graph.ID { return wants[id] })
	var steps []Step
	for _, level := range levels {
		var step Step
		for _, id := range level {
			if a, ok := actions[id]; ok {
				step = append(step, a)
			}
		}
		steps = append(steps, step)
	}
	return steps
}
