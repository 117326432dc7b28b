package pivot

import (
	"context"
	"fmt"
	"slices"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// pause pauses the losing end's Clusters, so that no controller there sees what is
// taken away.
func (t *transfer) pause(ctx context.Context) error {
	if t.lose == nil {
		return nil
	}
	for _, cluster := range t.clusters {
		o, ok := t.lose.graph.Object(cluster)
		if !ok || o.Facts.Paused {
			continue
		}
		if err := t.lose.Pause(ctx, target(o), true); err != nil {
			return err
		}
		t.wrote(flow.Wrote(cluster, "paused on the "+t.lose.side, false))
	}
	return t.look(ctx)
}

// empty takes everything off the losing end that is whole on the winning one,
// dependents first (mover.go, deleteGroup in reverse order).
func (t *transfer) empty(ctx context.Context) error {
	if t.lose == nil {
		return nil
	}
	for _, cluster := range t.clusters {
		if o, ok := t.lose.graph.Object(cluster); ok && !o.Facts.Paused {
			return fmt.Errorf("%s is not paused on %s: its controllers would delete real infrastructure, so nothing was removed there", cluster, t.lose.Name())
		}
	}
	removable := t.removable()
	for _, level := range t.members.Reverse() {
		err := t.each(ctx, level, func(ctx context.Context, id graph.ID) error {
			o, ok := t.lose.graph.Object(id)
			if !ok || !removable(id) {
				return nil
			}
			if err := t.lose.Remove(ctx, target(o)); err != nil {
				return err
			}
			t.wrote(flow.Wrote(id, "removed from the "+t.lose.side, false))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return t.look(ctx)
}

// discard ends the deletions that an earlier run began on the losing end, where the
// winning one has the object: clusterctl would update what is about to go.
func (t *transfer) discard(ctx context.Context) error {
	for _, level := range t.members.Reverse() {
		for _, id := range level {
			o, _ := t.lose.graph.Object(id)
			if p := presenceOf(t.lose.graph, id); p != leaving && p != dying || presenceOf(t.win.graph, id) != there {
				continue
			}
			if err := t.lose.Remove(ctx, target(o)); err != nil {
				return err
			}
			t.wrote(flow.Wrote(id, "removed from the "+t.lose.side, false))
		}
	}
	return nil
}

// removable says what may be taken off the losing end: nothing of another namespace,
// nothing that is cluster-scoped or owned by what is (deleteSourceObject: isGlobal,
// isGlobalHierarchy), and what Clusters share only where no other Cluster is there.
func (t *transfer) removable() func(graph.ID) bool {
	mine := map[graph.ID]bool{}
	recorded := map[graph.ID]bool{}
	for _, s := range t.records {
		for _, id := range alone(s) {
			mine[id] = true
		}
		for i := range s.Nodes {
			recorded[s.Nodes[i].ID] = true
		}
	}
	shared, owners := t.shared(), t.ownersOf()
	var global func(id graph.ID, depth int) bool
	global = func(id graph.ID, depth int) bool {
		return id.Namespace == "" || depth < 16 && slices.ContainsFunc(owners(id), func(o graph.ID) bool { return global(o, depth+1) })
	}
	return func(id graph.ID) bool {
		if id.Namespace != t.namespace {
			return false
		}
		o, ok := t.lose.graph.Object(id)
		switch {
		case mine[id] || ok && graph.IsRecord(o):
			return true
		case shared || t.borrowed && !recorded[id]:
			return false
		}
		return !global(id, 0)
	}
}

// refusal is why nothing may be unpaused.
type refusal struct{ why string }

func (r refusal) Error() string { return r.why }

// resume unpauses the winning end in clusterctl's order, ClusterClasses first, and
// takes off only what the records say is not the user's. A ClusterClass that moves was
// free when clusterctl began, or it would have refused
// (mover.go, checkClusterClassesNotPaused). The error is a refusal where the other
// copy may be reconciled.
func (t *transfer) resume(ctx context.Context) error {
	if t.lose != nil {
		for _, cluster := range t.clusters {
			if err := mayUnpause(ctx, cluster, t.lose); err != nil {
				return err
			}
		}
	}
	if err := t.look(ctx); err != nil {
		return err
	}
	for _, o := range t.win.graph.OfKind(graph.ClusterClass) {
		if ours, err := t.isPausedClass(ctx, o); err != nil {
			return err
		} else if !ours {
			continue
		}
		c := labels.Change{DropAnnotations: []string{labels.Paused}}
		if err := t.apply(ctx, t.win, adopt.ChangeMeta{On: target(o), Change: c, Reason: "clusterctl had paused it"}, "unpaused"); err != nil {
			return err
		}
	}
	for _, cluster := range t.clusters {
		o, ok := t.win.graph.Object(cluster)
		if !ok || !o.Facts.Paused || t.pausedByUser(cluster) {
			continue
		}
		if t.lose != nil {
			if err := mayUnpause(ctx, cluster, t.lose); err != nil {
				return err
			}
		}
		if err := t.win.Pause(ctx, target(o), false); err != nil {
			return err
		}
		t.wrote(flow.Wrote(cluster, "unpaused on the "+t.win.side, false))
	}
	return nil
}

// clusterctlManager is the field manager of what clusterctl writes.
const clusterctlManager = "clusterctl"

// isPausedClass says whether clusterctl paused this ClusterClass of the winning end: the
// records tell, and for one that no Cluster uses and no record has, its managed fields.
func (t *transfer) isPausedClass(ctx context.Context, o *graph.Object) (bool, error) {
	switch {
	case !labels.PausedByAnnotation(labels.MetaOf(o)) || t.pausedByUser(o.ID):
		return false, nil
	case slices.ContainsFunc(t.members, func(level []graph.ID) bool { return slices.Contains(level, o.ID) }):
		return true, nil
	case o.Namespace != t.namespace:
		return false, nil
	}
	by, err := t.win.AnnotatedBy(ctx, o.ID, labels.Paused)
	return by == clusterctlManager, err
}

func (t *transfer) pausedByUser(id graph.ID) bool {
	n := t.node(id)
	return n != nil && n.PausedByUser
}

// mayUnpause takes an uncached look at the other copy: it has to be paused or absent
// before this one may be reconciled.
func mayUnpause(ctx context.Context, cluster graph.ID, other *end) error {
	switch side := other.OtherSide(ctx, cluster); side {
	case adopt.OtherAbsent, adopt.OtherPaused:
		return nil
	case adopt.OtherUnpaused:
		return refusal{fmt.Sprintf("%s is not paused on the %s: nothing is unpaused, or both copies would be reconciled", cluster, other.side)}
	default:
		return fmt.Errorf("%s cannot be read on the %s (%s), so it is not unpaused on the other side: if that management cluster is gone for good, say --other-side-is-gone",
			cluster, other.side, side)
	}
}

// foreign are the Machines on the losing end that no record has: they are real, and
// the winning end never knew them.
func (t *transfer) foreign() []graph.ID {
	var found []graph.ID
	for _, cluster := range t.clusters {
		for _, id := range t.losing().Belongs(cluster) {
			if id.GroupKind() == graph.Machine && t.node(id) == nil {
				found = append(found, id)
			}
		}
	}
	return found
}
