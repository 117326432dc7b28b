package job_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"

	"golang.org/x/sync/errgroup"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/test/stack"
)

// TestShards_EachClusterIsAdoptedOnce runs the pods of an Indexed Job side by side.
func TestShards_EachClusterIsAdoptedOnce(t *testing.T) {
	const namespace, clusters, shards = "fleet", 200, 4
	var making errgroup.Group
	making.SetLimit(8)
	for i := range clusters {
		making.Go(func() error {
			return stack.Cluster(fmt.Sprintf("c%d", i)).InNamespace(namespace).ControlPlane(1).Workers("md-0", 0).Synthesize(t.Context(), world.Management)
		})
	}
	if err := making.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := stack.Provisioned(t.Context(), world, namespace); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), world.hook, "pre", "-n", namespace, "--kubeconfig", world.Kubeconfig()).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	var working errgroup.Group
	adopted := make([][]string, shards)
	for index := range shards {
		working.Go(func() error {
			cmd := exec.CommandContext(t.Context(), world.hook, "post", "-n", namespace, "--kubeconfig", world.Kubeconfig(),
				"--shard-count", fmt.Sprint(shards), "--watch-after", "0s", "-o", "json")
			cmd.Env = append(cmd.Environ(), fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index))
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("shard %d: %w\n%s", index, err, stderr.String())
			}
			var result struct {
				Clusters []struct {
					Cluster graph.ID
					Writes  []string
				}
			}
			if err := json.Unmarshal(stdout.Bytes(), &result); err != nil {
				return err
			}
			for _, c := range result.Clusters {
				if len(c.Writes) > 0 {
					adopted[index] = append(adopted[index], c.Cluster.Name)
				}
			}
			return nil
		})
	}
	if err := working.Wait(); err != nil {
		t.Fatal(err)
	}
	by := map[string]int{}
	for index, names := range adopted {
		t.Logf("shard %d adopted %d Clusters", index, len(names))
		for _, name := range names {
			if other, twice := by[name]; twice {
				t.Errorf("%s was adopted by shard %d and by shard %d", name, other, index)
			}
			by[name] = index
		}
	}
	if len(by) != clusters {
		t.Errorf("%d of %d Clusters were adopted", len(by), clusters)
	}
	list := &clusterv1.ClusterList{}
	if err := world.Client().List(t.Context(), list, client.InNamespace(namespace), client.HasLabels{graph.AdoptionLabel}); err != nil || len(list.Items) > 0 {
		t.Errorf("%d Clusters still carry the label, %v", len(list.Items), err)
	}
}
