package adopt

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/order"
)

// A voyage is one generated pivot: a cluster, the order in which its objects
// arrive, and what happens to them on the way.
type voyage struct {
	seed     int64
	rand     *rand.Rand
	sample   sample
	objects  []content // in the order of arrival
	recorded bool
	// armed: every owner reference is taken off on arrival; else of some objects.
	armed bool
}

func newVoyage(seed int64) *voyage {
	r := rand.New(rand.NewSource(seed))
	v := &voyage{seed: seed, rand: r, recorded: r.Intn(2) == 0}
	v.sample = sample{name: "c1", controlPlane: 1 + 2*r.Intn(2), healthCheck: r.Intn(2) == 0, topology: r.Intn(3) == 0, externalEtcd: r.Intn(4) == 0}
	if r.Intn(6) == 0 {
		v.sample.controlPlane, v.sample.standAlone, v.sample.topology = 0, 1+r.Intn(3), false
	}
	for i := range r.Intn(3) {
		w := workers{name: fmt.Sprintf("md-%d", i), replicas: 1 + r.Intn(3)}
		if r.Intn(3) == 0 {
			w.selector = map[string]string{graph.ClusterNameLabel: "c1"}
			w.unnamed = v.recorded && r.Intn(2) == 0
		}
		v.sample.workers = append(v.sample.workers, w)
	}
	v.objects = v.sample.objects()
	if v.armed = r.Intn(3) == 0; v.armed {
		v.objects = append(v.objects, unruled(v.objects)...)
	}
	r.Shuffle(len(v.objects), func(i, j int) { v.objects[i], v.objects[j] = v.objects[j], v.objects[i] })
	return v
}

// target is an empty target; with a record, announced when the Cluster arrives.
func (v *voyage) target() *memory {
	w := newMemory()
	if v.recorded {
		w.record = snapshotOf(w.cluster, v.objects)
	}
	return w
}

// unruled are objects that no rule knows: what one of the Machines owns, and what
// hangs below that, unlabelled.
func unruled(objects []content) []content {
	i := slices.IndexFunc(objects, func(o content) bool { return o["kind"] == "Machine" })
	b := &drawing{cluster: "c1"}
	b.add("example.com/v1", "Widget", "lease", nil, owner{"Machine", metaOf(objects[i])["name"].(string), true})
	claim := b.add("v1", "Secret", "claim", nil, owner{"Widget", "lease", false}, owner{"Cluster", "c1", false})
	delete(metaOf(claim), "labels")
	return b.all
}

// land is an object as it arrives: held and labelled, its owners in any state.
func (v *voyage) land(r *rand.Rand, o content) content {
	a := arrival{owners: []string{"none", "stale", "live", "held"}[r.Intn(4)], held: true, pending: true, status: true}
	if v.armed {
		a.owners = "held"
	}
	out := a.carried(o)
	meta := metaOf(out)
	kind, _ := out["kind"].(string)
	refs, _ := meta["ownerReferences"].([]any)
	if len(refs) > 0 && r.Intn(5) == 0 { // doubled
		refs = append(refs, clone(refs[0].(content)))
	}
	if len(refs) > 0 && r.Intn(5) == 0 { // written by an older release
		group, _, _ := strings.Cut(refs[0].(content)["apiVersion"].(string), "/")
		refs[0].(content)["apiVersion"] = group + "/v1beta1"
	}
	if len(refs) > 0 && r.Intn(5) == 0 { // somebody else's
		refs = append(refs, content{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "w"})
	}
	raced := len(refs) > 0 && v.recorded || a.owners == "held"
	if kind == "Machine" && v.sample.standAlone == 0 && raced && r.Intn(4) == 0 { // the race
		refs = append(refs, content{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c1", "uid": newUID(coreID(graph.Cluster, "c1"))})
	}
	if refs != nil {
		meta["ownerReferences"] = refs
	}
	if v.recorded && kind == "Cluster" {
		edit(meta, "annotations", map[string]string{graph.RecordAnnotation: "sum"}, nil)
	}
	edit(meta, "labels", map[string]string{"their": "label"}, nil)
	edit(meta, "annotations", map[string]string{"their": "annotation"}, nil)
	return out
}

func widget() content {
	return content{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": content{"name": "w", "namespace": "default", "uid": "w"}}
}

// voyages runs f over seeded voyages; a failure names its seed.
func voyages(t *testing.T, n int, f func(t *testing.T, v *voyage)) {
	t.Helper()
	for seed := range int64(n) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { f(t, newVoyage(seed)) })
	}
}

// TestP1P2P4_AnyOrderOfArrivalAnyKillSameEnd is properties (a) to (g) in one: post
// runs from the start, is killed now and then, and everything arrives in any order.
func TestP1P2P4_AnyOrderOfArrivalAnyKillSameEnd(t *testing.T) {
	voyages(t, 60, func(t *testing.T, v *voyage) {
		w := v.target()
		w.create(widget())
		steps := slices.Clone(v.objects)
		if v.recorded {
			at := v.rand.Intn(len(steps) + 1)
			steps = slices.Insert(steps, at, recordMap("c1"))
		}
		for i, o := range steps {
			if o["kind"] != "ConfigMap" {
				o = v.land(v.rand, o)
			}
			w.create(o)
			w.tick(time.Duration(v.rand.Intn(1500)) * time.Millisecond)
			w.killAt = -1
			if _, err := w.settle(); err != nil {
				t.Fatal(err)
			}
			if len(w.writes) > 0 && i < len(steps)-1 {
				t.Fatalf("P1: written before %d more objects arrived: %v", len(steps)-1-i, w.writes)
			}
		}
		w.tick(10 * time.Second)
		planned := Decide(w.state())
		depth := levels(w)
		for pass := 0; ; pass++ {
			if pass > depth+4+8 { // the kills below cost a pass each
				t.Fatalf("%d passes and no end", pass)
			}
			invariants(t, w)
			w.killAt = len(w.writes) + 1 + v.rand.Intn(5)
			if pass >= 8 {
				w.killAt = -1
			}
			p, err := Pass(t.Context(), w, w.cluster)
			if err == nil && p.Writes() == 0 {
				if p.Again.After(w.now) {
					w.now = p.Again
					continue
				}
				break
			}
		}
		w.killAt = -1
		if p, err := w.finish(); err != nil || p.Phase != Adopted {
			t.Fatalf("it began with\n%s\nand ends with\n%s, %v", planned, p, err)
		}
		ended(t, v, w)
		if p := Decide(w.state()); p.Writes() > 0 {
			t.Errorf("(c) after the end there is more to write: %s", p)
		}
	})
}

// levels is how deep the Cluster's ownership is.
func levels(w *memory) int {
	s := w.state()
	view := newView(&s)
	ids := func(yield func(graph.ID) bool) {
		for _, o := range view.members {
			if !yield(o.ID) {
				return
			}
		}
	}
	l, _ := order.Of(ids, func(id graph.ID) []graph.ID {
		o, _ := s.Graph.Object(id)
		return view.judge(o).wants
	})
	return len(l)
}

// ended compares the end with the source, by a second computation.
func ended(t *testing.T, v *voyage, w *memory) {
	t.Helper()
	g := w.graph()
	for _, o := range v.objects {
		was := extract(clone(o))
		is, ok := g.Object(was.ID)
		if !ok {
			t.Errorf("%s is gone", was.ID)
			continue
		}
		want, have := map[graph.ID]bool{}, map[graph.ID]bool{}
		for _, r := range was.Owners {
			want[g.OwnerID("default", r)] = isTrue(r.Controller)
		}
		for _, e := range g.Owners(is.ID) {
			if e.Kind != graph.Owner {
				continue
			}
			if _, twice := have[e.To]; twice {
				t.Errorf("P2: %s has the owner %s twice", is.ID, e.To)
			}
			if e.State != graph.Live {
				t.Errorf("P2: %s has the owner %s %s", is.ID, e.To, e.State)
			}
			if e.To.Name == "w" {
				continue // somebody else's, kept
			}
			have[e.To] = e.Controller()
		}
		if _, ok := v.sample.certificate(was.ID); ok && v.sample.standAlone > 0 && !v.recorded && !v.armed {
			continue // no rule says which KubeadmConfig made them
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("P2: owners of %s (-source +target):\n%s", is.ID, diff)
		}
		if is.Labels["their"] != "label" || is.Annotations["their"] != "annotation" {
			t.Errorf("P6: %s lost what is not ours", is.ID)
		}
		for _, key := range []string{graph.HeldAnnotation, graph.PausedAnnotation, graph.ReleasedAnnotation, graph.RecordAnnotation, graph.OwnersAnnotation} {
			if _, ok := is.Annotations[key]; ok {
				t.Errorf("%s still has %s", is.ID, key)
			}
		}
		if is.Labels[graph.AdoptionLabel] != "" {
			t.Errorf("%s still has the adoption label", is.ID)
		}
	}
	if v.recorded {
		for _, f := range Verify(*w.record, g, VerifyOptions{}) {
			if f.Severity != finding.Notes {
				t.Errorf("verify: %s", f)
			}
		}
	}
}

// certificate says that an object is one of the cluster's certificates.
func (s sample) certificate(id graph.ID) (string, bool) {
	cluster, purpose, ok := graph.ParseSecretName(id.Name)
	return purpose, ok && id.Kind == "Secret" && cluster == s.name && purpose != "kubeconfig"
}

// TestP6_ForeignOwnersStay: an owner that the record does not have is never dropped.
func TestP6_ForeignOwnersStay(t *testing.T) {
	voyages(t, 20, func(t *testing.T, v *voyage) {
		w := v.target()
		w.create(widget())
		foreign := map[graph.ID]bool{}
		for _, o := range v.objects {
			id := w.create(v.land(v.rand, o))
			for _, r := range w.read[id].Owners {
				foreign[id] = foreign[id] || r.Name == "w"
			}
		}
		if v.recorded {
			w.create(recordMap("c1"))
		}
		w.tick(time.Minute)
		if p, err := w.finish(); err != nil || p.Phase != Adopted {
			t.Fatalf("%s, %v", p, err)
		}
		for id, was := range foreign {
			if is := slices.ContainsFunc(w.read[id].Owners, func(r metav1.OwnerReference) bool { return r.Name == "w" }); is != was {
				t.Errorf("%s: foreign owner before %v, after %v", id, was, is)
			}
		}
	})
}

// TestDecide_UnrelatedObjectsChangeNothing is property (h).
func TestDecide_UnrelatedObjectsChangeNothing(t *testing.T) {
	voyages(t, 30, func(t *testing.T, v *voyage) {
		w := v.target()
		for _, o := range v.objects[:v.rand.Intn(len(v.objects)+1)] {
			w.create(v.land(v.rand, o))
		}
		if v.recorded {
			w.create(recordMap("c1"))
		}
		w.tick(time.Minute)
		alone := Decide(w.state()).String()
		for _, neighbour := range []string{"c0", "c1-a", "c2"} {
			s := sample{name: neighbour, controlPlane: 1, workers: []workers{{name: neighbour + "-md", replicas: 1}}}
			for _, o := range s.objects() {
				w.create(arrival{owners: "none", held: true, pending: true}.carried(o))
			}
		}
		o := recordMap("c2")
		w.create(o)
		if diff := cmp.Diff(alone, Decide(w.state()).String()); diff != "" {
			t.Errorf("neighbours change the plan (-alone +with neighbours):\n%s", diff)
		}
	})
}

// TestApply_OldPlanAgainstANewerWorld is property (i): what was decided about
// another copy, or about other owners, is not written.
func TestApply_OldPlanAgainstANewerWorld(t *testing.T) {
	voyages(t, 20, func(t *testing.T, v *voyage) {
		w := v.target()
		for _, o := range v.objects {
			w.create(v.land(v.rand, o))
		}
		if v.recorded {
			w.create(recordMap("c1"))
		}
		w.tick(time.Minute)
		plan := Decide(w.state())
		for step := range plan.Steps() {
			for _, a := range step {
				world := w.clone()
				o := clone(world.objects[a.Target().ID])
				switch v.rand.Intn(3) {
				case 0: // deleted and made again
					metaOf(o)["uid"] = "another copy"
				case 1: // somebody wrote owners
					setOwners(o, append(slices.Clone(world.read[a.Target().ID].Owners), metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Widget", Name: "w2", UID: "w2"}))
				case 2:
					world.remove(a.Target().ID)
				}
				if _, there := world.objects[a.Target().ID]; there {
					world.store(a.Target().ID, o)
				}
				before := world.image()
				if got, err := world.Apply(t.Context(), a, false); got != Moved || err != nil {
					t.Errorf("%s: outcome %d, %v; want Moved", a, got, err)
				}
				if diff := cmp.Diff(before, world.image()); diff != "" {
					t.Errorf("%s changed a newer world:\n%s", a, diff)
				}
			}
		}
	})
}

// TestDecide_UnlistedKindsNeverLeadToARemoval is property (j), and totality:
// whatever is missing or not listed, there is a plan that keeps the invariants.
func TestDecide_UnlistedKindsNeverLeadToARemoval(t *testing.T) {
	voyages(t, 40, func(t *testing.T, v *voyage) {
		w := v.target()
		w.policy.PruneDangling = v.rand.Intn(2) == 0
		for _, o := range v.objects[:v.rand.Intn(len(v.objects)+1)] {
			w.create(v.land(v.rand, o))
		}
		if v.recorded {
			w.create(recordMap("c1"))
		}
		w.tick(time.Minute)
		for _, k := range allKinds() {
			if v.rand.Intn(6) == 0 {
				w.unlisted[k.GroupKind] = true
			}
		}
		invariants(t, w)
		for step := range Decide(w.state()).Steps() {
			for _, a := range step {
				s, ok := a.(SetOwners)
				if !ok {
					continue
				}
				for _, r := range s.Before {
					gk := graph.GroupKind{Group: graph.GroupOf(r.APIVersion), Kind: r.Kind}
					gone := !slices.ContainsFunc(s.After, func(x metav1.OwnerReference) bool { return x.Kind == r.Kind && x.Name == r.Name })
					if w.unlisted[gk] && gone {
						t.Errorf("%s removes an owner of a kind that was not listed", s)
					}
				}
			}
		}
	})
}
