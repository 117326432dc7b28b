package scenario_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

// TestMoveSet_EqualsClusterctls compares what the graph says will move with what
// clusterctl writes into a folder, for every kind of workload cluster that
// controllers can bring up. Those that need none are in test/bare.
func TestMoveSet_EqualsClusterctls(t *testing.T) {
	for _, name := range []string{"wrapped", "overlap", "classy", "alone"} {
		t.Run(name, func(t *testing.T) {
			key := ready(t, name)
			pauseSource(t, key, false) // clusterctl takes nothing paused, and the tests of restores pause their source
			machines := &clusterv1.MachineList{}
			if err := world.source.Client().List(t.Context(), machines, client.InNamespace(key.Namespace)); err != nil {
				t.Fatal(err)
			}
			if got, want := len(machines.Items), fleet[name].build.WantedMachines(); got != want {
				t.Errorf("%d Machines, want %d", got, want)
			}
			reader, err := management.OpenConfig(world.source.RESTConfig(), "the source")
			if err != nil {
				t.Fatal(err)
			}
			g, warnings, err := reader.Read(t.Context(), management.Scope{Namespace: key.Namespace})
			if err != nil || len(warnings) > 0 {
				t.Fatal(err, warnings)
			}
			dir := t.TempDir()
			stack.Must(world.source.RunClusterctl(t.Context(), "move", "--kubeconfig", world.source.Kubeconfig(), "--to-directory", dir, "-n", key.Namespace))(t)
			written := stack.Must(scenario.FolderIDs(dir))(t)
			if diff := cmp.Diff(written, g.MoveSet().In()); diff != "" {
				t.Errorf("clusterctl's files and the move set (-files +set):\n%s", diff)
			}
			folder, _, err := management.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			if folder.Len() != len(written) {
				t.Errorf("%d objects read from the folder, clusterctl wrote %d", folder.Len(), len(written))
			}
		})
	}
}
