package adopt

import (
	"slices"
	"time"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// releaseSteps end the adoption of a Cluster whose owners and status are right.
//
// First the Cluster is told when, so that a kill in between leaves a time to watch
// from. Then the label goes, the control plane's last of all: as long as it is
// there, adoption is not finished. Its hold goes in the same write.
//
// The scalers follow from the inside out. The control plane comes first, for
// workers follow it and never lead. MachineSets and MachinePools come before
// MachineDeployments: a free set beside a held deployment only replaces what dies,
// while a free deployment beside held sets would add new sets and could not shrink
// the old. MachineHealthChecks come last: they delete, and what they judge by has
// only just been rebuilt. Owners that an armed target took off are the last to be
// dropped, in the pass that follows: see giveBack.
func (v *view) releaseSteps(marked []*graph.Object) []Step {
	steps := make([]Step, 6)
	steps[0] = v.markReleased()
	for _, o := range marked {
		if o.ID == v.Cluster {
			// Its hold went before the status was awaited; a label on it goes with the time.
			steps[0] = Step{withClear(steps[0], v.cluster)}
			continue
		}
		m := labels.MetaOf(o)
		c := v.release(o)
		if labels.IsPending(m) {
			c.DropLabels = labels.ClearPending(m).DropLabels
		}
		i, why := rank(o)
		if v.controlPlane != nil && o.ID == v.controlPlane.ID {
			i, why = 2, "adopted: the control plane is free"
		}
		steps[i] = append(steps[i], ChangeMeta{On: targetOf(o), Change: c, Reason: why})
	}
	return steps
}

// release takes our hold off. Where the record says that its user had paused an
// object, the pause stays, though an armed target put our mark beside it.
func (v *view) release(o *graph.Object) labels.Change {
	c := labels.Release(labels.MetaOf(o))
	if n, ok := v.recorded(o.ID); ok && n.PausedByUser {
		c.DropAnnotations = slices.DeleteFunc(c.DropAnnotations, func(k string) bool { return k == labels.Paused })
	}
	return c
}

func rank(o *graph.Object) (step int, why Reason) {
	switch o.GroupKind() {
	case graph.MachineDeployment:
		return 4, "adopted: released"
	case graph.MachineHealthCheck:
		return 5, "adopted: released last, it deletes"
	case graph.MachineSet, graph.MachinePool:
		return 3, "adopted: released"
	case graph.Machine:
		return 1, "adopted"
	}
	if isControlPlaneKind(o.GroupKind()) {
		return 2, "adopted: the control plane is free"
	}
	return 3, "adopted: released"
}

// markReleased notes on the Cluster when its scalers were released. It is never
// earlier than the Cluster's own creation, whatever this clock says: see released.
func (v *view) markReleased() Step {
	at := v.Now
	if at.Before(v.cluster.Created) {
		at = v.cluster.Created
	}
	c := labels.Annotate(labels.MetaOf(v.cluster), labels.Released, at.UTC().Format(time.RFC3339))
	if c.Empty() {
		return nil
	}
	return Step{ChangeMeta{On: targetOf(v.cluster), Change: c, Reason: "the watch begins"}}
}

func withClear(step Step, cluster *graph.Object) Action {
	m := labels.MetaOf(cluster)
	a := ChangeMeta{On: targetOf(cluster), Reason: "adopted"}
	if len(step) > 0 {
		a = step[0].(ChangeMeta)
	}
	if labels.IsPending(m) {
		a.Change.DropLabels = labels.ClearPending(m).DropLabels
	}
	return a
}

// closingSteps close the record before they drop what the Cluster remembers: killed
// in between, a closed record beside the time of the release says that only the
// annotations are left to drop.
func (v *view) closingSteps() []Step {
	var record Step
	if !v.Record.Closed {
		for _, t := range v.Record.Objects {
			record = append(record, CloseRecord{On: t, At: v.Now, Reason: "adoption finished"})
		}
	}
	steps := tidy([]Step{record})
	if c := labels.DropAnnotations(labels.MetaOf(v.cluster), labels.Record, labels.Released); !c.Empty() {
		steps = append(steps, Step{ChangeMeta{On: targetOf(v.cluster), Change: c, Reason: "adoption finished"}})
	}
	return steps
}

// moved says which Machines appeared or went since the release: with a record
// those that are not in it, or in it and not there; else by their own times.
func (v *view) moved(released time.Time) []finding.Finding {
	var out []finding.Finding
	appeared := func(m *graph.Object) bool {
		_, ok := v.recorded(m.ID)
		return !ok
	}
	if v.record == nil {
		// Both times have a grain of a second; at the release the last arrival was older than --settle.
		appeared = func(m *graph.Object) bool { return !m.Created.Before(released) }
	}
	for _, m := range v.machines {
		switch {
		case m.Deleting:
			out = append(out, about(idMachineGone, m.ID, "it is going, after the scalers were released"))
		case appeared(m):
			out = append(out, about(idMachineAppeared, m.ID, "it appeared after the scalers were released"))
		}
	}
	if v.record == nil {
		return out
	}
	for i := range v.record.Nodes {
		n := &v.record.Nodes[i]
		_, exists := v.Graph.Object(n.ID)
		if n.GroupKind() == graph.Machine && n.Moves && !exists && v.Graph.Listed(graph.Machine, n.Namespace) {
			out = append(out, about(idMachineGone, n.ID, "it is gone, after the scalers were released"))
		}
	}
	return out
}

// userPauses notes the scalers that stay paused because their user paused them.
func (v *view) userPauses() []finding.Finding {
	var out []finding.Finding
	for _, o := range v.own {
		scales := v.isScaler(o) || o.GroupKind() == graph.MachineHealthCheck
		stays := !slices.Contains(v.release(o).DropAnnotations, labels.Paused)
		if scales && labels.PausedByAnnotation(labels.MetaOf(o)) && stays {
			out = append(out, about(idUserPause, o.ID, "its user paused it; it stays paused"))
		}
	}
	return out
}
