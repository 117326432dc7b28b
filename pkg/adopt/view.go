package adopt

import (
	"slices"
	"strings"
	"time"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// view is a State with the Cluster's objects sorted by role. It is made once a
// decision, in time that grows with the Cluster and not with the graph.
type view struct {
	*State
	// record is the open record; nil without one, and for a closed one: that is history.
	record *graph.Snapshot
	// standAlone: by the record, some control-plane Machine was nobody's.
	standAlone bool
	cluster    *graph.Object
	// members are what belongs to the Cluster or is in the record, sorted by ID;
	// own are those that are this Cluster's alone (no ClusterClass, no foreign owner).
	members, own []*graph.Object
	isOwn        map[graph.ID]bool
	// users are the spec references that own objects (and those that Clusters share) make, by what they refer to.
	users map[graph.ID][]graph.Edge
	// controlPlane is what Cluster.spec.controlPlaneRef names; controlPlanes all that claim the Cluster.
	controlPlane         *graph.Object
	controlPlanes        []*graph.Object
	machines             []*graph.Object
	controlPlaneMachines []*graph.Object
	sets, deployments    []*graph.Object
	pools                []*graph.Object
}

func newView(s *State) *view {
	v := &view{State: s, isOwn: map[graph.ID]bool{}, users: map[graph.ID][]graph.Edge{}}
	if !s.Record.Closed {
		v.record = s.Record.Snapshot
	}
	v.standAlone = standAloneInRecord(v.record)
	v.cluster, _ = s.Graph.Object(s.Cluster)
	ids := s.Graph.Belongs(s.Cluster)
	if v.record != nil {
		for i := range v.record.Nodes {
			ids = append(ids, v.record.Nodes[i].ID)
		}
	}
	for _, t := range s.Record.Objects {
		ids = append(ids, t.ID)
	}
	slices.SortFunc(ids, graph.ID.Compare)
	for _, id := range slices.Compact(ids) {
		if o, ok := s.Graph.Object(id); ok {
			v.members = append(v.members, o)
			switch {
			case v.belongs(o):
				v.isOwn[o.ID] = true
				v.uses(o)
			case o.GroupKind() == graph.ClusterClass || o.GroupKind() == graph.ClusterResourceSet:
				v.uses(o)
			}
		}
	}
	for _, o := range v.members {
		// What only references tell: configs and infrastructure of our Machines, whatever their labels.
		if !v.isOwn[o.ID] && !isTemplate(o.ID) && slices.ContainsFunc(v.users[o.ID], fromMachines) {
			v.isOwn[o.ID] = true
		}
		if v.isOwn[o.ID] {
			v.own = append(v.own, o)
			v.sort(o)
		}
	}
	return v
}

func fromMachines(e graph.Edge) bool {
	return e.From.GroupKind() == graph.Machine || e.From.GroupKind() == graph.MachinePool
}

// uses notes what an object refers to.
func (v *view) uses(o *graph.Object) {
	for _, e := range v.Graph.SpecRefs(o.ID) {
		v.users[e.To] = append(v.users[e.To], e)
	}
}

func (v *view) sort(o *graph.Object) {
	switch o.GroupKind() {
	case graph.Machine:
		v.machines = append(v.machines, o)
		if isControlPlaneMachine(o.Labels) {
			v.controlPlaneMachines = append(v.controlPlaneMachines, o)
		}
	case graph.MachineSet:
		v.sets = append(v.sets, o)
	case graph.MachineDeployment:
		v.deployments = append(v.deployments, o)
	case graph.MachinePool:
		v.pools = append(v.pools, o)
	default:
		ref, hasRef := v.controlPlaneRef()
		if hasRef && o.ID == ref {
			v.controlPlane = o
		}
		if (hasRef && o.GroupKind() == ref.GroupKind()) || isControlPlaneKind(o.GroupKind()) {
			v.controlPlanes = append(v.controlPlanes, o)
		}
	}
}

// belongs says that an object is this Cluster's and not shared or a neighbour's.
func (v *view) belongs(o *graph.Object) bool {
	c := v.Cluster
	if o.ID == c {
		return true
	}
	if o.GroupKind() == graph.Cluster || o.Namespace != c.Namespace {
		return false
	}
	if name, ok := o.Labels[graph.ClusterNameLabel]; ok {
		return name == c.Name
	}
	if to, ok := o.RefTo(graph.FieldClusterName); ok {
		return to == c
	}
	if v.cluster != nil {
		for _, r := range v.cluster.Refs {
			if r.To == o.ID && r.Field != graph.FieldClassRef {
				return true
			}
		}
	}
	for _, e := range v.Graph.Owners(o.ID) {
		if e.To == c {
			return true
		}
	}
	n, ok := v.recorded(o.ID)
	return ok && n.Moves && o.GroupKind() != graph.ClusterClass && o.GroupKind() != graph.ClusterResourceSet
}

func (v *view) controlPlaneRef() (graph.ID, bool) {
	if v.cluster == nil {
		return graph.ID{}, false
	}
	return v.cluster.RefTo(graph.FieldControlPlaneRef)
}

// recorded finds an object's node in the open record.
func (v *view) recorded(id graph.ID) (*graph.SnapshotNode, bool) {
	if v.record == nil {
		return nil, false
	}
	return v.record.Node(id)
}

// isKubeadm says that the control plane is a KubeadmControlPlane, whose rules we know.
func (v *view) isKubeadm() bool {
	ref, ok := v.controlPlaneRef()
	return ok && ref.GroupKind() == graph.KubeadmControlPlane
}

// makesMachines says that a control plane is made of Machines: it refers to a
// template to make them from. Others (managed or hosted ones) may have replicas
// that are no Machines.
func makesMachines(g *graph.Graph, cp *graph.Object) bool {
	return cp.GroupKind() == graph.KubeadmControlPlane ||
		slices.ContainsFunc(g.SpecRefs(cp.ID), func(e graph.Edge) bool { return isTemplate(e.To) })
}

func isTemplate(id graph.ID) bool { return strings.HasSuffix(id.Kind, "Template") }

func isControlPlaneKind(gk graph.GroupKind) bool {
	return gk.Group == graph.ControlPlaneGroup && strings.HasSuffix(gk.Kind, "ControlPlane")
}

func isControlPlaneMachine(l map[string]string) bool {
	_, ok := l[graph.ControlPlaneLabel]
	return ok
}

// marked are the Cluster's own objects that carry the adoption label or a hold of ours.
func (v *view) marked() []*graph.Object {
	var out []*graph.Object
	for _, o := range v.own {
		if m := labels.MetaOf(o); labels.IsPending(m) || labels.IsHeld(m) {
			out = append(out, o)
		}
	}
	return out
}

// released is when the scalers were released, as the Cluster's annotation says.
// One older than the Cluster itself came with a restore and says nothing about
// this copy (Releasing never writes one that is older).
func (v *view) released() (at time.Time, ok bool, err error) {
	if v.cluster == nil {
		return at, false, nil
	}
	value, ok := v.cluster.Annotations[labels.Released]
	if !ok {
		return at, false, nil
	}
	at, err = time.Parse(time.RFC3339, value)
	if err != nil {
		return at, false, err
	}
	return at, !at.Before(v.cluster.Created), nil
}

// missing says how an object that is not in the graph is not there.
func (v *view) missing(id graph.ID, maker string) Missing {
	if v.Graph.Listed(id.GroupKind(), id.Namespace) {
		return Missing{Object: id, What: "does not exist", Maker: maker}
	}
	return Missing{Object: id, What: "cannot be looked for: its kind could not be listed", unlisted: true}
}

// Who makes what is awaited.
const (
	byMove           = "the move or restore"
	byHand           = "nobody: clusterctl does not move it, create it by hand"
	byPre            = "move-hook pre, carried by the move"
	byBootstrap      = "the bootstrap controller"
	byMachine        = "the Machine controller"
	byInfrastructure = "the infrastructure provider"
)
