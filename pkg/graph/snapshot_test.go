package graph_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/move-hook/move-hook/pkg/graph"
)

func TestSnapshot_DescribesTheStateWithoutUs(t *testing.T) {
	c := object(graph.Cluster, "c")
	c.Annotations = map[string]string{graph.RecordAnnotation: "sum", "theirs": "x"}
	held := object(graph.KubeadmControlPlane, "cp", in(graph.Cluster, "c"))
	held.Labels = map[string]string{graph.AdoptionLabel: graph.AdoptionPending, "theirs": "y"}
	held.Annotations = map[string]string{graph.PausedAnnotation: "", graph.HeldAnnotation: "us 2026-01-01T00:00:00Z"}
	paused := object(graph.MachineSet, "ms", in(graph.Cluster, "c"))
	paused.Annotations = map[string]string{graph.PausedAnnotation: ""}
	secret := object(graph.Secret, "c-ca", in(graph.KubeadmControlPlane, "cp"))
	secret.Annotations = map[string]string{graph.LastAppliedAnnotation: `{"data":{"tls.key":"c2VjcmV0"}}`}
	record := object(graph.ConfigMap, "move-hook-record-c", in(graph.Cluster, "c"))
	record.Labels = map[string]string{graph.RecordLabel: "c"}
	lock := object(graph.ConfigMap, "c-lock", in(graph.Cluster, "c")) // goes when the next Machine joins
	var b graph.Builder
	for _, o := range []graph.Object{c, held, paused, secret, record, lock} {
		b.Add(o)
	}
	s := build(t, &b).Snapshot(in(graph.Cluster, "c"))
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	owner := func(id graph.ID) []graph.SnapshotOwner {
		return []graph.SnapshotOwner{{ID: id, APIVersion: id.Group + "/v1"}}
	}
	want := []graph.SnapshotNode{
		{ID: secret.ID, UID: "Secret-c-ca", APIVersion: "/v1", Owners: owner(held.ID), Moves: true},
		{ID: c.ID, UID: "Cluster-c", APIVersion: "cluster.x-k8s.io/v1", Annotations: map[string]string{"theirs": "x"}, Moves: true},
		{ID: paused.ID, UID: "MachineSet-ms", APIVersion: "cluster.x-k8s.io/v1", Owners: owner(c.ID), Annotations: paused.Annotations, PausedByUser: true, Moves: true},
		{ID: held.ID, UID: "KubeadmControlPlane-cp", APIVersion: "controlplane.cluster.x-k8s.io/v1", Owners: owner(c.ID), Labels: map[string]string{"theirs": "y"}, Moves: true},
	}
	if diff := cmp.Diff(want, s.Nodes); diff != "" {
		t.Error(diff)
	}
	g, err := s.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Owners(secret.ID)[0]; got.To != held.ID || got.State != graph.Live {
		t.Errorf("as a graph, the Secret's owner is %v, %v", got.To, got.State)
	}
}

func TestSnapshot_KeepsWhatWouldBeMissedAndNothingElse(t *testing.T) {
	c := object(graph.Cluster, "c")
	label := func(o graph.Object) graph.Object {
		o.Labels = map[string]string{graph.ClusterNameLabel: "c"}
		return o
	}
	says := label(object(widget, "says"))
	says.Refs = []graph.Ref{{Field: graph.FieldClusterName, To: c.ID}}
	machine := object(graph.Machine, "m", c.ID)
	machine.Refs = []graph.Ref{{Field: graph.FieldInfrastructureRef, To: in(widget, "named")}}
	var b graph.Builder
	for _, o := range []graph.Object{
		c, machine, says,
		label(object(graph.ConfigMap, "note")),                             // Labelled by its user: stays behind, nobody misses it.
		label(object(widget, "named")),                                     // Stays behind, and a spec refers to it.
		object(graph.MachineDeployment, "torn", c.ID, in(widget, "owner")), // Dropped by clusterctl: the record must tell.
		object(graph.Secret, "c-ca"),
	} {
		b.Add(o)
	}
	s := build(t, &b).Snapshot(c.ID)
	got := map[string]bool{}
	for _, n := range s.Nodes {
		got[n.Name] = n.Moves
	}
	want := map[string]bool{"c": true, "m": true, "c-ca": true, "says": false, "named": false, "torn": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The pause is its user's unless our mark is there and the value is the one we write.
func TestSnapshot_TellsAUsersPauseFromOurs(t *testing.T) {
	for _, tc := range []struct {
		name         string
		annotations  map[string]string
		spec         bool
		byUser, kept bool
	}{
		{"neither", nil, false, false, false},
		{"ours", map[string]string{graph.PausedAnnotation: "", graph.HeldAnnotation: "us"}, false, false, false},
		{"theirs", map[string]string{graph.PausedAnnotation: ""}, false, true, true},
		{"theirs while we held it", map[string]string{graph.PausedAnnotation: "maintenance", graph.HeldAnnotation: "us"}, false, true, true},
		{"our mark alone", map[string]string{graph.HeldAnnotation: "us"}, false, false, false},
		{"spec.paused", nil, true, true, false},
		{"spec.paused under our hold", map[string]string{graph.PausedAnnotation: "", graph.HeldAnnotation: "us"}, true, true, false},
	} {
		c := object(graph.Cluster, "c")
		c.Annotations, c.Facts.Paused = tc.annotations, tc.spec
		var b graph.Builder
		b.Add(c)
		s := build(t, &b).Snapshot(c.ID)
		n, ok := s.Node(c.ID)
		if !ok {
			t.Fatalf("%s: the Cluster is not in its own record", tc.name)
		}
		_, kept := n.Annotations[graph.PausedAnnotation]
		if n.PausedByUser != tc.byUser || kept != tc.kept {
			t.Errorf("%s: paused by user %v, annotation kept %v; want %v, %v", tc.name, n.PausedByUser, kept, tc.byUser, tc.kept)
		}
		if _, ok := n.Annotations[graph.HeldAnnotation]; ok {
			t.Errorf("%s: our mark is in the record", tc.name)
		}
	}
}

func TestSnapshot_RoundTrip(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(seed)
		g := w.graph(t, "fleet", w.Perm(len(w.objects)))
		for _, c := range g.OfKind(graph.Cluster) {
			s := g.Snapshot(c.ID)
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var back graph.Snapshot
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(s, back, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d: JSON loses something:\n%s", seed, diff)
			}
			if other := w.graph(t, "fleet", w.Perm(len(w.objects))).Snapshot(c.ID); !cmp.Equal(s, other) {
				t.Fatalf("seed %d: the order of Add changes the record:\n%s", seed, cmp.Diff(s, other))
			}
			again, err := back.Graph()
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			set := g.MoveSet()
			for _, m := range again.MoveSet() {
				if was, _ := set.Of(m.ID); was.In != m.In {
					t.Errorf("seed %d: %s moved: %v, its record says %v (%s)", seed, m.ID, was.In, m.In, m.Why())
				}
				for i, e := range again.Owners(m.ID) {
					if before := g.Owners(m.ID)[i]; e.To != before.To || e.Controller() != before.Controller() {
						t.Errorf("seed %d: owner %d of %s became %v, was %v", seed, i, m.ID, e.To, before.To)
					}
				}
				if o := mustFind(t, again, m.ID); o.UID != "" {
					t.Errorf("seed %d: %s has a UID: it belongs to no copy", seed, o.ID)
				}
			}
		}
	}
}

func TestSnapshotValidate_NamesWhatIsWrong(t *testing.T) {
	node := func(gk graph.GroupKind, name string) graph.SnapshotNode { return graph.SnapshotNode{ID: in(gk, name)} }
	c := node(graph.Cluster, "c")
	owned, refers := node(graph.Machine, "m"), node(graph.Machine, "m")
	owned.Owners = []graph.SnapshotOwner{{}}
	refers.Refs = []graph.Ref{{Field: "spec.x"}}
	for _, tc := range []struct {
		name  string
		s     graph.Snapshot
		wants string
	}{
		{"empty", graph.Snapshot{}, "is no Cluster"},
		{"of a Machine", graph.Snapshot{Cluster: owned.ID, Nodes: []graph.SnapshotNode{owned}}, "Machine ns/m"},
		{"without its Cluster", graph.Snapshot{Cluster: c.ID}, "Cluster ns/c is not among"},
		{"a node twice", graph.Snapshot{Cluster: c.ID, Nodes: []graph.SnapshotNode{c, c}}, "Cluster ns/c: "},
		{"unsorted", graph.Snapshot{Cluster: c.ID, Nodes: []graph.SnapshotNode{node(graph.Machine, "m"), c}}, "Cluster ns/c: "},
		{"a node without name", graph.Snapshot{Cluster: c.ID, Nodes: []graph.SnapshotNode{{}, c}}, "node 0"},
		{"an owner without name", graph.Snapshot{Cluster: c.ID, Nodes: []graph.SnapshotNode{c, owned}}, "Machine ns/m: an owner"},
		{"a reference without name", graph.Snapshot{Cluster: c.ID, Nodes: []graph.SnapshotNode{c, refers}}, "Machine ns/m: a reference"},
	} {
		err := tc.s.Validate()
		if err == nil || !strings.Contains(err.Error(), tc.wants) {
			t.Errorf("%s: error %v, want %q in it", tc.name, err, tc.wants)
		}
		if _, err := tc.s.Graph(); err == nil {
			t.Errorf("%s: Graph takes it", tc.name)
		}
	}
}
