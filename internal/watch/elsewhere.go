package watch

import (
	"fmt"
	"slices"
	"sync"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// elsewhere knows, in a run that has a share of the Clusters, how those of the other
// runs get on: as far as the marks tell that these set and remove. It is for ending
// the run; no pass reads it.
type elsewhere struct {
	mu sync.Mutex
	// open are the objects with a mark of a pivot that has not ended, also those of
	// Clusters of this run: they may have arrived before their Cluster.
	open map[graph.ID]bool
	// pivoted are the others' Clusters of which an object has, or had, a mark; there
	// are those that exist.
	pivoted, there map[graph.ID]bool
}

func newElsewhere() *elsewhere {
	return &elsewhere{open: map[graph.ID]bool{}, pivoted: map[graph.ID]bool{}, there: map[graph.ID]bool{}}
}

// unfinished: the object's marks say that a pivot has not ended. A record stays, and
// is closed.
func unfinished(o graph.Object) bool {
	m := labels.MetaOf(&o)
	_, closed := m.Annotations[labels.Adopted]
	return labels.Marked(m) || graph.IsRecord(&o) && !closed
}

// note takes an object as it was told, in its old or its new form, and as it is now,
// nil for gone, with the Clusters of other runs that it is of. It says whether ended
// may answer differently.
func (e *elsewhere) note(told graph.Object, now *graph.Object, others []graph.ID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	changed := set(e.open, told.ID, now != nil && unfinished(*now))
	marked := unfinished(told) || graph.IsRecord(&told)
	for _, cluster := range others {
		if cluster == told.ID {
			changed = set(e.there, cluster, now != nil) || changed
		}
		if marked {
			changed = set(e.pivoted, cluster, true) || changed
		}
	}
	return changed
}

// set puts an ID in or takes it out, and says whether that changed anything.
func set(m map[graph.ID]bool, id graph.ID, in bool) bool {
	if m[id] == in {
		return false
	}
	if in {
		m[id] = true
	} else {
		delete(m, id)
	}
	return true
}

// ended says that there are Clusters of a pivot and nothing of them is unfinished. A
// dry run finishes nothing: there it is enough that they are there.
func (e *elsewhere) ended(dryRun bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return (dryRun || len(e.open) == 0) && e.count() > 0
}

// count is how many Clusters of a pivot the other runs have.
func (e *elsewhere) count() int {
	n := 0
	for cluster := range e.pivoted {
		if e.there[cluster] {
			n++
		}
	}
	return n
}

// divided notes what an object tells about the Clusters that fall to other runs.
func (r *run) divided(o graph.Object, clusters []graph.ID) {
	if r.elsewhere == nil || r.o.Namespace != "" && r.o.Namespace != o.Namespace {
		return
	}
	var now *graph.Object
	if there, ok := r.store.get(o.ID); ok {
		now = &there
	}
	if r.elsewhere.note(o, now, slices.DeleteFunc(slices.Clone(clusters), r.o.Shard.Has)) {
		r.loop.wake()
	}
}

// nothingHere is why a run has nothing to do that has a share of the Clusters; ended:
// it did not wait until its time was over.
func (r *run) nothingHere(ended bool) string {
	what := "no Cluster of a pivot"
	if len(r.o.Names) > 0 {
		what = "no Cluster that was named"
	}
	words := fmt.Sprintf("%s falls to shard %d of %d", what, r.o.Shard.Index, r.o.Shard.Count)
	if !ended || r.elsewhere == nil {
		return words
	}
	r.elsewhere.mu.Lock()
	defer r.elsewhere.mu.Unlock()
	have := "have adopted"
	if r.o.DryRun {
		have = "have"
	}
	return fmt.Sprintf("%s: the others %s %d", words, have, r.elsewhere.count())
}
