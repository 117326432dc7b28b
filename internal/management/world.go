package management

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

// WorldOptions are what a management cluster cannot know by itself. Every function
// may be nil.
type WorldOptions struct {
	Policy adopt.Policy
	// Named says that the user asked for a Cluster; nil means for none.
	Named func(cluster graph.ID) bool
	// Record reads a Cluster's record; nil means that there is none.
	Record func(ctx context.Context, cluster graph.ID) (adopt.Expectation, error)
	// Other looks at the other side; nil means that nobody can.
	Other func(ctx context.Context, cluster graph.ID) adopt.OtherSide
	// Rollout asks upstream whether control-plane Machines are up to date; nil: not asked.
	Rollout func(ctx context.Context, cluster graph.ID, g *graph.Graph) (map[graph.ID]adopt.Rollout, error)
}

// World is a simple adopt.World: every observation reads the Cluster's namespace
// anew. It is meant for one look and for tests; the loop of `move-hook post`
// (internal/watch) has one that watches.
func (c *Cluster) World(o WorldOptions) adopt.World { return world{c, o} }

const tellTimeout = 5 * time.Second

type world struct {
	*Cluster
	o WorldOptions
}

// Observe reads the record first, because it names kinds that may have to be
// listed, then the namespace.
func (w world) Observe(ctx context.Context, cluster graph.ID) (adopt.State, error) {
	s := adopt.State{Cluster: cluster, Policy: w.o.Policy, Other: adopt.OtherUnknown}
	var err error
	if w.o.Record != nil {
		if s.Record, err = w.o.Record(ctx, cluster); err != nil {
			return s, err
		}
	}
	scope := Scope{Namespace: cluster.Namespace, Status: true, Also: kindsOf(s.Record.Snapshot)}
	var warnings []Warning
	if s.Graph, warnings, err = w.Read(ctx, scope); err != nil {
		return s, err
	}
	if len(warnings) > 0 {
		// Not an error: the graph does not call these kinds listed.
		klog.FromContext(ctx).V(2).Info("Reading some kinds was not possible", "warnings", fmt.Sprint(warnings))
	}
	s.Now = w.Now()
	s.Named = w.o.Named != nil && w.o.Named(cluster)
	if w.o.Other != nil {
		s.Other = w.o.Other(ctx, cluster)
	}
	if w.o.Rollout != nil {
		s.Rollout, err = w.o.Rollout(ctx, cluster, s.Graph)
	}
	return s, err
}

// Tell never holds up a pass for long; that it could not be said is logged only.
func (w world) Tell(e adopt.Event) {
	ctx, cancel := context.WithTimeout(context.Background(), tellTimeout)
	defer cancel()
	if err := w.Cluster.Tell(ctx, e); err != nil {
		klog.V(2).InfoS("Writing an Event failed", "object", e.On.ID.String(), "reason", e.Reason, "err", err)
	}
}

// kindsOf are the kinds that a record names, also as owners; each once.
func kindsOf(s *graph.Snapshot) []graph.GroupKind {
	if s == nil {
		return nil
	}
	seen := map[graph.GroupKind]bool{}
	var out []graph.GroupKind
	add := func(gk graph.GroupKind) {
		if !seen[gk] {
			seen[gk] = true
			out = append(out, gk)
		}
	}
	for i := range s.Nodes {
		add(s.Nodes[i].GroupKind())
		for _, o := range s.Nodes[i].Owners {
			add(o.GroupKind())
		}
	}
	return out
}
