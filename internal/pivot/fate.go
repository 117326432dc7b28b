package pivot

import (
	"github.com/move-hook/move-hook/pkg/graph"
)

// presence is how one object stands on one side.
type presence int

const (
	// absent: its kind was listed and it is not there.
	absent presence = iota
	// there: nothing is the matter with it.
	there
	// leaving: announced for deletion (clusterctl's delete-for-move, which replaces all
	// annotations), and not deleted yet.
	leaving
	// dying: it is being deleted; its finalizers keep it.
	dying
	// unseen: its kind could not be listed, so nobody knows.
	unseen
)

// String is the word for messages.
func (p presence) String() string {
	return [...]string{"absent", "there", "leaving", "being deleted", "unknown"}[p]
}

func presenceOf(g *graph.Graph, id graph.ID) presence {
	if g == nil {
		return absent
	}
	o, ok := g.Object(id)
	_, announced := annotation(o, graph.DeleteForMoveAnnotation)
	switch {
	case !ok && g.Listed(id.GroupKind(), id.Namespace):
		return absent
	case !ok:
		return unseen
	case o.Deleting:
		return dying
	case announced:
		return leaving
	}
	return there
}

func annotation(o *graph.Object, key string) (string, bool) {
	if o == nil {
		return "", false
	}
	v, ok := o.Annotations[key]
	return v, ok
}

// fate is what has to be done with an object, so that it is whole on the side that
// is to have it.
type fate int

const (
	// keep: it is there.
	keep fate = iota
	// restore: its annotations are put back and the announcement is taken off.
	restore
	// copyOver: it is created from the other side's copy.
	copyOver
	// replace: its deletion, which cannot be taken back, is ended, then it is copied.
	replace
	// lost: it is on neither side, or on its way out on the only one.
	lost
	// unknown: nobody can say whether it is there.
	unknown
)

// String is the participle for what was done, in kubectl's manner.
func (f fate) String() string {
	return [...]string{"kept", "restored", "copied", "replaced", "lost", "unknown"}[f]
}

// fateOf is total: win is the side that is to have the object, lose the one that is
// to be emptied. What is being deleted on the losing side can still be copied as
// long as it is there.
func fateOf(win, lose presence) fate {
	readable := lose == there || lose == leaving || lose == dying
	switch {
	case win == there:
		return keep
	case win == leaving:
		return restore
	case win == unseen:
		return unknown
	case readable && win == dying:
		return replace
	case readable:
		return copyOver
	case lose == unseen:
		return unknown
	}
	return lost
}
