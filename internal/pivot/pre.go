package pivot

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/preflight"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

const (
	// preTimeout is how long is waited until nothing is in flight, unless told otherwise.
	preTimeout = 2 * time.Minute
	// poll is how often the source is read meanwhile.
	poll = 2 * time.Second
	// writers bounds the writes that are under way at once.
	writers = 8
	// rereads bounds how often a step starts over because somebody else writes too.
	rereads = 10
)

// PreOptions say which Clusters to prepare.
type PreOptions struct {
	Source *management.Cluster
	// Target may be nil; if given, no live copy of the Clusters may be on it.
	Target *management.Cluster
	// Namespace to prepare; empty for all.
	Namespace string
	// Names of Clusters; empty for all in the namespace.
	Names []types.NamespacedName
	// RecordFile is written as well, if set.
	RecordFile string
	DryRun     bool
	// Timeout is how long to wait until nothing is in flight; 2 minutes when zero.
	Timeout time.Duration
	// Ignore are IDs of findings that the user accepts; they do not stop.
	Ignore []string
	// Offer and Rights are PreflightOptions'.
	Offer, Rights bool
	// Holder is who holds, as people read it in the annotation; "move-hook" when empty.
	Holder   string
	Progress flow.Progress
}

// Pre prepares the source of a pivot. It may be killed anywhere and run again;
// on a prepared source it writes nothing.
func Pre(ctx context.Context, o PreOptions) (PreResult, error) {
	p := newPreparation(o)
	err := p.run(ctx)
	return p.result, err
}

// preparation is one run of Pre.
type preparation struct {
	// checking is the preflight; its scope is the source as it was read last.
	*checking
	o       PreOptions
	records recordStore
	guarded []guarded
	begin   time.Time
	// checksums and snapshots of the records, by Cluster.
	checksums map[graph.ID]string
	snapshots map[graph.ID]graph.Snapshot
	// configMaps are the names of the records' ConfigMaps.
	configMaps map[graph.ID][]string

	mu     sync.Mutex
	result PreResult
}

func newPreparation(o PreOptions) *preparation {
	p := &preparation{
		checking: newChecking(PreflightOptions{Source: o.Source, Target: o.Target, Namespace: o.Namespace, Names: o.Names, Ignore: o.Ignore,
			Offer: o.Offer, Rights: o.Rights, Progress: o.Progress}),
		o: o, records: configMaps{o.Source}, begin: time.Now(),
		checksums: map[graph.ID]string{}, snapshots: map[graph.ID]graph.Snapshot{}, configMaps: map[graph.ID][]string{},
		result: PreResult{Outcome: flow.Done, Namespace: o.Namespace, DryRun: o.DryRun, Clusters: []PreparedCluster{}, Writes: []flow.Write{}},
	}
	if o.Source != nil {
		p.guarded = append(p.guarded, guardOf(o.Source, "", o.DryRun))
	}
	if o.Target != nil {
		p.guarded = append(p.guarded, guardOf(o.Target, " on the target", o.DryRun))
	}
	return p
}

func (p *preparation) run(ctx context.Context) error {
	defer func() { p.result.Seconds = time.Since(p.begin).Seconds() }()
	steps := []step{
		{"Reading " + p.source.Name(), p.look},
		{"Checking that nothing stands in the way", p.preflight},
		{"", func(ctx context.Context) (bool, error) { return false, p.read(ctx) }},
		{"Holding what creates or deletes Machines", p.hold},
		{"Writing the record", p.record},
		{"Announcing the record on the Clusters", p.announce},
		{"Guarding what is labelled", p.guard},
		{"Labelling control planes and their Machines", p.label},
		// Who ended another pivot meanwhile saw no label and took the guard off.
		{"", p.guard},
	}
	if p.o.RecordFile != "" {
		steps = append(steps, step{"Writing " + p.o.RecordFile, p.file})
	}
	return follow(ctx, p.o.Progress, append(steps, step{"", p.sum}))
}

// preflight runs every check; what stops ends the flow, before anything was written.
// What is in flight is waited for by hold, and told there.
func (p *preparation) preflight(ctx context.Context) (end bool, err error) {
	p.result.Findings, p.result.Ignored, err = p.check(ctx)
	p.result.Findings = preflight.NotAwaited(p.scope, p.result.Findings)
	if err != nil || !preflight.Stops(p.result.Findings) {
		return err != nil, err
	}
	p.result.Outcome = flow.Findings
	return true, nil
}

// hold waits until nothing is in flight and holds every scaler. What comes into
// flight between the look and the hold is let finish: the scalers that it needs
// are released again. A killed run leaves such a hold, the next one finds it.
func (p *preparation) hold(ctx context.Context) (end bool, err error) {
	deadline := p.begin.Add(cmp.Or(p.o.Timeout, preTimeout))
	by := labels.Holder{Who: cmp.Or(p.o.Holder, "move-hook"), Since: p.begin}
	for said := ""; ; {
		actions, waiting := holds(p.scope, by), preflight.Flying(p.scope)
		if len(waiting) == 0 && len(actions) == 0 {
			return false, nil
		}
		p.result.Waiting = missing(waiting)
		if len(waiting) > 0 {
			actions = releases(p.scope, waiting)
		}
		if err := p.apply(ctx, actions); err != nil {
			return true, err
		}
		if len(waiting) > 0 {
			if p.o.DryRun || time.Now().After(deadline) {
				p.result.Outcome = flow.Deferred
				p.result.Message = "something is in flight on the source: run the same command again when it has ended"
				return true, nil
			}
			if now := fmt.Sprint(p.result.Waiting); now != said {
				said = now
				p.o.Progress.Say(flow.Update{Time: time.Now(), Message: "Waiting until nothing is in flight: " + p.result.Waiting[0].String() + andMore(len(p.result.Waiting)-1)})
			}
			if !flow.Pause(ctx, poll) {
				return true, context.Cause(ctx)
			}
		} else if p.o.DryRun {
			return false, nil
		}
		if err := p.read(ctx); err != nil {
			return true, err
		}
	}
}

func missing(flying []preflight.InFlight) []adopt.Missing {
	var m []adopt.Missing
	for _, f := range flying {
		m = append(m, f.Missing)
	}
	return m
}

func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// announce makes a post that sees a Cluster before its record wait for the record.
func (p *preparation) announce(ctx context.Context) (end bool, err error) {
	return p.converge(ctx, func(s *preflight.Scope) []adopt.Action {
		var actions []adopt.Action
		for _, cluster := range s.Clusters {
			o, ok := s.Graph.Object(cluster)
			if !ok {
				continue
			}
			m := labels.MetaOf(o)
			c := labels.Annotate(m, labels.Record, p.checksums[cluster])
			// Left by an earlier pivot that ended on this side before it was closed.
			c.DropAnnotations = labels.DropAnnotations(m, labels.Released).DropAnnotations
			actions = change(actions, o, c, "a record was written")
		}
		return actions
	})
}

func (p *preparation) label(ctx context.Context) (end bool, err error) {
	return p.converge(ctx, pendings)
}

func (p *preparation) guard(ctx context.Context) (end bool, err error) {
	for _, g := range p.guarded {
		wrote, err := g.install(ctx, p.o.Progress, p.told)
		for _, w := range wrote {
			p.wrote(w)
		}
		if err != nil {
			return true, err
		}
	}
	return false, nil
}

// sum tells from what is there now, not from what was done, what is prepared.
func (p *preparation) sum(context.Context) (end bool, err error) {
	for _, cluster := range p.scope.Clusters {
		done := PreparedCluster{Cluster: cluster, Objects: len(p.snapshots[cluster].Nodes), Checksum: p.checksums[cluster],
			ConfigMaps: p.configMaps[cluster], Held: []graph.ID{}, Pending: []graph.ID{}}
		for _, o := range scalersOf(p.scope, cluster) {
			if labels.IsHeld(labels.MetaOf(o)) {
				done.Held = append(done.Held, o.ID)
			}
		}
		for _, o := range toLabel(p.scope, cluster) {
			if labels.IsPending(labels.MetaOf(o)) {
				done.Pending = append(done.Pending, o.ID)
			}
		}
		p.result.Clusters = append(p.result.Clusters, done)
	}
	return true, nil
}

// converge applies what is wanted and reads again, until nothing is wanted.
func (p *preparation) converge(ctx context.Context, want func(*preflight.Scope) []adopt.Action) (end bool, err error) {
	for range rereads {
		actions := want(p.scope)
		if len(actions) == 0 {
			return false, nil
		}
		if err := p.apply(ctx, actions); err != nil || p.o.DryRun {
			return err != nil, err
		}
		if err := p.read(ctx); err != nil {
			return true, err
		}
	}
	return true, fmt.Errorf("%s keeps changing: somebody else writes the objects that have to be prepared, run the command again", p.source.Name())
}

// apply performs actions on distinct objects side by side. What has moved on is
// left for the next look.
func (p *preparation) apply(ctx context.Context, actions []adopt.Action) error {
	done := make([]bool, len(actions))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i, a := range actions {
		group.Go(func() error {
			outcome, err := p.source.Apply(ctx, a, p.o.DryRun)
			done[i] = err == nil && outcome == adopt.Applied
			return err
		})
	}
	err := group.Wait()
	for i, a := range actions {
		if done[i] {
			p.wrote(flow.WriteOf(a, p.o.DryRun))
		}
	}
	return err
}

func (p *preparation) wrote(w flow.Write) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.result.Writes = append(p.result.Writes, w)
	p.o.Progress.Say(flow.Update{Time: time.Now(), Wrote: w})
}
