package watch

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/pkg/graph"
)

// rediscovery is how often kinds are looked for that were installed meanwhile.
const rediscovery = 15 * time.Second

// streams runs one feed for each kind and namespace that somebody needs, and
// opens more as Clusters and records name them.
type streams struct {
	cluster *management.Cluster
	// namespace of the run; empty means that every feed covers all.
	namespace string
	store     *store
	contact   *contact
	changed   func(o graph.Object, generation uint64)
	known     func(p place, listed bool, generation uint64, why error)

	mu sync.Mutex
	// wanted are kinds beyond clusterctl's, controlPlanes those that Clusters refer
	// to as their control plane: their spec and status are read.
	wanted, controlPlanes map[graph.GroupKind]bool
	// more has room for one: it says that open has something to do.
	more chan struct{}

	// running is only touched by open and close.
	running map[place]*running
	feeds   sync.WaitGroup
}

type running struct {
	feed  *feed
	whole bool
	stop  context.CancelFunc
	done  chan struct{}
}

// want asks for a kind that clusterctl does not list.
func (s *streams) want(kinds ...graph.GroupKind) { s.note(s.wanted, kinds) }

// controls asks for spec and status of a control plane kind.
func (s *streams) controls(kind graph.GroupKind) {
	s.note(s.controlPlanes, []graph.GroupKind{kind})
}

func (s *streams) note(in map[graph.GroupKind]bool, kinds []graph.GroupKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kind := range kinds {
		if !in[kind] {
			in[kind] = true
			s.nudge()
		}
	}
}

// nudge lets open run soon.
func (s *streams) nudge() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// start discovers, opens what is there, and returns once every feed is complete
// or has failed for the first time.
func (s *streams) start(ctx context.Context) error {
	found, err := s.cluster.Refresh(ctx)
	if err != nil {
		return err
	}
	s.open(ctx, found)
	for _, r := range s.running {
		select {
		case <-r.feed.tried:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// run keeps up with what is needed until ctx ends, and returns when the last feed
// has stopped. Kinds are discovered anew only while unfinished says so.
func (s *streams) run(ctx context.Context, unfinished func() bool) {
	tick := time.NewTicker(rediscovery)
	defer tick.Stop()
	for {
		var found *management.Discovery
		var err error
		select {
		case <-ctx.Done():
			s.feeds.Wait()
			return
		case <-s.more:
			found, err = s.cluster.Discover(ctx)
		case <-tick.C:
			if !unfinished() {
				continue
			}
			found, err = s.cluster.Refresh(ctx)
		}
		if ctx.Err() != nil {
			continue
		}
		s.contact.report(err)
		if err == nil {
			s.open(ctx, found)
		}
	}
}

// open starts every feed that is needed and not there, and starts those anew of
// which more has to be read.
func (s *streams) open(ctx context.Context, found *management.Discovery) {
	kinds, controlPlanes := s.needed(found)
	for _, kind := range kinds {
		whole := management.Whole(kind.GroupKind, controlPlanes, true)
		for _, namespace := range s.namespaces(kind) {
			for _, stream := range s.cluster.Parts(kind, namespace, whole) {
				p := place{kind: kind.GroupKind, namespace: namespace, userSecrets: stream.UserSecrets()}
				if have := s.running[p]; have == nil || whole && !have.whole {
					s.begin(ctx, p, stream, whole)
				}
			}
		}
	}
	// Owner references of kinds that nobody watches have to be resolved too.
	var infos []graph.KindInfo
	for _, kind := range found.All() {
		infos = append(infos, kind.KindInfo)
	}
	s.store.setKinds(infos)
}

// needed are the kinds that clusterctl lists and those that were asked for.
func (s *streams) needed(found *management.Discovery) ([]management.Kind, map[graph.GroupKind]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kinds := found.Moved()
	for _, asked := range []map[graph.GroupKind]bool{s.wanted, s.controlPlanes} {
		for kind := range asked {
			if k, ok := found.Find(kind); ok && !k.Discovered {
				kinds = append(kinds, k)
			}
		}
	}
	slices.SortFunc(kinds, func(a, b management.Kind) int { return a.Compare(b.GroupKind) })
	kinds = slices.CompactFunc(kinds, func(a, b management.Kind) bool { return a.GroupKind == b.GroupKind })
	return kinds, maps.Clone(s.controlPlanes)
}

// namespaces in which a kind is watched. Secrets and ConfigMaps of a neighbour are
// not: there a ClusterClass lives with its templates, and much else that is not ours.
func (s *streams) namespaces(kind management.Kind) []string {
	if s.namespace == "" || !kind.Namespaced {
		return []string{""}
	}
	all := []string{s.namespace}
	if kind.GroupKind == graph.Secret || kind.GroupKind == graph.ConfigMap {
		return all
	}
	for other := range s.store.needed() {
		if other != s.namespace {
			all = append(all, other)
		}
	}
	return all
}

func (s *streams) begin(ctx context.Context, p place, stream management.Stream, whole bool) {
	if before := s.running[p]; before != nil {
		before.stop()
		<-before.done
	}
	ctx, stop := context.WithCancel(ctx)
	r := &running{whole: whole, stop: stop, done: make(chan struct{})}
	r.feed = &feed{
		place: p, list: stream.List, watch: stream.Watch, convert: stream.Convert,
		store: s.store, contact: s.contact, changed: s.changed, known: s.known,
		whole: s.running[p] != nil, tried: make(chan struct{}),
	}
	s.running[p] = r
	s.store.expect(p)
	s.feeds.Go(func() {
		defer close(r.done)
		r.feed.run(ctx)
	})
}
