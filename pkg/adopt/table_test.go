package adopt

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/move-hook/move-hook/pkg/graph"
)

// corner is one combination of the facts that decide what comes next.
type corner struct {
	record   string // none, named, file, open, closed
	pending  bool
	held     bool
	right    bool   // owners
	cluster  string // free, held, paused
	status   bool
	released string // no, now, long ago
}

func (c corner) world() *memory {
	w := newMemory()
	s := sample{name: "c1", controlPlane: 1, workers: []workers{{name: "md", replicas: 1}}}
	a := arrival{owners: "live", held: c.held, pending: c.pending, status: c.status}
	if !c.right {
		a.owners = "none"
	}
	for _, o := range s.objects() {
		w.create(a.carried(o))
	}
	w.named = c.record == "named"
	if c.record == "open" || c.record == "closed" || c.record == "file" {
		w.record = snapshotOf(w.cluster, s.objects())
		w.fromFile = c.record == "file"
	}
	if c.record == "open" || c.record == "closed" {
		o := recordMap("c1")
		if c.right {
			metaOf(o)["ownerReferences"] = []any{content{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c1", "uid": newUID(w.cluster)}}
		}
		if c.record == "closed" {
			edit(metaOf(o), "annotations", map[string]string{graph.AdoptedAnnotation: "2026-05-01T10:00:00Z"}, nil)
		}
		w.create(o)
	}
	w.tick(time.Hour)
	cluster := clone(w.objects[w.cluster])
	switch c.cluster {
	case "held":
		hold(cluster)
	case "paused":
		cluster["spec"].(content)["paused"] = true
	}
	switch c.released {
	case "now":
		edit(metaOf(cluster), "annotations", map[string]string{graph.ReleasedAnnotation: w.now.Format(time.RFC3339)}, nil)
	case "long ago":
		edit(metaOf(cluster), "annotations", map[string]string{graph.ReleasedAnnotation: w.now.Add(-time.Minute).Format(time.RFC3339)}, nil)
	}
	w.store(w.cluster, cluster)
	return w
}

func either(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

// everyCorner calls f with all combinations, released innermost.
func everyCorner(f func(corner)) {
	for _, record := range []string{"none", "named", "file", "open", "closed"} {
		for _, pending := range []bool{true, false} {
			for _, held := range []bool{true, false} {
				for _, right := range []bool{false, true} {
					for _, cluster := range []string{"free", "held", "paused"} {
						for _, status := range []bool{false, true} {
							for _, released := range []string{"no", "now", "long ago"} {
								f(corner{record, pending, held, right, cluster, status, released})
							}
						}
					}
				}
			}
		}
	}
}

// table prints the phase of every combination; a star marks plans that write.
func table(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	row := func(cells ...string) {
		line := fmt.Sprintf("%-7s%-8s%-5s%-7s%-8s%-8s| %-16s%-16s%s", cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6], cells[7], cells[8])
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	row("record", "label", "hold", "owners", "cluster", "status", "not released", "just released", "long ago")
	var phases []string
	everyCorner(func(c corner) {
		w := c.world()
		p := Decide(w.state())
		phases = append(phases, string(p.Phase)+either(p.Writes() > 0, "*", ""))
		invariants(t, w)
		if len(phases) == 3 {
			row(c.record, either(c.pending, "pending", "none"), either(c.held, "held", "free"), either(c.right, "right", "wrong"),
				c.cluster, either(c.status, "rebuilt", "lost"), phases[0], phases[1], phases[2])
			phases = nil
		}
	})
	return b.String()
}

// TestP4_EveryCombinationEnds runs each combination to its end, with the user
// unpausing and the controllers rebuilding status: adopted, with right owners and
// without marks of ours, unless it never was part of a pivot.
func TestP4_EveryCombinationEnds(t *testing.T) {
	everyCorner(func(c corner) {
		w := c.world()
		untouched := c.record == "closed" && !c.pending && !c.held && c.cluster != "held" && c.released == "no"
		untouched = untouched || (c.record == "none" && !c.pending && !c.held && c.cluster != "held" && c.released == "no")
		if _, err := w.finish(); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if untouched {
			if len(w.writes) > 0 {
				t.Errorf("%+v: a Cluster outside any pivot was changed: %v", c, w.writes)
			}
			return
		}
		cluster := clone(w.objects[w.cluster])
		delete(cluster["spec"].(content), "paused")
		w.store(w.cluster, cluster)
		(&reconcilers{w: w, g: w.graph()}).status()
		p, err := w.finish()
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if p.Phase != Adopted {
			t.Errorf("%+v ends as %s", c, p)
		}
		if c.record == "closed" && !c.pending && !c.held && c.cluster != "held" {
			return // its adoption had ended; owners are not ours to judge any more
		}
		for _, f := range VerifyByRules(w.cluster, w.graph(), VerifyOptions{}) {
			t.Errorf("%+v: %s", c, f)
		}
		for _, key := range []string{graph.RecordAnnotation, graph.ReleasedAnnotation} {
			if a, ok := metaOf(w.objects[w.cluster])["annotations"].(content); ok && a[key] != nil {
				t.Errorf("%+v: %s is left", c, key)
			}
		}
		writes := len(w.writes)
		if _, err := w.finish(); err != nil || len(w.writes) != writes {
			t.Errorf("%+v: a second post writes: %v %v", c, w.writes[writes:], err)
		}
	})
}
