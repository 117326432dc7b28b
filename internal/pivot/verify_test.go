package pivot

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/internal/fleet"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/record"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// verifying is Verify on management clusters in memory.
func verifying(target *cluster, records *stored, source *cluster, o VerifyOptions) *verification {
	o.Namespace = "fleet"
	v := &verification{o: o, target: target, records: records, told: map[string]bool{}, want: map[graph.ID]expected{}}
	if source != nil {
		v.source = source
	}
	return v
}

func TestVerify_ComparesWithTheBestThereIs(t *testing.T) {
	source, _ := newCluster("source")
	id := source.Cluster("c1", 1, 2)
	snapshot := source.Graph().Snapshot(id)
	file := filepath.Join(t.TempDir(), "record.json")
	if err := record.ToFile(file, []graph.Snapshot{snapshot}); err != nil {
		t.Fatal(err)
	}
	empty, _ := newCluster("source")
	pausedSource, _ := newCluster("source")
	pausedSource.Cluster("c1", 1, 2)
	pausedSource.Change(id, func(o *graph.Object) { o.Facts.Paused = true })

	for name, c := range map[string]struct {
		withRecord bool
		source     *cluster
		o          VerifyOptions
		want       Against
	}{
		"a file before the record":    {true, nil, VerifyOptions{RecordFile: file}, AgainstRecordFile},
		"the record":                  {true, empty, VerifyOptions{}, AgainstRecord},
		"the source, paused for good": {false, pausedSource, VerifyOptions{}, AgainstSource},
		"rules":                       {false, empty, VerifyOptions{}, AgainstRules},
		"what the flow recorded":      {false, empty, VerifyOptions{records: []graph.Snapshot{snapshot}}, AgainstRecord},
	} {
		t.Run(name, func(t *testing.T) {
			target, records := newCluster("target")
			target.Cluster("c1", 1, 2)
			if c.withRecord {
				owner := target.All[id]
				if _, _, err := records.write(t.Context(), snapshot, &owner); err != nil {
					t.Fatal(err)
				}
			}
			v := verifying(target, records, c.source, c.o)
			if err := v.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := v.result.Clusters[0]
			if got.Against != c.want || got.Objects == 0 || v.result.Outcome != flow.Done || len(got.Findings) != 0 {
				t.Errorf("%s against %s, %d objects: %v", v.result.Outcome, got.Against, got.Objects, got.Findings)
			}
		})
	}
}

func TestVerify_FindsPlantedFaults(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(source, target *cluster)
		want  string
	}{
		"an object is missing": {func(_, target *cluster) { delete(target.All, fleet.ID(graph.KubeadmConfig, "c1-cp-0")) }, "MissingObject"},
		"a label is left": {func(_, target *cluster) {
			target.Change(fleet.ID(graph.Machine, "c1-cp-0"), fleet.Labelled(labels.Adoption, labels.Pending))
		}, "LabelLeft"},
		"P5: the source is live": {func(source, _ *cluster) { source.Cluster("c1", 1, 2) }, "SourceUnpaused"},
		"an object is on the source": {func(source, _ *cluster) {
			source.Add(graph.Machine, "c1-md-0", nil)
		}, "LeftOnSource"},
	} {
		t.Run(name, func(t *testing.T) {
			source, _ := newCluster("source")
			target, records := newCluster("target")
			id := target.Cluster("c1", 1, 2)
			owner := target.All[id]
			if _, _, err := records.write(t.Context(), target.Graph().Snapshot(id), &owner); err != nil {
				t.Fatal(err)
			}
			c.plant(source, target)
			v := verifying(target, records, source, VerifyOptions{})
			if err := v.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			found := false
			for _, f := range v.result.Findings() {
				found = found || f.ID == c.want
			}
			if !found || v.result.Outcome != flow.Findings {
				t.Errorf("%s: %v", v.result.Outcome, v.result.Findings())
			}
		})
	}
}

func TestVerify_NothingInScopeIsAFinding(t *testing.T) {
	target, records := newCluster("target")
	v := verifying(target, records, nil, VerifyOptions{})
	if err := v.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := v.result.Findings(); v.result.Outcome != flow.Findings || len(got) != 1 || got[0].ID != "NoClusterInScope" {
		t.Errorf("%s: %v", v.result.Outcome, got)
	}
	v = verifying(target, records, nil, VerifyOptions{Names: []types.NamespacedName{{Namespace: "fleet", Name: "c1"}}})
	if err := v.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v.result.Outcome != flow.Findings {
		t.Errorf("a named Cluster that is not there: %s", v.result.Outcome)
	}
}

func TestStatus_IsReadFromBothSides(t *testing.T) {
	source, sourceRecords := newCluster("source")
	target, targetRecords := newCluster("target")
	id := source.Cluster("c1", 1, 2)
	look := func() ClusterStatus {
		t.Helper()
		l := looking{namespace: "fleet", source: &lookedAt{host: source, records: sourceRecords}, target: &lookedAt{host: target, records: targetRecords}}
		result, err := l.look(t.Context())
		if err != nil || len(result.Clusters) != 1 {
			t.Fatalf("%v %v", result, err)
		}
		return result.Clusters[0]
	}
	if got := look(); got.State != Untouched || got.Record != nil {
		t.Errorf("%s: %s", got.State, got.Detail)
	}

	if err := preparing(source, sourceRecords, PreOptions{}).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := look()
	if got.State != Prepared || got.Detail != "recorded (24 objects), 4 scalers held, 2 objects labelled" {
		t.Errorf("%s: %s", got.State, got.Detail)
	}
	if diff := cmp.Diff(&CopyStatus{Exists: true, Objects: 24, Machines: 3, Announced: true, Held: got.Source.Held, Pending: got.Source.Pending}, got.Source); diff != "" {
		t.Error(diff)
	}

	// clusterctl pauses, creates part of it, stops.
	source.Change(id, func(o *graph.Object) { o.Facts.Paused = true })
	target.All[id] = source.All[id]
	if got := look(); got.State != Creating || got.Target.Missing != 23 {
		t.Errorf("%s: %s", got.State, got.Detail)
	}
	// Everything is there, and the first is deleted.
	for id, o := range source.All {
		target.All[id] = o
	}
	targetRecords.maps = sourceRecords.maps
	delete(source.All, fleet.ID(fleet.InfraMachine, "c1-md-0"))
	if got := look(); got.State != Deleting || got.Source.Missing != 1 || len(got.Record.On) != 2 {
		t.Errorf("%s: %s", got.State, got.Detail)
	}
	// Everything is deleted but what clusterctl does not know.
	clear(source.All)
	sourceRecords.maps = nil
	source.Add(graph.Secret, "c1-notes", nil, fleet.Labelled(graph.ClusterNameLabel, "c1"))
	target.Change(id, func(o *graph.Object) { o.Facts.Paused = false })
	if got := look(); got.State != Arrived {
		t.Errorf("%s: %s", got.State, got.Detail)
	}
}
