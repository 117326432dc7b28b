package pivot

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/internal/fleet"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/record"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// preparing is Pre on a management cluster in memory.
func preparing(c *cluster, s *stored, o PreOptions) *preparation {
	o.Namespace = "fleet"
	p := newPreparation(o)
	p.source, p.records, p.target = c, s, nil
	return p
}

func TestPre_PreparesAndTheSecondRunWritesNothing(t *testing.T) {
	c, s := newCluster("source")
	c.Cluster("c1", 3, 2)
	file := filepath.Join(t.TempDir(), "record.json")
	before := c.Graph()
	p := preparing(c, s, PreOptions{RecordFile: file})
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := p.result
	if got.Outcome != flow.Done || len(got.Findings) != 0 {
		t.Fatalf("%s: %v", got.Outcome, got.Findings)
	}
	prepared := got.Clusters[0]
	names := func(ids []graph.ID) (n []string) {
		for _, id := range ids {
			n = append(n, id.Kind+" "+id.Name)
		}
		return n
	}
	if diff := cmp.Diff([]string{"MachineHealthCheck c1", "MachineDeployment c1-md", "MachineSet c1-md-1", "KubeadmControlPlane c1-cp"}, names(prepared.Held)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"KubeadmControlPlane c1-cp", "Machine c1-cp-0", "Machine c1-cp-1", "Machine c1-cp-2"}, names(prepared.Pending)); diff != "" {
		t.Error(diff)
	}
	if got := c.All[prepared.Cluster].Annotations[labels.Record]; got != prepared.Checksum || got == "" {
		t.Errorf("the Cluster names record %q, which is %q", got, prepared.Checksum)
	}
	// 4 holds, 1 record, 1 announcement, 4 labels.
	if len(got.Writes) != 10 || c.writes != 10 {
		t.Errorf("%d writes told, %d made: %v", len(got.Writes), c.writes, got.Writes)
	}

	// The record is the state as it was without us, on both ways.
	e, err := s.read(t.Context(), prepared.Cluster)
	if err != nil || e.Snapshot == nil {
		t.Fatalf("%v %v", e.Partial, err)
	}
	if diff := cmp.Diff(before.Snapshot(prepared.Cluster), *e.Snapshot); diff != "" {
		t.Error(diff)
	}
	fromFile, err := record.FromFile(file)
	if err != nil || len(fromFile) != 1 || !sameSnapshot(fromFile[0], *e.Snapshot) {
		t.Errorf("the file holds something else (%v)", err)
	}

	again := preparing(c, s, PreOptions{})
	if err := again.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.writes != 10 || len(again.result.Writes) != 0 {
		t.Errorf("the second run wrote: %v", again.result.Writes)
	}
	if diff := cmp.Diff(got.Clusters, again.result.Clusters); diff != "" {
		t.Error(diff)
	}
}

func TestP4_PreKilledAfterAnyWriteEndsTheSame(t *testing.T) {
	whole, records := newCluster("source")
	whole.Cluster("c1", 3, 2)
	if err := preparing(whole, records, PreOptions{}).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for kill := 1; kill < whole.writes; kill++ {
		c, s := newCluster("source")
		c.Cluster("c1", 3, 2)
		c.killAt = kill
		if err := preparing(c, s, PreOptions{}).run(t.Context()); !errors.Is(err, errKilled) {
			t.Fatalf("killed at %d: got %v", kill, err)
		}
		c.killAt = 0
		if err := preparing(c, s, PreOptions{}).run(t.Context()); err != nil {
			t.Fatalf("killed at %d: %v", kill, err)
		}
		if diff := cmp.Diff(whole.state(), c.state()); diff != "" {
			t.Errorf("killed at %d: %s", kill, diff)
		}
		if c.writes != whole.writes {
			t.Errorf("killed at %d: %d writes in all, want %d", kill, c.writes, whole.writes)
		}
	}
}

func TestP6_PreLeavesAUsersPauseAlone(t *testing.T) {
	c, s := newCluster("source")
	c.Cluster("c1", 1, 2)
	md := fleet.ID(graph.MachineDeployment, "c1-md")
	c.Change(md, fleet.Annotated(labels.Paused, "maintenance"))
	p := preparing(c, s, PreOptions{})
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{labels.Paused: "maintenance"}, c.All[md].Annotations); diff != "" {
		t.Error(diff)
	}
	if slices.Contains(p.result.Clusters[0].Held, md) {
		t.Error("a user's pause is told as ours")
	}
}

func TestPre_FindingsThatStopAreFoundBeforeAnythingIsWritten(t *testing.T) {
	for name, test := range map[string]struct {
		plant func(*cluster)
		names []types.NamespacedName
		want  string
	}{
		"no Cluster": {func(*cluster) {}, nil, "NoClusterInScope"},
		"a name that is not there": {func(c *cluster) { c.Cluster("c1", 1, 1) },
			[]types.NamespacedName{{Namespace: "fleet", Name: "c1"}, {Namespace: "fleet", Name: "c2"}}, "ClusterNotFound"},
		"a paused Cluster": {func(c *cluster) {
			c.Change(c.Cluster("c1", 1, 1), func(o *graph.Object) { o.Facts.Paused = true })
		}, nil, "Paused"},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := newCluster("source")
			test.plant(c)
			p := preparing(c, s, PreOptions{Names: test.names})
			if err := p.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if p.result.Outcome != flow.Findings || len(p.result.Findings) != 1 || p.result.Findings[0].ID != test.want {
				t.Errorf("%s: %v", p.result.Outcome, p.result.Findings)
			}
			if c.writes != 0 {
				t.Errorf("%d writes", c.writes)
			}
		})
	}
}

func TestPre_WhatIsLeftBehindIsToldAndStopsNothing(t *testing.T) {
	c, s := newCluster("source")
	c.Cluster("c1", 1, 1)
	c.Change(fleet.ID(fleet.InfraTemplate, "c1"), func(o *graph.Object) { o.Owners = nil })
	p := preparing(c, s, PreOptions{})
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.result.Outcome != flow.Done || len(p.result.Findings) != 1 || p.result.Findings[0].ID != "LeftBehind" {
		t.Errorf("%s: %v", p.result.Outcome, p.result.Findings)
	}
}

func TestPre_LiveOnTheTargetStops(t *testing.T) {
	c, s := newCluster("source")
	id := c.Cluster("c1", 1, 1)
	target, _ := newCluster("target")
	target.Cluster("c1", 1, 1)
	p := preparing(c, s, PreOptions{})
	p.target = target
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.result.Outcome != flow.Findings || p.result.Findings[0].ID != "LiveOnTarget" {
		t.Errorf("%s: %v", p.result.Outcome, p.result.Findings)
	}
	target.Change(id, func(o *graph.Object) { o.Facts.Paused = true })
	p = preparing(c, s, PreOptions{})
	p.target = target
	if err := p.run(t.Context()); err != nil || p.result.Outcome != flow.Done {
		t.Errorf("a paused copy stops: %s %v %v", p.result.Outcome, p.result.Findings, err)
	}
}

// A scaler that was held while it had something to do would never finish it.
func TestPre_WhatComesInFlightMeanwhileIsLetFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newCluster("source")
		id := c.Cluster("c1", 1, 2)
		ms := fleet.ID(graph.MachineSet, "c1-md-1")
		held := func(id graph.ID) bool { o := c.All[id]; return labels.IsHeld(labels.MetaOf(&o)) }
		c.beforeRead = func(reads int) {
			switch reads {
			case 3:
				// Scaled up at the very moment of the hold.
				c.Change(ms, fleet.Replicas(3))
			case 6:
				if held(ms) || held(fleet.ID(graph.MachineDeployment, "c1-md")) {
					t.Error("what is in flight is held")
				}
				if !held(fleet.ID(graph.KubeadmControlPlane, "c1-cp")) {
					t.Error("what is not in flight was released")
				}
				c.Machine(id, ms, "c1-md-2")
			}
		}
		p := preparing(c, s, PreOptions{})
		if err := p.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.result.Outcome != flow.Done || len(p.result.Waiting) != 0 || !held(ms) {
			t.Errorf("%s, waiting for %v", p.result.Outcome, p.result.Waiting)
		}
		if e, _ := s.read(t.Context(), id); e.Snapshot == nil {
			t.Error("no record")
		} else if _, ok := e.Snapshot.Node(fleet.ID(graph.Machine, "c1-md-2")); !ok {
			t.Error("the record was taken before the Machine was there")
		}
	})
}

func TestPre_WhatStaysInFlightIsDeferred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newCluster("source")
		c.Cluster("c1", 1, 2)
		c.Change(fleet.ID(graph.MachineSet, "c1-md-1"), fleet.Replicas(3))
		p := preparing(c, s, PreOptions{Timeout: time.Minute})
		if err := p.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.result.Outcome != flow.Deferred || len(p.result.Waiting) != 1 || p.result.Message == "" {
			t.Errorf("%s, waiting for %v", p.result.Outcome, p.result.Waiting)
		}
		if c.writes != 0 {
			t.Errorf("%d writes", c.writes)
		}
	})
}

func TestPre_ADryRunTellsTheWritesAndMakesNone(t *testing.T) {
	c, s := newCluster("source")
	c.Cluster("c1", 1, 2)
	p := preparing(c, s, PreOptions{DryRun: true})
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []flow.Write{
		"machinehealthcheck.cluster.x-k8s.io/c1 held (dry run)",
		"machinedeployment.cluster.x-k8s.io/c1-md held (dry run)",
		"machineset.cluster.x-k8s.io/c1-md-1 held (dry run)",
		"kubeadmcontrolplane.controlplane.cluster.x-k8s.io/c1-cp held (dry run)",
		"configmap/move-hook-record-c1 written (dry run)",
		"cluster.cluster.x-k8s.io/c1 record announced (dry run)",
		"kubeadmcontrolplane.controlplane.cluster.x-k8s.io/c1-cp labelled (dry run)",
		"machine.cluster.x-k8s.io/c1-cp-0 labelled (dry run)",
	}
	if diff := cmp.Diff(want, p.result.Writes); diff != "" {
		t.Error(diff)
	}
	if c.writes != 0 {
		t.Errorf("%d writes", c.writes)
	}
}
