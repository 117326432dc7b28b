package watch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// quiet is how long a Cluster's deferral, which changes with everything that
// arrives, is not told again as an Event.
const quiet = 5 * time.Second

// notPartOfAPivot is the ID of the note that a plan carries for a Cluster that
// nothing says is being pivoted.
const notPartOfAPivot = "NotPartOfAPivot"

// world joins the store, the records, the Leases and the management cluster to
// what a pass needs. It is shared by all passes; onePass is what one of them sees.
type world struct {
	o         Options
	store     *store
	freshness *freshness
	records   *records
	leases    *leases
	providers *providers
	rollouts  *rollouts
	// wrote is told every write.
	wrote func(cluster graph.ID, w flow.Write)

	mu   sync.Mutex
	told map[graph.ID]time.Time
}

// pass runs adopt.Pass for one Cluster.
func (w *world) pass(ctx context.Context, cluster graph.ID) (passed, error) {
	one := &onePass{world: w, cluster: cluster}
	plan, err := adopt.Pass(ctx, one, cluster)
	if err == nil && (plan.Phase == adopt.Adopted || plan.Phase == adopt.Blocked) && w.leases != nil {
		err = w.leases.release(ctx, cluster)
	}
	_, exists := w.store.get(cluster)
	return passed{plan: plan, checks: one.checks, mine: partOfPivot(plan), wrote: plan.Writes() > 0, gone: !exists}, err
}

func partOfPivot(p adopt.Plan) bool { return !slices.ContainsFunc(p.Notes, outOfPivot) }

func outOfPivot(f finding.Finding) bool { return f.ID == notPartOfAPivot }

// onePass is the adopt.World of one pass.
type onePass struct {
	*world
	cluster graph.ID
	// checks explain the State that was observed, where that is wanted.
	checks []adopt.Check
}

// Observe reads from the store: cached, and as young as the last change that
// concerned the Cluster. Nothing is written on the strength of it alone.
func (p *onePass) Observe(ctx context.Context, cluster graph.ID) (adopt.State, error) {
	g, err := p.store.graph(cluster.Namespace, p.freshness.need(cluster))
	if err != nil {
		return adopt.State{}, err
	}
	expectation, err := p.records.of(ctx, cluster, g)
	if err != nil {
		return adopt.State{}, err
	}
	s := adopt.State{
		Now: time.Now(), Cluster: cluster, Graph: g, Record: expectation,
		Named: p.o.AdoptUnmarked || named(p.o, cluster), Other: adopt.OtherUnknown, Policy: p.o.Policy,
	}
	if down, since := p.providers.down(); down {
		s.ControllersDown = true
		// Nothing marks what arrives on a target that is scaled down, but when it came does.
		s.Named = s.Named || arrivedSince(g, cluster, since)
	}
	if p.o.Other != nil {
		s.Other = p.o.Other(ctx, cluster)
	}
	explained, err := p.rollouts.fill(ctx, &s)
	if explained {
		p.checks = adopt.Explain(s)
	}
	return s, err
}

// Confirm asks the server, not the store.
func (p *onePass) Confirm(ctx context.Context, owners []adopt.Target) (bool, error) {
	return p.o.Cluster.Confirm(ctx, owners)
}

// Apply takes the Cluster's Lease before the first thing that is stored. In a dry
// run of the whole command nothing ever is.
func (p *onePass) Apply(ctx context.Context, a adopt.Action, dryRun bool) (adopt.Outcome, error) {
	if dryRun {
		return p.o.Cluster.Apply(ctx, a, true)
	}
	if !p.o.DryRun {
		if err := p.leases.take(ctx, p.cluster); err != nil {
			return adopt.Moved, err
		}
	}
	outcome, err := p.o.Cluster.Apply(ctx, a, p.o.DryRun)
	if err == nil && outcome == adopt.Applied {
		p.wrote(p.cluster, flow.WriteOf(a, p.o.DryRun))
	}
	return outcome, err
}

// Tell writes an Event. That it cannot be written is no reason to do less.
func (p *onePass) Tell(e adopt.Event) {
	if p.o.DryRun || e.Reason == "AdoptionDeferred" && !p.mayTell(e.Cluster) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), quiet)
	defer cancel()
	_ = p.o.Cluster.Tell(ctx, e)
}

// mayTell bounds how often a deferral is told.
func (w *world) mayTell(cluster graph.ID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.told[cluster]) < quiet {
		return false
	}
	w.told[cluster] = time.Now()
	return true
}

func named(o Options, cluster graph.ID) bool {
	for _, name := range o.Names {
		if name.Namespace == cluster.Namespace && name.Name == cluster.Name {
			return true
		}
	}
	return false
}

var _ adopt.World = (*onePass)(nil)
