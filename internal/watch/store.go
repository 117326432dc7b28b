package watch

import (
	"maps"
	"slices"
	"sync"

	"github.com/move-hook/move-hook/pkg/graph"
)

// place is one stream of objects: a kind, in one namespace or (empty) in all.
type place struct {
	kind      graph.GroupKind
	namespace string
	// userSecrets: Secrets come in two streams (management.Cluster.Parts).
	userSecrets bool
}

// holds says that an object of the place's kind and namespace is in its stream.
func (p place) holds(o graph.Object) bool {
	return o.GroupKind() == p.kind && (p.namespace == "" || p.namespace == o.Namespace) && o.Facts.UserSecret == p.userSecrets
}

// other is the second stream of the same kind.
func (p place) other() place {
	p.userSecrets = !p.userSecrets
	return p
}

// store holds every object that was seen and hands out immutable graphs.
//
// A generation counts changes. A graph is built when somebody needs one that is
// younger than the last, so that a burst of arrivals costs one build and not one
// each, and all Clusters of a namespace share it.
type store struct {
	mu         sync.Mutex
	generation uint64
	// objects by namespace; cluster-scoped ones are under "".
	objects map[string]map[graph.ID]graph.Object
	// listed: this stream was read completely and is being watched.
	listed map[place]bool
	kinds  []graph.KindInfo
	// neighbours are namespaces that Clusters of a namespace need besides their
	// own: a ClusterClass may live elsewhere.
	neighbours map[string]map[string]bool
	built      map[string]built
}

type built struct {
	generation uint64
	graph      *graph.Graph
	err        error
}

func newStore() *store {
	return &store{
		objects:    map[string]map[graph.ID]graph.Object{},
		listed:     map[place]bool{},
		neighbours: map[string]map[string]bool{},
		built:      map[string]built{},
	}
}

// put adds or replaces an object. It returns what was there before and the
// generation in which the object is seen.
func (s *store) put(o graph.Object) (before graph.Object, existed bool, generation uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, existed = s.objects[o.Namespace][o.ID]
	if existed && before.UID == o.UID && before.ResourceVersion == o.ResourceVersion {
		return before, existed, s.generation
	}
	s.set(o)
	s.generation++
	return before, existed, s.generation
}

func (s *store) set(o graph.Object) {
	space := s.objects[o.Namespace]
	if space == nil {
		space = map[graph.ID]graph.Object{}
		s.objects[o.Namespace] = space
	}
	space[o.ID] = o
	for _, ref := range o.Refs {
		if ref.To.Namespace != "" && ref.To.Namespace != o.Namespace {
			s.join(o.Namespace, ref.To.Namespace)
		}
	}
}

// remove forgets an object, unless another copy of it is there by now: of two
// streams of a kind the later may be read first.
func (s *store) remove(o graph.Object) (before graph.Object, existed bool, generation uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, existed = s.objects[o.Namespace][o.ID]
	existed = existed && before.UID == o.UID
	if existed {
		delete(s.objects[o.Namespace], o.ID)
		s.generation++
	}
	return before, existed, s.generation
}

// replace makes a stream's content exactly the given objects and returns those
// that changed, in their old or, where there is one, new form. With whole, also
// what has the same resourceVersion is taken anew: it may have been metadata only.
func (s *store) replace(p place, content []graph.Object, whole bool) (changed []graph.Object, generation uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := make(map[graph.ID]bool, len(content))
	for _, o := range content {
		now[o.ID] = true
		before, existed := s.objects[o.Namespace][o.ID]
		if existed && !whole && before.UID == o.UID && before.ResourceVersion == o.ResourceVersion {
			continue
		}
		s.set(o)
		changed = append(changed, o)
	}
	for namespace, space := range s.objects {
		if p.namespace != "" && namespace != p.namespace {
			continue
		}
		for id, o := range space {
			if p.holds(o) && !now[id] {
				delete(space, id)
				changed = append(changed, o)
			}
		}
	}
	if len(changed) > 0 {
		s.generation++
	}
	return changed, s.generation
}

// setListed says whether "not there" may be concluded from a stream.
func (s *store) setListed(p place, listed bool) (changed bool, generation uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed[p] == listed {
		return false, s.generation
	}
	s.listed[p] = listed
	s.generation++
	return true, s.generation
}

// expect says that a stream is about to be read.
func (s *store) expect(p place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.listed[p]; !known {
		s.listed[p] = false
	}
}

// complete says that every stream was read completely and is being watched.
func (s *store) complete() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, listed := range s.listed {
		if !listed {
			return false
		}
	}
	return true
}

// setKinds replaces what discovery knows.
func (s *store) setKinds(kinds []graph.KindInfo) (changed bool, generation uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Equal(s.kinds, kinds) {
		return false, s.generation
	}
	s.kinds = kinds
	s.generation++
	return true, s.generation
}

// need lets graphs of a namespace hold another namespace's objects too.
func (s *store) need(namespace, other string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other != "" && other != namespace && s.join(namespace, other) {
		s.generation++
	}
}

func (s *store) join(namespace, other string) bool {
	if s.neighbours[namespace][other] {
		return false
	}
	if s.neighbours[namespace] == nil {
		s.neighbours[namespace] = map[string]bool{}
	}
	s.neighbours[namespace][other] = true
	return true
}

// needed are all namespaces that some Cluster's graph must hold besides its own.
func (s *store) needed() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]bool{}
	for _, others := range s.neighbours {
		maps.Copy(all, others)
	}
	return all
}

// neighboursOf are the namespaces whose Clusters' graphs hold this namespace's objects.
func (s *store) neighboursOf(namespace string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	for name, others := range s.neighbours {
		if others[namespace] {
			found = append(found, name)
		}
	}
	return found
}

// get returns one object as it was last seen.
func (s *store) get(id graph.ID) (graph.Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[id.Namespace][id]
	return o, ok
}

// graph returns a graph of a namespace that is at least as young as the
// generation. Its readers must not change what it holds.
func (s *store) graph(namespace string, atLeast uint64) (*graph.Graph, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.built[namespace]; ok && last.generation >= atLeast {
		return last.graph, last.err
	}
	g, err := s.build(namespace)
	s.built[namespace] = built{generation: s.generation, graph: g, err: err}
	return g, err
}

// build holds the lock while it builds: two workers that need the same graph
// should wait for it rather than build it twice.
func (s *store) build(namespace string) (*graph.Graph, error) {
	var b graph.Builder
	for _, kind := range s.kinds {
		b.Kind(kind)
	}
	within := map[string]bool{"": true, namespace: true}
	maps.Copy(within, s.neighbours[namespace])
	for name := range within {
		for _, o := range s.objects[name] {
			b.Add(o)
		}
	}
	for p, listed := range s.listed {
		if listed && within[p.namespace] && (p.kind != graph.Secret || s.listed[p.other()]) {
			b.Listed(p.kind, p.namespace)
		}
	}
	return b.Build()
}
