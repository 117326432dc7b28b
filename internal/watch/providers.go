package watch

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/scaledown"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

// lookTimeout bounds a look at the providers: it comes again.
const lookTimeout = 30 * time.Second

// rightsAway is the remedy where the API server refuses what scaling up needs.
const rightsAway = "give post the rights of config/scaled-down, or run move-hook disarm"

// scaler is what the loop needs of internal/scaledown.
type scaler interface {
	State(ctx context.Context) (scaledown.State, error)
	Up(ctx context.Context, dryRun bool) ([]flow.Write, error)
	ArrivedOutside(ctx context.Context, since time.Time, known map[graph.ID]bool) ([]graph.ID, error)
}

// providers knows whether move-hook has scaled the target's controllers to zero,
// and scales them up when nothing but that is awaited any more.
type providers struct {
	scaler scaler
	loop   *loop
	dryRun bool

	mu    sync.Mutex
	state scaledown.State
	// blind is why nobody can say how they stand, failed why the last attempt to scale
	// up did not succeed; said is what was told last.
	blind, failed error
	said          string
}

func newProviders(o Options, l *loop) *providers {
	return &providers{loop: l, dryRun: o.DryRun, scaler: scaledown.Providers{Cluster: o.Cluster, Progress: l.told}}
}

// down says whether the providers are scaled down, and since when.
func (p *providers) down() (bool, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.Down, p.state.Since
}

// look asks the server. Where it does not answer, what was known stands.
func (p *providers) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	state, err := p.scaler.State(ctx)
	p.mu.Lock()
	before := p.state
	p.blind = err
	if err == nil {
		p.state = state
	}
	changed := p.state.Down != before.Down
	p.mu.Unlock()
	if changed {
		p.loop.addAll("")
	}
}

// run looks now and then until ctx ends.
func (p *providers) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	next, rest := time.Now().Add(look), time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !time.Now().Before(next) {
			p.look(ctx)
			p.admit()
			next = time.Now().Add(look)
		}
		if down, since := p.down(); down && !p.dryRun && !time.Now().Before(rest) && p.raise(ctx, since) {
			rest = time.Now().Add(look)
		}
	}
}

// admit says that the state of the providers is unknown, once that may be what
// Clusters wait for, or why they do not count as arrived.
func (p *providers) admit() {
	if words := p.unseen(); words != "" {
		p.say(words)
	}
}

// unseen is what to say where the state of the providers is unknown and may matter;
// empty where it is known or does not.
func (p *providers) unseen() string {
	p.mu.Lock()
	blind := p.blind
	p.mu.Unlock()
	if blind == nil || !p.loop.lacksSomething() {
		return ""
	}
	return fmt.Sprintf("whether the providers are scaled down cannot be seen: %v; if they are, %s", blind, rightsAway)
}

// raise scales the providers up if every Cluster of a pivot awaits only that, and
// has done so for as long as nothing new may arrive. It says whether it tried.
func (p *providers) raise(ctx context.Context, since time.Time) bool {
	known, ready := p.loop.awaitControllers()
	if !ready {
		return false
	}
	outside, err := p.scaler.ArrivedOutside(ctx, since, known)
	switch {
	case err != nil:
		p.say(fmt.Sprintf("the providers stay scaled down, for nobody can say which Clusters have arrived elsewhere: %v; move-hook disarm scales them up", err))
		return true
	case len(outside) > 0:
		p.say(fmt.Sprintf("the providers stay scaled down: %s arrived meanwhile and nobody adopts %s here; run move-hook post -A, or scale up with move-hook disarm",
			names(outside), itOrThem(outside)))
		return true
	}
	_, err = p.scaler.Up(ctx, false)
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w; %s", err, rightsAway)
	}
	if ctx.Err() == nil {
		p.mu.Lock()
		p.failed = err
		p.mu.Unlock()
		if err != nil {
			p.say(fmt.Sprintf("the providers could not be scaled up, it is tried again: %v", err))
		}
	}
	p.look(ctx)
	return true
}

// failure is the API's refusal that keeps the providers down.
func (p *providers) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.state.Down || p.failed == nil {
		return nil
	}
	return fmt.Errorf("scaling the providers up: %w", p.failed)
}

// reason is what the providers have to do with it that a run ends before its
// Clusters have; empty for nothing.
func (p *providers) reason() string {
	if p == nil {
		return ""
	}
	if words := p.unseen(); words != "" {
		return words
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.state.Down {
		return ""
	}
	return p.said
}

func (p *providers) say(words string) {
	p.mu.Lock()
	same := p.said == words
	p.said = words
	p.mu.Unlock()
	if !same {
		p.loop.message(words, true)
	}
}

func names(clusters []graph.ID) string {
	const shown = 3
	var out []string
	for i, c := range clusters {
		if i == shown {
			out = append(out, fmt.Sprintf("%d more", len(clusters)-shown))
			break
		}
		out = append(out, c.String())
	}
	return strings.Join(out, ", ")
}

func itOrThem(clusters []graph.ID) string {
	if len(clusters) == 1 {
		return "it"
	}
	return "them"
}

// arrivedSince: the Cluster was created after the providers went down.
func arrivedSince(g *graph.Graph, cluster graph.ID, since time.Time) bool {
	o, ok := g.Object(cluster)
	return ok && !o.Created.Before(since.Truncate(time.Second))
}

// awaitControllers says which Clusters take part in a pivot, and whether all of
// them are adopted or await nothing but controllers, at least one does, and that
// has stood for long enough.
func (l *loop) awaitControllers() (mine map[graph.ID]bool, ready bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine, waits := map[graph.ID]bool{}, false
	for id, s := range l.clusters {
		switch {
		case s.passes == 0 || s.err != nil:
			return nil, false
		case !s.last.mine:
			continue
		case s.last.plan.AwaitsControllers():
			waits = true
			if time.Since(s.changed) < l.settle {
				return nil, false
			}
		case s.last.plan.Phase != adopt.Adopted:
			return nil, false
		}
		mine[id] = true
	}
	return mine, waits
}

// lacksSomething: a Cluster awaits what only controllers can bring, or there are
// Clusters and none counts as being pivoted.
func (l *loop) lacksSomething() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	foreign, mine := false, false
	for _, s := range l.clusters {
		if s.last.mine && s.last.plan.Phase == adopt.AwaitingStatus {
			return true
		}
		mine = mine || s.last.mine || s.passes == 0
		foreign = foreign || !s.last.mine
	}
	return foreign && !mine
}

// told passes an update on that is about no Cluster, for one at a time.
func (l *loop) told(u flow.Update) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u.Wrote != "" {
		l.common = append(l.common, u.Wrote)
		l.meter.wrote()
	}
	l.progress.Say(u)
}
