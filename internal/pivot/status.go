package pivot

import (
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/policy"
	"github.com/move-hook/move-hook/internal/preflight"
	"github.com/move-hook/move-hook/internal/record"
	"github.com/move-hook/move-hook/internal/scaledown"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// StatusOptions say where to look; at least one side has to be given.
type StatusOptions struct {
	Source, Target *management.Cluster
	// RecordFile stands in for a record that is on neither side.
	RecordFile string
	Namespace  string
	Names      []types.NamespacedName
}

// Status says where every Cluster stands, from what is there and nothing else.
func Status(ctx context.Context, o StatusOptions) (StatusResult, error) {
	l := looking{namespace: o.Namespace, names: o.Names, recordFile: o.RecordFile}
	if o.Source != nil {
		l.source = &lookedAt{host: o.Source, records: configMaps{o.Source}, policies: policy.New(o.Source, true), providers: scaledown.Providers{Cluster: o.Source}.State}
	}
	if o.Target != nil {
		l.target = &lookedAt{host: o.Target, records: configMaps{o.Target}, policies: policy.New(o.Target, true), providers: scaledown.Providers{Cluster: o.Target}.State}
	}
	return l.look(ctx)
}

// lookedAt is one side.
type lookedAt struct {
	host
	records recordStore
	// policies is nil where there is no server to ask.
	policies  *policy.Store
	providers func(context.Context) (scaledown.State, error)
	graph     *graph.Graph
}

// looking is one call of Status.
type looking struct {
	source, target *lookedAt
	namespace      string
	names          []types.NamespacedName
	recordFile     string
	file           map[graph.ID]*graph.Snapshot
}

func (l *looking) look(ctx context.Context) (StatusResult, error) {
	result := StatusResult{Outcome: flow.Done, Namespace: l.namespace, Clusters: []ClusterStatus{}}
	if l.source == nil && l.target == nil {
		return result, flow.Usage(errors.New("neither a source nor a target was given"))
	}
	if err := l.readFile(); err != nil {
		return result, err
	}
	for _, side := range []*lookedAt{l.source, l.target} {
		if side == nil {
			continue
		}
		g, _, err := side.Read(ctx, management.Scope{Namespace: l.namespace})
		if err != nil {
			return result, err
		}
		side.graph = g
	}
	for _, cluster := range l.clusters() {
		s, err := l.status(ctx, cluster)
		if err != nil {
			return result, err
		}
		if s.State == Split {
			result.Outcome = flow.Blocked
		}
		result.Clusters = append(result.Clusters, s)
	}
	for _, p := range []struct {
		name string
		side *lookedAt
	}{{"source", l.source}, {"target", l.target}} {
		if p.side != nil && p.side.policies != nil {
			result.Policies = append(result.Policies, policyStatus(ctx, p.name, p.side.policies, p.side.providers))
		}
	}
	if len(result.Clusters) == 0 {
		result.Message = "no Cluster was found" + inNamespace(l.namespace)
	}
	return result, nil
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return " in any namespace"
	}
	return " in namespace " + namespace
}

func (l *looking) readFile() error {
	l.file = map[graph.ID]*graph.Snapshot{}
	if l.recordFile == "" {
		return nil
	}
	all, err := record.FromFile(l.recordFile)
	if err != nil {
		return err
	}
	for i := range all {
		l.file[all[i].Cluster] = &all[i]
	}
	return nil
}

// clusters are the named ones, else all that a side has or a record names: one
// whose Cluster object is gone may still have a record.
func (l *looking) clusters() []graph.ID {
	found := map[graph.ID]bool{}
	for _, n := range l.names {
		found[graph.ID{Group: graph.CoreGroup, Kind: graph.Cluster.Kind, Namespace: n.Namespace, Name: n.Name}] = true
	}
	if len(l.names) == 0 {
		for _, side := range []*lookedAt{l.source, l.target} {
			if side == nil {
				continue
			}
			for _, id := range preflight.Select(side.graph, l.namespace, nil) {
				found[id] = true
			}
			for _, o := range side.graph.OfKind(graph.ConfigMap) {
				for _, owner := range o.Owners {
					if id := side.graph.OwnerID(o.Namespace, owner); graph.IsRecord(o) && id.GroupKind() == graph.Cluster {
						found[id] = true
					}
				}
			}
		}
		for cluster := range l.file {
			if l.namespace == "" || cluster.Namespace == l.namespace {
				found[cluster] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), graph.ID.Compare)
}

func (l *looking) status(ctx context.Context, cluster graph.ID) (ClusterStatus, error) {
	s := ClusterStatus{Cluster: cluster}
	snapshot, err := l.record(ctx, &s)
	if err != nil {
		return s, err
	}
	s.snapshot = snapshot
	s.countCopies(l.source)
	if s.Record != nil && s.Record.Closed {
		// History: what it names may have been scaled or deleted since.
		snapshot = nil
	}
	if l.source != nil {
		s.Source = copyStatus(l.source.graph, cluster, snapshot)
	}
	if l.target != nil {
		s.Target = copyStatus(l.target.graph, cluster, snapshot)
	}
	v := judge(facts{cluster: cluster, source: s.Source, target: s.Target, record: s.Record})
	s.State, s.Detail, s.Next = v.state, v.detail, v.next
	return s, nil
}

// countCopies tells copies that were made again from those that the record saw.
func (s *ClusterStatus) countCopies(source *lookedAt) {
	if source == nil || s.snapshot == nil {
		return
	}
	for i := range s.snapshot.Nodes {
		n := &s.snapshot.Nodes[i]
		switch o, ok := source.graph.Object(n.ID); {
		case !ok || !n.Moves:
		case string(o.UID) == n.UID:
			s.sameCopies++
		default:
			s.otherCopies++
		}
	}
}

// record finds a Cluster's record: what is on the target counts before what is on
// the source, and that before the file.
func (l *looking) record(ctx context.Context, s *ClusterStatus) (*graph.Snapshot, error) {
	var best adopt.Expectation
	var on []string
	sides := []struct {
		name string
		side *lookedAt
	}{{"target", l.target}, {"source", l.source}}
	for _, side := range sides {
		if side.side == nil {
			continue
		}
		e, err := side.side.records.read(ctx, s.Cluster)
		if err != nil {
			return nil, err
		}
		if len(e.Objects) == 0 {
			continue
		}
		// While clusterctl was creating, the target has a part of what the source has.
		if on = append(on, side.name); len(on) == 1 || best.Snapshot == nil && e.Snapshot != nil {
			best = e
		}
	}
	if given := l.file[s.Cluster]; given != nil {
		on = append(on, "file")
		if best.Snapshot == nil {
			best.Snapshot, best.Partial = given, nil
		}
	}
	if len(on) == 0 {
		return nil, nil
	}
	slices.Sort(on)
	s.Record = &RecordStatus{On: on, Closed: best.Closed}
	if len(best.Partial) > 0 {
		s.Record.Partial = best.Partial[0].String()
	}
	if best.Snapshot != nil {
		s.Record.Objects = len(best.Snapshot.Nodes)
		s.Record.Checksum = checksumOf(*best.Snapshot)
	}
	return best.Snapshot, nil
}

// copyStatus looks at one side's copy. With a record its objects are those of the
// record that are this Cluster's alone; without one, what is owned or labelled.
func copyStatus(g *graph.Graph, cluster graph.ID, snapshot *graph.Snapshot) *CopyStatus {
	c := &CopyStatus{}
	if o, ok := g.Object(cluster); ok {
		m := labels.MetaOf(o)
		_, c.Announced = o.Annotations[labels.Record]
		_, c.Released = o.Annotations[labels.Released]
		c.Exists = true
		switch {
		case m.SpecPaused:
			c.Paused = PausedSpec
		case labels.PausedByAnnotation(m) && labels.IsHeld(m):
			c.Paused = PausedHold
		case labels.PausedByAnnotation(m):
			c.Paused = PausedAnnotation
		}
	}
	var present []*graph.Object
	if snapshot != nil {
		for _, id := range alone(*snapshot) {
			if o, ok := g.Object(id); ok {
				present = append(present, o)
			} else {
				c.Missing++
			}
		}
	} else {
		present = unrecorded(g, cluster, c.Exists)
	}
	c.Objects = len(present)
	for _, o := range present {
		c.count(o)
	}
	return c
}

func (c *CopyStatus) count(o *graph.Object) {
	m := labels.MetaOf(o)
	if o.GroupKind() == graph.Machine {
		c.Machines++
	}
	if labels.IsHeld(m) {
		c.Held = append(c.Held, o.ID)
	}
	if labels.IsPending(m) {
		c.Pending = append(c.Pending, o.ID)
	}
	if o.Deleting {
		c.Deleting++
	}
	if _, ok := o.Annotations[graph.DeleteForMoveAnnotation]; ok {
		c.Leaving++
	}
}

// unrecorded are the objects of a Cluster of which there is no record. Without its
// Cluster, Secrets and ConfigMaps that merely carry its label do not count: a move
// may have left them on purpose.
func unrecorded(g *graph.Graph, cluster graph.ID, exists bool) []*graph.Object {
	var found []*graph.Object
	owned := g.Hierarchy(cluster)
	for _, id := range g.Belongs(cluster) {
		o, ok := g.Object(id)
		if !ok || graph.IsRecord(o) {
			continue
		}
		_, below := owned.Object(id)
		named := o.Labels[graph.ClusterNameLabel] == cluster.Name
		if data := id.GroupKind() == graph.Secret || id.GroupKind() == graph.ConfigMap; below || named && (exists || !data) {
			found = append(found, o)
		}
	}
	return found
}
