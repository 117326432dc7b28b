package graph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Snapshot takes the ownership graph of one Cluster: what belongs to it and moves,
// and what of the rest is owned, says that it is the Cluster's or is referred to.
// What is merely labelled and stays behind is nobody's loss and would be waited
// for in vain, as the lock for kubeadm init would be. Our own marks and the record's
// own ConfigMaps are left out, so that the record describes the state as it was
// without us.
func (g *Graph) Snapshot(cluster ID) Snapshot {
	moves := map[ID]bool{}
	for _, m := range g.MoveSet() {
		moves[m.ID] = m.In
	}
	return g.SnapshotOf(cluster, func(id ID) bool { return moves[id] })
}

// SnapshotOf is Snapshot with a move set that the caller already has, so that
// many Clusters of one graph cost one MoveSet.
func (g *Graph) SnapshotOf(cluster ID, moves func(ID) bool) Snapshot {
	s := Snapshot{Cluster: cluster}
	for _, id := range g.Belongs(cluster) {
		i := g.index[id]
		o := g.objects[i]
		related := id == cluster || moves(id) || len(g.owners[i]) > 0 || len(g.refs[i]) > 0 || g.Referenced(id)
		if IsRecord(o) || !related || IsInitLock(id, cluster.Name) {
			continue
		}
		n := SnapshotNode{
			ID: o.ID, UID: string(o.UID), APIVersion: o.APIVersion,
			Facts: o.Facts, Moves: moves(id),
			Labels:       without(o.Labels, AdoptionLabel),
			Annotations:  without(o.Annotations, HeldAnnotation, RecordAnnotation, ReleasedAnnotation, AdoptedAnnotation, OwnersAnnotation),
			PausedByUser: o.Facts.Paused,
		}
		if v, paused := o.Annotations[PausedAnnotation]; paused {
			_, held := o.Annotations[HeldAnnotation]
			if held && v == "" {
				delete(n.Annotations, PausedAnnotation)
			} else {
				n.PausedByUser = true
			}
		}
		if o.GroupKind() == Secret {
			delete(n.Annotations, LastAppliedAnnotation)
		}
		if len(n.Annotations) == 0 {
			n.Annotations = nil
		}
		for _, e := range g.refs[i] {
			n.Refs = append(n.Refs, Ref{Field: e.Field, To: e.To})
		}
		for _, e := range g.owners[i] {
			if e.Kind != Owner {
				continue
			}
			n.Owners = append(n.Owners, SnapshotOwner{
				ID: e.To, APIVersion: e.Owner.APIVersion,
				Controller: e.Owner.Controller, BlockOwnerDeletion: e.Owner.BlockOwnerDeletion,
			})
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

// IsRecord says that the object is one of the record's own ConfigMaps.
func IsRecord(o *Object) bool {
	_, ok := o.Labels[RecordLabel]
	return ok && o.GroupKind() == ConfigMap
}

func without(m map[string]string, keys ...string) map[string]string {
	out := maps.Clone(m)
	for _, k := range keys {
		delete(out, k)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Node finds a node, in O(log nodes): Nodes are sorted.
func (s *Snapshot) Node(id ID) (*SnapshotNode, bool) {
	i, ok := slices.BinarySearchFunc(s.Nodes, id, func(n SnapshotNode, id ID) int { return n.ID.Compare(id) })
	if !ok {
		return nil, false
	}
	return &s.Nodes[i], true
}

// Validate says what makes a snapshot unusable, whoever wrote it: an error that
// names the node.
func (s *Snapshot) Validate() error {
	if s.Cluster.GroupKind() != Cluster || s.Cluster.Name == "" {
		return fmt.Errorf("the record is of %q, which is no Cluster", s.Cluster)
	}
	for i, n := range s.Nodes {
		if n.Kind == "" || n.Name == "" {
			return fmt.Errorf("node %d of the record has no kind or no name", i)
		}
		if i > 0 && s.Nodes[i-1].ID.Compare(n.ID) >= 0 {
			return fmt.Errorf("%s: the record's nodes are not sorted or it is there twice", n.ID)
		}
		for _, o := range n.Owners {
			if o.Kind == "" || o.Name == "" {
				return fmt.Errorf("%s: an owner in the record has no kind or no name", n.ID)
			}
		}
		for _, r := range n.Refs {
			if r.Field == "" || r.To.Kind == "" || r.To.Name == "" {
				return fmt.Errorf("%s: a reference in the record has no field, no kind or no name", n.ID)
			}
		}
	}
	if _, ok := s.Node(s.Cluster); !ok {
		return fmt.Errorf("%s is not among the record's nodes", s.Cluster)
	}
	return nil
}

// Graph makes a graph of the snapshot, the third source beside a management
// cluster and a folder. Its objects have no UIDs: they belong to no copy, so every
// owner among them is Live. Nothing counts as listed, so every other is Unknown.
// Its MoveSet is what was recorded. The error is Validate's.
func (s *Snapshot) Graph() (*Graph, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	var b Builder
	// Whether a kind is namespaced follows from every identity of it, those of owners
	// that are not among the nodes too.
	learn := func(id ID, apiVersion string, moves bool) {
		info := b.kinds[id.GroupKind()]
		b.Kind(KindInfo{
			GroupKind:          id.GroupKind(),
			APIVersion:         cmp.Or(info.APIVersion, apiVersion),
			Namespaced:         info.Namespaced || id.Namespace != "",
			Discovered:         info.Discovered || moves,
			ForceMove:          ForceMoves(id.GroupKind()),
			ForceMoveHierarchy: ForceMoves(id.GroupKind()),
		})
	}
	for _, n := range s.Nodes {
		o := Object{
			ID: n.ID, APIVersion: n.APIVersion, Refs: n.Refs,
			Labels: n.Labels, Annotations: n.Annotations, Facts: n.Facts,
		}
		learn(n.ID, n.APIVersion, n.Moves)
		for _, owner := range n.Owners {
			learn(owner.ID, owner.APIVersion, false)
			o.Owners = append(o.Owners, metav1.OwnerReference{
				APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name,
				Controller: owner.Controller, BlockOwnerDeletion: owner.BlockOwnerDeletion,
			})
		}
		for _, ref := range n.Refs {
			learn(ref.To, "", false)
		}
		b.Add(o)
	}
	g, err := b.Build()
	if err != nil {
		return nil, err
	}
	g.recorded = make(map[ID]bool, len(s.Nodes))
	for _, n := range s.Nodes {
		g.recorded[n.ID] = n.Moves
	}
	return g, nil
}

// ForceMoves says that clusterctl moves every object of this kind, and all that
// it owns, without a label (objectgraph.go, getDiscoveryTypes).
func ForceMoves(gk GroupKind) bool {
	return gk == Cluster || gk == ClusterClass || gk == ClusterResourceSet
}
