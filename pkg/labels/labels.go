// Package labels holds move-hook's marks: the adoption label, and the hold with
// the mark that says it is ours. Each function looks at an object's metadata and
// returns the Change that is still needed; applying it makes the next call empty:
// for every f, f(c.Apply(m)).Empty() where c = f(m).
//
// A pause without our mark is the user's: no function here ever sets or removes it.
package labels

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/move-hook/move-hook/pkg/graph"
)

// The keys, see pkg/graph.
const (
	Adoption = graph.AdoptionLabel
	Pending  = graph.AdoptionPending
	Never    = graph.AdoptionNever
	Paused   = graph.PausedAnnotation
	Held     = graph.HeldAnnotation
	Record   = graph.RecordAnnotation
	Released = graph.ReleasedAnnotation
	Adopted  = graph.AdoptedAnnotation
	Owners   = graph.OwnersAnnotation
)

// Meta is a read-only view of an object's metadata.
type Meta struct {
	Labels, Annotations map[string]string
	// SpecPaused is Cluster.spec.paused; false for every other kind.
	SpecPaused bool
}

// MetaOf is the view of a graph object.
func MetaOf(o *graph.Object) Meta {
	return Meta{Labels: o.Labels, Annotations: o.Annotations, SpecPaused: o.Facts.Paused}
}

// Change is what is to be set and dropped. The zero Change changes nothing.
type Change struct {
	SetLabels, SetAnnotations   map[string]string
	DropLabels, DropAnnotations []string
}

// Empty says that there is nothing to change.
func (c Change) Empty() bool {
	return len(c.SetLabels) == 0 && len(c.SetAnnotations) == 0 && len(c.DropLabels) == 0 && len(c.DropAnnotations) == 0
}

// Apply returns the metadata as it will be. m is not changed. A key that is both
// set and dropped is dropped.
func (c Change) Apply(m Meta) Meta {
	return Meta{
		Labels:      apply(m.Labels, c.SetLabels, c.DropLabels),
		Annotations: apply(m.Annotations, c.SetAnnotations, c.DropAnnotations),
		SpecPaused:  m.SpecPaused,
	}
}

func apply(have, set map[string]string, drop []string) map[string]string {
	out := make(map[string]string, len(have)+len(set))
	maps.Copy(out, have)
	maps.Copy(out, set)
	for _, k := range drop {
		delete(out, k)
	}
	return out
}

// String is one line, what is set first, sorted:
// "+annotation cluster.x-k8s.io/paused, -label x"; empty for an empty Change.
func (c Change) String() string {
	var parts []string
	add := func(sign, what string, keys []string) {
		slices.Sort(keys)
		for _, k := range keys {
			parts = append(parts, fmt.Sprintf("%s%s %s", sign, what, k))
		}
	}
	add("+", "label", slices.Collect(maps.Keys(c.SetLabels)))
	add("+", "annotation", slices.Collect(maps.Keys(c.SetAnnotations)))
	add("-", "label", slices.Clone(c.DropLabels))
	add("-", "annotation", slices.Clone(c.DropAnnotations))
	return strings.Join(parts, ", ")
}

// Holder is who holds an object, and since when.
type Holder struct {
	Who   string
	Since time.Time
}

// String is the value of the held annotation: "<who> <RFC3339>".
func (h Holder) String() string {
	return h.Who + " " + h.Since.UTC().Format(time.RFC3339)
}

// HolderOf reads our mark; false without one. A mark whose time cannot be read
// is still ours: Who is then the whole value.
func HolderOf(m Meta) (Holder, bool) {
	v, ok := m.Annotations[Held]
	if !ok {
		return Holder{}, false
	}
	if i := strings.LastIndexByte(v, ' '); i >= 0 {
		if t, err := time.Parse(time.RFC3339, v[i+1:]); err == nil {
			return Holder{Who: v[:i], Since: t}, true
		}
	}
	return Holder{Who: v}, true
}

// IsHeld says that the object carries our mark.
func IsHeld(m Meta) bool {
	_, ok := m.Annotations[Held]
	return ok
}

// IsPending says that adoption is wanted and not finished.
func IsPending(m Meta) bool { return m.Labels[Adoption] == Pending }

// PausedByAnnotation says that the paused annotation is there, whoever set it.
func PausedByAnnotation(m Meta) bool {
	_, ok := m.Annotations[Paused]
	return ok
}

// PausedByUser says that somebody other than us paused the object: by spec, by
// an annotation without our mark, or by one whose value we did not write.
func PausedByUser(m Meta) bool {
	v, ok := m.Annotations[Paused]
	return m.SpecPaused || (ok && (!IsHeld(m) || v != ""))
}

// Hold pauses the object and marks the pause as ours. Empty when it is held
// already, and when its user paused it, by annotation or by spec.paused: then it
// is still without us. A mark whose pause somebody took off by hand is paused
// again and keeps its first holder.
func Hold(m Meta, by Holder) Change {
	if m.SpecPaused || PausedByAnnotation(m) {
		return Change{}
	}
	c := Change{SetAnnotations: map[string]string{Paused: ""}}
	if !IsHeld(m) {
		c.SetAnnotations[Held] = by.String()
	}
	return c
}

// Release takes our hold off. Empty without our mark, always. Where the pause
// has a value that we did not write (ours is empty), its user paused the object
// while we held it: then only the mark goes and the pause stays. A user who pauses
// a held object with an empty value cannot be told from us; who wants the pause to
// outlast the pivot gives it a value.
func Release(m Meta) Change {
	if !IsHeld(m) {
		return Change{}
	}
	c := Change{DropAnnotations: []string{Held}}
	if v, ok := m.Annotations[Paused]; ok && v == "" {
		c.DropAnnotations = append(c.DropAnnotations, Paused)
	}
	return c
}

// OptedOut says that the user of a Cluster wants no control plane to adopt its
// stand-alone control-plane Machines: the annotation with the adoption label's key.
// It is the user's, no function here sets or removes it.
func OptedOut(m Meta) bool { return m.Annotations[Adoption] == Never }

// MarkPending sets the adoption label.
func MarkPending(m Meta) Change {
	if IsPending(m) {
		return Change{}
	}
	return Change{SetLabels: map[string]string{Adoption: Pending}}
}

// ClearPending takes the adoption label off, whatever its value.
func ClearPending(m Meta) Change {
	if _, ok := m.Labels[Adoption]; !ok {
		return Change{}
	}
	return Change{DropLabels: []string{Adoption}}
}

// OwnersHeld says that the object carries the owner references that an armed
// target took off it.
func OwnersHeld(m Meta) bool {
	_, ok := m.Annotations[Owners]
	return ok
}

// Marked says that the object carries a mark of a pivot that has not ended: the
// adoption label, a hold, owners that were taken off, or, on a Cluster, that a record
// was announced or when the scalers were released. The record has a mark of its own.
func Marked(m Meta) bool {
	return IsPending(m) || IsHeld(m) || OwnersHeld(m) || !DropAnnotations(m, Record, Released).Empty()
}

// DropOwners takes the owners annotation off, once the owners are given back.
func DropOwners(m Meta) Change { return DropAnnotations(m, Owners) }

// Annotate sets one of our annotations to a value. Never give it a key that is not
// ours.
func Annotate(m Meta, key, value string) Change {
	if v, ok := m.Annotations[key]; ok && v == value {
		return Change{}
	}
	return Change{SetAnnotations: map[string]string{key: value}}
}

// DropAnnotations removes those of the keys that are there. Never give it a key
// that is not ours.
func DropAnnotations(m Meta, keys ...string) Change {
	var c Change
	for _, k := range keys {
		if _, ok := m.Annotations[k]; ok {
			c.DropAnnotations = append(c.DropAnnotations, k)
		}
	}
	return c
}
