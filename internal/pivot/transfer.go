package pivot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/preflight"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
	"github.com/move-hook/move-hook/pkg/order"
)

// end is one end of a transfer.
type end struct {
	*management.Cluster
	// side is "source" or "target".
	side  string
	graph *graph.Graph
}

// transfer makes one end whole with what the other still has, empties the other and
// lets the first one go on. After an interrupted move the target wins and the source
// is emptied; in a rollback it is the other way round. Nothing is remembered: every
// call looks at both ends, so it may be killed anywhere and run again.
type transfer struct {
	// win is to have everything; lose is to be emptied, and nil where it is gone for good.
	win, lose *end
	namespace string
	clusters  []graph.ID
	records   map[graph.ID]graph.Snapshot
	// borrowed: what no record names stays on the losing end, which had objects of its own.
	borrowed bool
	progress flow.Progress

	// members are in the order of creation.
	members order.Levels
	uids    map[graph.ID]types.UID

	mu     sync.Mutex
	writes []flow.Write
}

// look reads both ends and says what is where.
func (t *transfer) look(ctx context.Context) error {
	scope := management.Scope{Namespace: t.namespace}
	for _, s := range t.records {
		for i := range s.Nodes {
			if gk := s.Nodes[i].GroupKind(); !slices.Contains(scope.Also, gk) {
				scope.Also = append(scope.Also, gk)
			}
		}
	}
	for _, e := range []*end{t.win, t.lose} {
		if e == nil {
			continue
		}
		g, _, err := e.Read(ctx, scope)
		if err != nil {
			return err
		}
		e.graph = g
	}
	ids := t.ids()
	t.members, _ = order.Of(maps.Keys(ids), t.ownersOf())
	t.uids = map[graph.ID]types.UID{}
	for o := range t.win.graph.All() {
		if !o.Deleting {
			t.uids[o.ID] = o.UID
		}
	}
	return nil
}

// losing is the graph of the losing end; nil where it is gone.
func (t *transfer) losing() *graph.Graph {
	if t.lose == nil {
		return nil
	}
	return t.lose.graph
}

// ids is everything that the transfer is about: what the records say moves, the
// records themselves, and what clusterctl would move along with them. The latter
// only where no other Cluster is on the losing end, whose it may be.
func (t *transfer) ids() map[graph.ID]bool {
	ids := map[graph.ID]bool{}
	for _, s := range t.records {
		for i := range s.Nodes {
			if s.Nodes[i].Moves {
				ids[s.Nodes[i].ID] = true
			}
		}
	}
	for _, g := range []*graph.Graph{t.win.graph, t.losing()} {
		if g == nil {
			continue
		}
		for _, o := range g.OfKind(graph.ConfigMap) {
			if graph.IsRecord(o) && slices.Contains(t.clusters, recordedCluster(g, o)) {
				ids[o.ID] = true
			}
		}
	}
	if g := t.losing(); g != nil && !t.shared() {
		for _, m := range g.MoveSet() {
			if m.In && m.ID.Namespace == t.namespace && m.ID.GroupKind() != graph.Cluster {
				ids[m.ID] = true
			}
		}
	}
	return ids
}

// recordedCluster is the Cluster that owns a record's ConfigMap.
func recordedCluster(g *graph.Graph, o *graph.Object) graph.ID {
	for _, owner := range o.Owners {
		if id := g.OwnerID(o.Namespace, owner); id.GroupKind() == graph.Cluster {
			return id
		}
	}
	return graph.ID{}
}

// shared says that the losing end has Clusters that this transfer is not about.
func (t *transfer) shared() bool {
	for _, o := range t.losing().OfKind(graph.Cluster) {
		if o.Namespace == t.namespace && !slices.Contains(t.clusters, o.ID) {
			return true
		}
	}
	return false
}

// ownersOf gives an object's owners by the records and by both ends.
func (t *transfer) ownersOf() func(graph.ID) []graph.ID {
	graphs := []*graph.Graph{t.win.graph}
	if g := t.losing(); g != nil {
		graphs = append(graphs, g)
	}
	for _, s := range t.records {
		if g, err := s.Graph(); err == nil {
			graphs = append(graphs, g)
		}
	}
	return func(id graph.ID) []graph.ID {
		var owners []graph.ID
		for _, g := range graphs {
			for _, e := range g.Owners(id) {
				owners = append(owners, e.To)
			}
		}
		return owners
	}
}

func (t *transfer) fateOf(id graph.ID) fate {
	return fateOf(presenceOf(t.win.graph, id), presenceOf(t.losing(), id))
}

// obstacles is what stands in the way of the winning end being whole. Nothing is
// written while there is one.
func (t *transfer) obstacles() []finding.Finding {
	var found []finding.Finding
	for _, level := range t.members {
		for _, id := range level {
			f := finding.Finding{Severity: finding.Stops, Object: id.String()}
			switch t.fateOf(id) {
			case lost:
				f.ID = "LostObject"
				f.Message = fmt.Sprintf("is %s on %s and not to be had from the other side", presenceOf(t.win.graph, id), t.win.Name())
				f.Remedy = "create it by hand or bring it back from a backup, then run the command again"
			case unknown:
				f.ID = "UnreadableKind"
				f.Message = "its kind cannot be listed on both sides, so nobody can say whether it is there"
				f.Remedy = "allow move-hook to list it"
			case keep, restore, copyOver, replace:
				continue
			}
			found = append(found, f)
		}
	}
	finding.Sort(found)
	return found
}

// complete makes the winning end whole, owners first, and looks again whether it is.
func (t *transfer) complete(ctx context.Context) error {
	if err := t.win.EnsureNamespace(ctx, t.namespace); err != nil {
		return err
	}
	for range rereads {
		for _, level := range t.members {
			if err := t.each(ctx, level, t.makeWhole); err != nil {
				return err
			}
		}
		if err := t.look(ctx); err != nil {
			return err
		}
		if t.whole() {
			return nil
		}
		if len(t.obstacles()) > 0 {
			return fmt.Errorf("%s lost objects while it was being completed: see `move-hook status`", t.win.Name())
		}
	}
	return fmt.Errorf("%s keeps changing: somebody else writes the objects that are moved, run the command again", t.win.Name())
}

func (t *transfer) whole() bool {
	for _, level := range t.members {
		for _, id := range level {
			if t.fateOf(id) != keep {
				return false
			}
		}
	}
	return true
}

// makeWhole does what one object's fate is.
func (t *transfer) makeWhole(ctx context.Context, id graph.ID) error {
	o, _ := t.win.graph.Object(id)
	f := t.fateOf(id)
	switch f {
	case keep:
		return t.reown(ctx, o)
	case restore:
		c := labels.Change{DropAnnotations: []string{graph.DeleteForMoveAnnotation}, SetAnnotations: map[string]string{}}
		for k, v := range t.annotations(id) {
			if have, ok := o.Annotations[k]; !ok || have != v {
				c.SetAnnotations[k] = v
			}
		}
		if err := t.apply(ctx, t.win, adopt.ChangeMeta{On: target(o), Change: c, Reason: "it stays"}, f.String()); err != nil {
			return err
		}
		return t.reown(ctx, o)
	case replace, copyOver:
		if f == replace {
			if err := t.win.Remove(ctx, target(o)); err != nil {
				return err
			}
		}
		uid, err := t.win.Copy(ctx, t.lose.Cluster, management.Copy{ID: id, Owners: t.owners(id), Annotations: t.annotations(id)})
		if err != nil {
			return err
		}
		t.mu.Lock()
		t.uids[id] = uid
		t.mu.Unlock()
		t.wrote(flow.Wrote(id, f.String()+" to the "+t.win.side, false))
	case lost, unknown:
		return fmt.Errorf("%s is %s", id, f)
	}
	return nil
}

// reown corrects references to owners that have a new UID here. Left alone, the
// garbage collector would take the object for an orphan.
func (t *transfer) reown(ctx context.Context, o *graph.Object) error {
	after, stale := slices.Clone(o.Owners), false
	for i, ref := range after {
		if uid, ok := t.uid(t.win.graph.OwnerID(o.Namespace, ref)); ok && uid != ref.UID {
			after[i].UID, stale = uid, true
		}
	}
	if !stale {
		return nil
	}
	return t.apply(ctx, t.win, adopt.SetOwners{On: target(o), Before: o.Owners, After: after, Reason: "stale UID"}, "owners corrected")
}

func (t *transfer) uid(id graph.ID) (types.UID, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	uid, ok := t.uids[id]
	return uid, ok
}

// owners are an object's owner references with the UIDs of the winning end, by its
// record, else by the other copy. An owner that is not there is left out: post
// judges by the record what is missing.
func (t *transfer) owners(id graph.ID) []metav1.OwnerReference {
	var refs []metav1.OwnerReference
	add := func(owner graph.ID, ref metav1.OwnerReference) {
		if uid, ok := t.uid(owner); ok {
			ref.UID = uid
			refs = append(refs, ref)
		}
	}
	if n := t.node(id); n != nil {
		for _, o := range n.Owners {
			add(o.ID, metav1.OwnerReference{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name,
				Controller: o.Controller, BlockOwnerDeletion: o.BlockOwnerDeletion})
		}
		return refs
	}
	if o, ok := t.losing().Object(id); ok {
		for _, ref := range o.Owners {
			add(t.losing().OwnerID(o.Namespace, ref), ref)
		}
	}
	return refs
}

func (t *transfer) node(id graph.ID) *graph.SnapshotNode {
	for _, cluster := range t.clusters {
		s := t.records[cluster]
		if n, ok := s.Node(id); ok {
			return n
		}
	}
	return nil
}

// annotations are those of the other copy, or where clusterctl has replaced them
// there too (delete-for-move is a JSON patch of all annotations) those of the record.
func (t *transfer) annotations(id graph.ID) map[string]string {
	all := map[string]string{}
	if n := t.node(id); n != nil {
		maps.Copy(all, n.Annotations)
	}
	if g := t.losing(); g != nil {
		if o, ok := g.Object(id); ok {
			if _, announced := o.Annotations[graph.DeleteForMoveAnnotation]; !announced {
				clear(all)
			}
			maps.Copy(all, o.Annotations)
		}
	}
	for _, k := range []string{graph.DeleteForMoveAnnotation, labels.Owners, labels.Released, labels.Adopted} {
		delete(all, k)
	}
	return all
}

// mark holds and labels the winning end as `pre` does, where a delete-for-move patch
// or a missing object has cost it our marks, and names the record again.
func (t *transfer) mark(ctx context.Context) error {
	p := newPreparation(PreOptions{Source: t.win.Cluster, Namespace: t.namespace, Names: namesOf(t.clusters), Progress: t.progress})
	if err := p.read(ctx); err != nil {
		return err
	}
	for cluster, s := range t.records {
		p.checksums[cluster] = checksumOf(s)
	}
	by := labels.Holder{Who: "move-hook", Since: time.Now()}
	for _, step := range []func(context.Context) (bool, error){
		func(ctx context.Context) (bool, error) {
			return p.converge(ctx, func(s *preflight.Scope) []adopt.Action { return holds(s, by) })
		},
		p.announce, p.label,
	} {
		if _, err := step(ctx); err != nil {
			return err
		}
	}
	t.writes = append(t.writes, p.result.Writes...)
	return nil
}

// apply makes a change to an object of one end. What has moved on is seen by the
// next look.
func (t *transfer) apply(ctx context.Context, at *end, a adopt.Action, what string) error {
	outcome, err := at.Apply(ctx, a, false)
	if err == nil && outcome == adopt.Applied {
		t.wrote(flow.Wrote(a.Target().ID, what+" on the "+at.side, false))
	}
	return err
}

// each does one thing for every object of a level, side by side.
func (t *transfer) each(ctx context.Context, ids []graph.ID, do func(context.Context, graph.ID) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, id := range ids {
		group.Go(func() error { return do(ctx, id) })
	}
	return group.Wait()
}

func (t *transfer) wrote(w flow.Write) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes = append(t.writes, w)
	t.progress.Say(flow.Update{Time: time.Now(), Wrote: w})
}
