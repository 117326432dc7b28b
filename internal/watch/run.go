package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

var (
	errTimeout = errors.New("the time is over")
	errWorkers = errors.New("the run has ended")
)

// Run adopts Clusters until all that take part in a pivot are adopted or blocked,
// the time is over, or ctx ends; the last two are the outcome Deferred. With a Shard
// to which none of them falls it waits until the other shards have adopted theirs, and
// is Done then or when the time is over. The error says that the API failed: it could
// not be reached, or refused what is needed.
func Run(ctx context.Context, o Options) (Result, error) {
	begin := time.Now()
	r := newRun(o, &contact{}, nil)
	err := r.run(ctx)
	result := r.result(err)
	result.Seconds = time.Since(begin).Seconds()
	switch {
	case errors.Is(err, errTimeout), ctx.Err() != nil:
		return result, r.failure()
	default:
		return result, err
	}
}

// run is one call of Run.
type run struct {
	o         Options
	store     *store
	freshness *freshness
	members   *members
	contact   *contact
	loop      *loop
	streams   *streams
	leases    *leases
	providers *providers
	// elsewhere is nil where every Cluster falls to this run.
	elsewhere *elsewhere
	// synced: everything that is watched has been read once, or was refused.
	synced atomic.Bool

	mu       sync.Mutex
	unlisted map[place]string
	warned   map[string]bool
}

// newRun joins the parts; m is told what is measured, nil for nothing.
func newRun(o Options, c *contact, m *meter) *run {
	r := &run{
		o: o, store: newStore(), freshness: newFreshness(), members: &members{}, contact: c, loop: newLoop(),
		leases:   newLeases(o.Cluster.Clientset().CoordinationV1(), cmp.Or(o.Holder, Identity())),
		unlisted: map[place]string{}, warned: map[string]bool{},
	}
	r.streams = &streams{
		cluster: o.Cluster, namespace: o.Namespace, store: r.store, contact: r.contact,
		changed: r.changed, known: r.known,
		wanted: map[graph.GroupKind]bool{}, controlPlanes: map[graph.GroupKind]bool{},
		more: make(chan struct{}, 1), running: map[place]*running{},
	}
	r.providers = newProviders(o, r.loop)
	w := &world{
		o: o, store: r.store, freshness: r.freshness, leases: r.leases, providers: r.providers, told: map[graph.ID]time.Time{},
		rollouts: newRollouts(o),
		records:  newRecords(o.Cluster.Clientset().CoreV1(), o.Records, r.recorded),
		wrote:    r.loop.wrote,
	}
	r.loop.pass, r.loop.once, r.loop.settle, r.loop.progress = w.pass, o.DryRun, o.Policy.Settle, o.Progress
	r.loop.meter = m
	if o.Shard.Count > 1 && len(o.Names) == 0 {
		r.elsewhere = newElsewhere()
		r.loop.elsewhere = func() bool { return r.elsewhere.ended(o.DryRun) && r.store.complete() }
	}
	return r
}

// run returns nil when everything has ended, else why it stopped.
func (r *run) run(parent context.Context) error {
	ctx := parent
	if r.o.Timeout > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, r.o.Timeout, errTimeout)
		defer cancel()
		ctx = limited
	}
	ctx, stop := context.WithCancelCause(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer stop(errWorkers)
	background.Go(func() { r.giveUp(ctx, stop) })

	for i := range r.o.Records {
		r.recorded(&r.o.Records[i])
		if cluster := r.o.Records[i].Cluster; r.asked(cluster) {
			r.loop.add(cluster)
		}
	}
	for _, name := range r.o.Names {
		if r.falls(name) {
			r.loop.add(clusterID(name.Namespace, name.Name))
		}
	}
	if len(r.o.Names) > 0 && !slices.ContainsFunc(r.o.Names, r.falls) {
		return nil
	}
	if err := r.start(ctx); err != nil {
		return cause(ctx, err)
	}
	r.providers.look(ctx)
	r.synced.Store(true)
	background.Go(func() { r.streams.run(ctx, r.unfinished) })
	background.Go(func() { r.leases.run(ctx) })
	background.Go(func() { r.providers.run(ctx) })
	background.Go(func() { r.loop.run(ctx, cmp.Or(r.o.Workers, 4)) })

	err := r.loop.wait(ctx, r.o.Watch)
	stop(errWorkers)
	background.Wait()
	return errors.Join(err, r.release(parent))
}

// release gives the Leases back, also when the user has interrupted the run.
func (r *run) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := r.leases.releaseAll(ctx); err != nil {
		r.loop.message("A Lease could not be released, it expires in "+leaseDuration.String()+": "+err.Error(), true)
	}
	return nil
}

// cause prefers why the run was stopped to what that did to a request.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// changed maps an object that came, changed or went to the Clusters that have to
// be looked at. It does not care what happened.
func (r *run) changed(o graph.Object, generation uint64) {
	clusters := clustersOf(o, r.members, r.store)
	for _, cluster := range clusters {
		r.freshness.touch(cluster, generation)
		if r.concerns(o, cluster) {
			r.loop.add(cluster)
		}
	}
	r.divided(o, clusters)
	if o.GroupKind() == graph.Cluster {
		if cp, ok := o.RefTo(graph.FieldControlPlaneRef); ok {
			r.streams.controls(cp.GroupKind())
		}
	}
	if r.o.Namespace != "" && len(o.Refs) > 0 {
		// A ClusterClass of another namespace has to be watched there.
		for _, ref := range o.Refs {
			if ref.To.Namespace != "" && ref.To.Namespace != o.Namespace {
				r.streams.nudge()
			}
		}
	}
	if len(clusters) == 0 {
		r.everybody(o.Namespace, generation)
		return
	}
	for _, owner := range o.NamedOwners() {
		r.streams.want(graph.GroupKind{Group: graph.GroupOf(owner.APIVersion), Kind: owner.Kind})
	}
}

// asked: of this run's share the user's names, else every Cluster of the namespace.
func (r *run) asked(cluster graph.ID) bool {
	if !r.o.Shard.Has(cluster) {
		return false
	}
	if len(r.o.Names) > 0 {
		return named(r.o, cluster)
	}
	return r.o.Namespace == "" || cluster.Namespace == r.o.Namespace
}

// falls: a Cluster that the user named is of this run's share.
func (r *run) falls(name types.NamespacedName) bool {
	return r.o.Shard.Has(clusterID(name.Namespace, name.Name))
}

// concerns: of those asked for, every Cluster that exists or has a record.
func (r *run) concerns(o graph.Object, cluster graph.ID) bool {
	if !r.asked(cluster) {
		return false
	}
	if r.loop.known(cluster) || graph.IsRecord(&o) {
		return true
	}
	_, exists := r.store.get(cluster)
	return exists
}

// everybody looks again at all Clusters whose graph holds a namespace.
func (r *run) everybody(namespace string, generation uint64) {
	r.freshness.touchAll(namespace, generation)
	r.loop.addAll(namespace)
	if namespace == "" {
		return
	}
	for _, other := range r.store.neighboursOf(namespace) {
		r.freshness.touchAll(other, generation)
		r.loop.addAll(other)
	}
}

// recorded learns from a record what else has to be watched.
func (r *run) recorded(s *graph.Snapshot) {
	r.members.add(s)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		r.streams.want(n.GroupKind())
		for _, owner := range n.Owners {
			r.streams.want(owner.GroupKind())
		}
		if n.Namespace != "" && n.Namespace != s.Cluster.Namespace {
			r.store.need(s.Cluster.Namespace, n.Namespace)
			r.streams.nudge()
		}
	}
	if cp, ok := s.Node(s.Cluster); ok {
		for _, ref := range cp.Refs {
			if ref.Field == graph.FieldControlPlaneRef {
				r.streams.controls(ref.To.GroupKind())
			}
		}
	}
}

// known is told when a kind can be relied on, or not any more. What cannot be
// watched is named to the user once.
func (r *run) known(p place, listed bool, generation uint64, why error) {
	r.mu.Lock()
	var say string
	if listed {
		delete(r.unlisted, p)
	} else {
		r.unlisted[p] = why.Error()
		say = fmt.Sprintf("cannot watch %s%s, what it holds is unknown: %v", p.kind, within(p.namespace), why)
		if r.warned[say] {
			say = ""
		}
		r.warned[say] = true
	}
	r.mu.Unlock()
	if say != "" {
		r.loop.message(say, true)
	}
	r.everybody(p.namespace, generation)
	r.loop.wake()
}

func within(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}

// failure is an error if what keeps a Cluster from ending is the API's refusal.
func (r *run) failure() error {
	if err := r.providers.failure(); err != nil {
		return err
	}
	r.loop.mu.Lock()
	defer r.loop.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(r.loop.clusters), graph.ID.Compare) {
		var held *heldError
		if err := r.loop.clusters[id].err; err != nil && !errors.As(err, &held) {
			return fmt.Errorf("adopting %s: %w", id, err)
		}
	}
	return nil
}

// result is what is known when the run ends with err.
func (r *run) result(err error) Result {
	result := Result{Outcome: flow.Done, Namespace: r.o.Namespace, DryRun: r.o.DryRun, Clusters: []ClusterResult{}}
	providers := r.providers.reason()
	r.loop.mu.Lock()
	defer r.loop.mu.Unlock()
	now := time.Now()
	result.Writes = slices.Clone(r.loop.common)
	for _, id := range slices.SortedFunc(maps.Keys(r.loop.clusters), graph.ID.Compare) {
		s := r.loop.clusters[id]
		if s.passes > 0 && !s.last.mine {
			continue
		}
		c := s.result(id, now)
		result.Clusters = append(result.Clusters, c)
		result.Outcome = result.Outcome.Worse(outcomeOf(c.Phase, r.o.DryRun))
		if s.err != nil {
			// What failed last may be anything by now.
			result.Outcome = result.Outcome.Worse(flow.Deferred)
		}
	}
	switch {
	case r.o.Shard.Count > 1 && len(result.Clusters) == 0 && (err == nil || errors.Is(err, errTimeout)):
		// The other runs say whether theirs came.
		result.Message = r.nothingHere(err == nil)
	case errors.Is(err, errTimeout):
		result.Outcome = result.Outcome.Worse(flow.Deferred)
		result.Message = "the time-out of " + r.o.Timeout.String() + " is over"
		if len(result.Clusters) == 0 {
			result.Message = fmt.Sprintf("no Cluster of a pivot was found%s of %s within %s: it has neither a record nor an adoption label nor a hold; check the namespace, name the Cluster, or use --adopt-unmarked",
				cmp.Or(within(r.o.Namespace), " in any namespace"), r.o.Cluster.Name(), r.o.Timeout)
		}
	case err != nil && r.o.Watch && result.Outcome == flow.Done:
		// Nothing else ends such a run, and everything is as it should be.
	case err != nil:
		result.Outcome = result.Outcome.Worse(flow.Deferred)
		result.Message = "interrupted: run the same command again"
	}
	if result.Outcome == flow.Deferred && providers != "" {
		result.Message = strings.TrimPrefix(result.Message+"; "+providers, "; ")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, why := range r.unlisted {
		result.Unlisted = append(result.Unlisted, Unlisted{Kind: p.kind, Namespace: p.namespace, Why: why})
	}
	slices.SortFunc(result.Unlisted, func(a, b Unlisted) int {
		return cmp.Or(a.Kind.Compare(b.Kind), cmp.Compare(a.Namespace, b.Namespace))
	})
	return result
}

func (s *standing) result(id graph.ID, now time.Time) ClusterResult {
	p := s.last.plan
	c := ClusterResult{
		Cluster: id, Phase: cmp.Or(p.Phase, adopt.Deferred), Waiting: p.Waiting, Refusals: p.Refusals, Notes: p.Notes, Checks: s.checks,
		Writes: append([]flow.Write{}, s.writes...), Seconds: s.since.Sub(s.first).Seconds(), PhaseSeconds: map[adopt.Phase]float64{},
	}
	if p.Phase == adopt.Adopted {
		c.Notes = append(slices.Clone(s.notes), p.Notes...)
	}
	if p.Phase == adopt.Adopted || p.Phase == adopt.Watching {
		c.Notes = slices.Concat(s.foretold, c.Notes)
		finding.Sort(c.Notes)
		c.Notes = slices.Compact(c.Notes)
	}
	if s.err != nil {
		c.Error = s.err.Error()
	}
	for phase, spent := range s.spent {
		c.PhaseSeconds[phase] = spent.Seconds()
	}
	if p.Phase != "" {
		c.PhaseSeconds[p.Phase] += now.Sub(s.since).Seconds()
	}
	return c
}

// outcomeOf says what a Cluster's last phase means for the run. A dry run has done
// what it could once a pass has something to write.
func outcomeOf(phase adopt.Phase, dryRun bool) flow.Outcome {
	switch phase {
	case adopt.Adopted:
		return flow.Done
	case adopt.Blocked:
		return flow.Blocked
	case adopt.Adopting, adopt.Releasing, adopt.Watching:
		if dryRun {
			return flow.Done
		}
		return flow.Deferred
	case adopt.Deferred, adopt.AwaitingStatus:
		return flow.Deferred
	}
	return flow.Deferred
}
