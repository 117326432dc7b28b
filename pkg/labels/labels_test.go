package labels_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/move-hook/move-hook/pkg/labels"
)

var holder = labels.Holder{Who: "move-hook pre", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}

// every combination of the facts that the functions look at.
func every() []labels.Meta {
	var out []labels.Meta
	for _, paused := range []string{"none", "", "user"} {
		for _, held := range []string{"none", holder.String(), "scribble"} {
			for _, adoption := range []string{"none", labels.Pending, "other"} {
				for _, spec := range []bool{false, true} {
					m := labels.Meta{
						Labels:      map[string]string{"theirs": "l"},
						Annotations: map[string]string{"theirs": "a"},
						SpecPaused:  spec,
					}
					if paused != "none" {
						m.Annotations[labels.Paused] = paused
					}
					if held != "none" {
						m.Annotations[labels.Held] = held
					}
					if adoption != "none" {
						m.Labels[labels.Adoption] = adoption
					}
					out = append(out, m)
				}
			}
		}
	}
	return out
}

var functions = map[string]func(labels.Meta) labels.Change{
	"Hold":         func(m labels.Meta) labels.Change { return labels.Hold(m, holder) },
	"Release":      labels.Release,
	"MarkPending":  labels.MarkPending,
	"ClearPending": labels.ClearPending,
	"Annotate":     func(m labels.Meta) labels.Change { return labels.Annotate(m, labels.Record, "x") },
	"Drop":         func(m labels.Meta) labels.Change { return labels.DropAnnotations(m, labels.Record, labels.Released) },
}

func TestLaw_AppliedChangeIsNotNeededAgain(t *testing.T) {
	for name, f := range functions {
		for _, m := range every() {
			before := fmt.Sprint(m)
			after := f(m).Apply(m)
			if again := f(after); !again.Empty() {
				t.Errorf("%s of %v wants %v, and after that still %v", name, m, f(m), again)
			}
			if fmt.Sprint(m) != before {
				t.Errorf("%s changed its input %s", name, before)
			}
			if after.Labels["theirs"] != "l" || after.Annotations["theirs"] != "a" {
				t.Errorf("%s of %v lost what is not ours: %v", name, m, after)
			}
		}
	}
}

func TestP6_AUsersPauseIsNeverTouched(t *testing.T) {
	for _, m := range every() {
		v, paused := m.Annotations[labels.Paused]
		_, ours := m.Annotations[labels.Held]
		if !paused || (ours && v == "") {
			continue
		}
		for name, f := range functions {
			if after := f(m).Apply(m); after.Annotations[labels.Paused] != v || !labels.PausedByAnnotation(after) {
				t.Errorf("%s of %v: the pause became %v", name, m, after.Annotations)
			}
		}
	}
}

func TestHoldAndRelease_LeaveNoTrace(t *testing.T) {
	m := labels.Meta{Annotations: map[string]string{"theirs": "a"}}
	held := labels.Hold(m, holder).Apply(m)
	if got, ok := labels.HolderOf(held); !ok || got != holder {
		t.Errorf("holder is %v, %v; want %v", got, ok, holder)
	}
	if !labels.PausedByAnnotation(held) || labels.PausedByUser(held) {
		t.Errorf("held object %v should be paused, and not by its user", held)
	}
	released := labels.Release(held).Apply(held)
	if diff := cmp.Diff(m.Annotations, released.Annotations); diff != "" {
		t.Errorf("hold and release left a trace:\n%s", diff)
	}
}

func TestRelease_OfAMarkWithoutAPause(t *testing.T) {
	m := labels.Meta{Annotations: map[string]string{labels.Held: holder.String()}}
	if got := labels.Release(m).Apply(m); len(got.Annotations) != 0 {
		t.Errorf("somebody unpaused by hand; the mark should go too, have %v", got.Annotations)
	}
}

func FuzzChange_Apply(f *testing.F) {
	f.Add("cluster.x-k8s.io/paused", "", "pivot.cluster.x-k8s.io/held", "x 2026-01-02T03:04:05Z")
	f.Add("", "", "", "")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string) {
		m := labels.Meta{Annotations: map[string]string{k1: v1, k2: v2}, Labels: map[string]string{k1: v2}}
		for name, fn := range functions {
			copied := labels.Meta{Annotations: maps.Clone(m.Annotations), Labels: maps.Clone(m.Labels)}
			if again := fn(fn(copied).Apply(copied)); !again.Empty() {
				t.Errorf("%s: %v is still wanted", name, again)
			}
		}
	})
}

func ExampleHold() {
	m := labels.Meta{}
	c := labels.Hold(m, holder)
	fmt.Println(c)
	fmt.Println(labels.Hold(c.Apply(m), holder).Empty())
	// Output:
	// +annotation cluster.x-k8s.io/paused, +annotation pivot.cluster.x-k8s.io/held
	// true
}
