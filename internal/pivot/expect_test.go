package pivot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/move-hook/move-hook/internal/fleet"
	"github.com/move-hook/move-hook/pkg/graph"
)

func manifests(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	pausedCluster = `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c1","namespace":"fleet","uid":"u1"},
		"spec":{"paused":true,"controlPlaneRef":{"apiGroup":"controlplane.cluster.x-k8s.io","kind":"KubeadmControlPlane","name":"cp"}},
		"status":{"initialization":{"infrastructureProvisioned":true}}}`
	ownedControlPlane = `{"apiVersion":"controlplane.cluster.x-k8s.io/v1beta2","kind":"KubeadmControlPlane","metadata":{"name":"cp","namespace":"fleet","uid":"u2",
		"annotations":{"cluster.x-k8s.io/paused":"","pivot.cluster.x-k8s.io/held":"move-hook pre 2026-05-01T09:00:00Z"},
		"ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","name":"c1","uid":"u1"}]}}`
	// A move label takes it along; nothing owns it.
	labelledIdentity = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"extra","namespace":"fleet",
		"labels":{"clusterctl.cluster.x-k8s.io/move":"","cluster.x-k8s.io/cluster-name":"c1"}}}`
)

func TestReadExpected_TakesAFolderOfClusterctlAsARecord(t *testing.T) {
	dir := manifests(t, map[string]string{"a.json": pausedCluster, "b.json": ownedControlPlane, "c.json": labelledIdentity, "d.yaml": "# nothing\n"})
	got, warnings, err := ReadExpected(dir)
	if err != nil || len(got) != 1 {
		t.Fatalf("%d records, %v", len(got), err)
	}
	if len(warnings) != 1 {
		t.Errorf("warnings %v", warnings)
	}
	s := got[0]
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	var nodes []string
	for _, n := range s.Nodes {
		nodes = append(nodes, n.ID.String())
		if !n.Moves {
			t.Errorf("%s is in the folder, so it is awaited", n.ID)
		}
		if n.PausedByUser {
			t.Errorf("%s: the pauses in the folder are clusterctl's and ours", n.ID)
		}
	}
	if diff := cmp.Diff([]string{"ConfigMap fleet/extra", "Cluster fleet/c1", "KubeadmControlPlane fleet/cp"}, nodes); diff != "" {
		t.Error(diff)
	}
	if cp, _ := s.Node(fleet.ID(graph.KubeadmControlPlane, "cp")); len(cp.Owners) != 1 || cp.Owners[0].ID != s.Cluster {
		t.Errorf("owners of the control plane: %+v", cp.Owners)
	}
}

func TestReadExpected_RefusesWhatTellsNoOwners(t *testing.T) {
	unowned := strings.Split(ownedControlPlane, `,
		"ownerReferences"`)[0] + "}}"
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"manifests of Git": {map[string]string{"a.json": pausedCluster, "b.json": unowned}, "tells no owner of KubeadmControlPlane fleet/cp"},
		"no Cluster":       {map[string]string{"c.json": labelledIdentity}, "holds no Cluster"},
		"nothing":          {nil, "holds no manifests"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := ReadExpected(manifests(t, c.files))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%d records, error %v; want %q", len(got), err, c.want)
			}
		})
	}
}
