package watch

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/move-hook/move-hook/internal/rollout"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

// fresh is how long an answer holds while nothing that it rests on changes: upstream
// also judges by the time.
const fresh = time.Minute

// rollouts asks upstream's verdict about Clusters that are about to be adopted. An
// answer is kept while the objects that it rests on are the same: nobody is asked at
// every pass.
type rollouts struct {
	ask func(ctx context.Context, cluster, controlPlane graph.ID, machines []graph.ID) (rollout.Answer, error)
	// installed is the version of the provider that will act.
	installed func(ctx context.Context) (string, error)
	// explain asks once about every Cluster that is complete, also where nothing is to be decided.
	explain bool

	mu        sync.Mutex
	known     map[graph.ID]known
	explained map[graph.ID]bool
}

type known struct {
	basis string
	at    time.Time
	rollout.Answer
	installed string
}

func newRollouts(o Options) *rollouts {
	return &rollouts{
		ask: func(ctx context.Context, cluster, controlPlane graph.ID, machines []graph.ID) (rollout.Answer, error) {
			return rollout.Ask(ctx, o.Cluster, cluster, controlPlane, machines)
		},
		installed: o.Cluster.KubeadmProviderVersion,
		explain:   o.Explain, known: map[graph.ID]known{}, explained: map[graph.ID]bool{},
	}
}

// fill adds the verdicts to a State where a decision needs them. explained says that
// the State can be explained, and was not so far.
func (r *rollouts) fill(ctx context.Context, s *adopt.State) (explained bool, err error) {
	machines := adopt.AsksRollout(*s)
	explained = r.explain && (len(machines) > 0 || r.first(s))
	controlPlane, all := adopt.ControlPlaneMachines(s.Cluster, s.Graph)
	if explained {
		machines = all
	}
	if len(machines) == 0 {
		r.note(s.Cluster, explained)
		return explained, nil
	}
	k, err := r.answer(ctx, s, controlPlane, machines)
	if err != nil {
		return false, fmt.Errorf("asking whether %s would replace Machines: %w", controlPlane, err)
	}
	s.Rollout, s.RolloutUnknown, s.ProviderVersion = k.Verdicts, k.Unknown, k.installed
	r.note(s.Cluster, explained)
	return explained, nil
}

func (r *rollouts) note(cluster graph.ID, explained bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.explained[cluster] = r.explained[cluster] || explained
}

// first says that a Cluster is complete and was not explained yet.
func (r *rollouts) first(s *adopt.State) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.explained[s.Cluster] && adopt.Explain(*s) != nil
}

func (r *rollouts) answer(ctx context.Context, s *adopt.State, controlPlane graph.ID, machines []graph.ID) (known, error) {
	basis := basisOf(s.Graph, controlPlane, machines)
	r.mu.Lock()
	k, ok := r.known[s.Cluster]
	r.mu.Unlock()
	if ok && k.basis == basis && time.Since(k.at) < fresh {
		return k, nil
	}
	answer, err := r.ask(ctx, s.Cluster, controlPlane, machines)
	if err != nil {
		return known{}, err
	}
	k = known{basis: basis, at: time.Now(), Answer: answer}
	// What is installed is only told: that it cannot be read is no reason to stop.
	k.installed, _ = r.installed(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[s.Cluster] = k
	return k, nil
}

// basisOf names the versions of all that a verdict is made from.
func basisOf(g *graph.Graph, controlPlane graph.ID, machines []graph.ID) string {
	var b strings.Builder
	add := func(id graph.ID) {
		if o, ok := g.Object(id); ok {
			fmt.Fprintf(&b, "%s %s %s\n", id, o.UID, o.ResourceVersion)
		}
	}
	for _, id := range append([]graph.ID{controlPlane}, machines...) {
		add(id)
		for _, e := range g.SpecRefs(id) {
			if e.To.GroupKind() != graph.Cluster {
				add(e.To)
			}
		}
	}
	return b.String()
}
