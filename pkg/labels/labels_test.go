package labels_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/move-hook/move-hook/pkg/graph"
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
	"DropOwners":   labels.DropOwners,
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

// A hold is a pause and our mark, and neither is put where the user's pause already does the work.
func TestHold_IsEmptyWhereItsUserPaused(t *testing.T) {
	for _, m := range every() {
		after := labels.Hold(m, holder).Apply(m)
		_, marked := m.Annotations[labels.Held]
		switch {
		case m.SpecPaused || labels.PausedByAnnotation(m):
			if c := labels.Hold(m, holder); !c.Empty() {
				t.Errorf("Hold of the paused %v is %v", m, c)
			}
		case !labels.PausedByAnnotation(after) || !labels.IsHeld(after) || labels.PausedByUser(after):
			t.Errorf("Hold of %v gives %v, which is not held by us", m, after)
		case marked && after.Annotations[labels.Held] != m.Annotations[labels.Held]:
			t.Errorf("Hold of %v forgets who held it first: %v", m, after)
		}
	}
}

func TestRelease_IsEmptyWithoutOurMark(t *testing.T) {
	for _, m := range every() {
		c, after := labels.Release(m), labels.Release(m).Apply(m)
		if labels.IsHeld(m) == c.Empty() {
			t.Errorf("Release of %v is %q", m, c)
		}
		if labels.IsHeld(after) || labels.PausedByAnnotation(after) != labels.PausedByUser(labels.Meta{Annotations: m.Annotations}) {
			t.Errorf("Release of %v leaves %v", m, after)
		}
	}
}

func TestHolderOf_ReadsWhatPeopleScribble(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tc := range []struct {
		value string
		want  labels.Holder
	}{
		{"move-hook pre 2026-01-02T03:04:05Z", labels.Holder{Who: "move-hook pre", Since: since}},
		{"host 2026-01-02T04:04:05+01:00", labels.Holder{Who: "host", Since: since}},
		{" 2026-01-02T03:04:05Z", labels.Holder{Since: since}},
		{"2026-01-02T03:04:05Z", labels.Holder{Who: "2026-01-02T03:04:05Z"}},
		{"by hand, ask me", labels.Holder{Who: "by hand, ask me"}},
		{"", labels.Holder{}},
	} {
		got, ok := labels.HolderOf(labels.Meta{Annotations: map[string]string{labels.Held: tc.value}})
		if !ok || got.Who != tc.want.Who || !got.Since.Equal(tc.want.Since) {
			t.Errorf("%q is %+v, %v; want %+v", tc.value, got, ok, tc.want)
		}
	}
	if _, ok := labels.HolderOf(labels.Meta{Annotations: map[string]string{labels.Paused: ""}}); ok {
		t.Error("a pause without our mark has no holder")
	}
}

func TestChange_StringIsOneSortedLine(t *testing.T) {
	c := labels.Change{
		SetLabels: map[string]string{"b": "", "a": ""}, SetAnnotations: map[string]string{"c": "v"},
		DropLabels: []string{"e", "d"}, DropAnnotations: []string{"f"},
	}
	if got, want := c.String(), "+label a, +label b, +annotation c, -label d, -label e, -annotation f"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if c.DropLabels[0] != "e" {
		t.Error("String changed the Change")
	}
	if got := (labels.Change{}).String(); got != "" {
		t.Errorf("the empty Change is %q", got)
	}
}

func TestMetaOf_SeesWhatIsOnTheObject(t *testing.T) {
	o := &graph.Object{Labels: map[string]string{labels.Adoption: labels.Pending}, Annotations: map[string]string{labels.Held: holder.String()}}
	o.Facts.Paused = true
	if m := labels.MetaOf(o); !labels.IsPending(m) || !labels.IsHeld(m) || !m.SpecPaused {
		t.Errorf("%+v", m)
	}
}

func TestDropOwners_LeavesTheUsersAnnotations(t *testing.T) {
	m := labels.Meta{Annotations: map[string]string{labels.Owners: "[]", "their": "own", labels.Paused: ""}}
	if !labels.OwnersHeld(m) {
		t.Error("the annotation is not seen")
	}
	after := labels.DropOwners(m).Apply(m)
	if diff := cmp.Diff(map[string]string{"their": "own", labels.Paused: ""}, after.Annotations); diff != "" || labels.OwnersHeld(after) {
		t.Error(diff)
	}
}

func TestMarked_UntilThePivotHasEnded(t *testing.T) {
	for key, want := range map[string]bool{
		labels.Held: true, labels.Owners: true, labels.Record: true, labels.Released: true,
		labels.Paused: false, labels.Adopted: false, labels.Adoption: false, "their": false,
	} {
		if got := labels.Marked(labels.Meta{Annotations: map[string]string{key: "never"}}); got != want {
			t.Errorf("with annotation %s it is %t", key, got)
		}
	}
	if m := (labels.Meta{}); !labels.Marked(labels.MarkPending(m).Apply(m)) || labels.Marked(m) {
		t.Error("the adoption label is not what marks")
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
	f.Add("cluster.x-k8s.io/paused", "", "pivot.cluster.x-k8s.io/held", "x 2026-01-02T03:04:05Z", "a", "b")
	f.Add("", "", "", "", "", "")
	f.Add("a", "1", "a", "2", "a", "a")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2, set, drop string) {
		m := labels.Meta{Annotations: map[string]string{k1: v1, k2: v2}, Labels: map[string]string{k1: v2}}
		copied := labels.Meta{Annotations: maps.Clone(m.Annotations), Labels: maps.Clone(m.Labels)}
		for name, fn := range functions {
			if again := fn(fn(m).Apply(m)); !again.Empty() {
				t.Errorf("%s: %v is still wanted", name, again)
			}
		}
		c := labels.Change{
			SetLabels: map[string]string{set: v1}, DropLabels: []string{drop},
			SetAnnotations: map[string]string{set: v2}, DropAnnotations: []string{drop, drop},
		}
		once := c.Apply(m)
		if diff := cmp.Diff(once, c.Apply(once)); diff != "" {
			t.Errorf("applying %v twice is not applying it once:\n%s", c, diff)
		}
		if diff := cmp.Diff(copied, m); diff != "" {
			t.Errorf("Apply changed its input:\n%s", diff)
		}
		if _, ok := once.Annotations[drop]; ok {
			t.Errorf("%q was dropped and is there", drop)
		}
		for k, v := range m.Annotations {
			if got, ok := once.Annotations[k]; k != set && k != drop && (!ok || got != v) {
				t.Errorf("%q was not named in the change and became %q", k, got)
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

// A user who pauses while we hold gives the pause a value, and it outlasts the pivot.
func ExampleRelease() {
	m := labels.Meta{Annotations: map[string]string{labels.Paused: "", labels.Held: "move-hook pre 2026-01-02T03:04:05Z"}}
	fmt.Println(labels.Release(m))
	m.Annotations[labels.Paused] = "maintenance"
	fmt.Println(labels.Release(m))
	// Output:
	// -annotation cluster.x-k8s.io/paused, -annotation pivot.cluster.x-k8s.io/held
	// -annotation pivot.cluster.x-k8s.io/held
}
