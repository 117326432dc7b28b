package job_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/watch"
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
	recorded(t, world.Management, namespace)

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

// TestShards_OneWithoutClustersEndsWithTheOthers: at least two of four pods have nothing to
// do, and an hour to wait for more.
func TestShards_OneWithoutClustersEndsWithTheOthers(t *testing.T) {
	const namespace, shards = "few", 4
	falls := func(name string, index int) bool {
		id := graph.ID{Group: graph.CoreGroup, Kind: graph.Cluster.Kind, Namespace: namespace, Name: name}
		return watch.Shard{Index: index, Count: shards}.Has(id)
	}
	has := map[int]int{}
	var names []string
	for i := 0; len(names) < 3; i++ {
		name := fmt.Sprintf("c%d", i)
		for index := range 2 {
			if falls(name, index) {
				has[index]++
				names = append(names, name)
			}
		}
	}
	system(t, world.Management)
	account(t, world.Management, namespace, rights(t, "rbac"))
	synthesized(t, world.Management, namespace, names...)
	recorded(t, world.Management, namespace)
	orphaned(t, world.Management, namespace)

	begin := time.Now()
	var working sync.WaitGroup
	for index := range shards {
		p := podOf(t, world.Management, namespace)
		p.index = fmt.Sprint(index)
		working.Go(func() {
			r := p.run(t, "post", "-n", namespace, "--shard-count", fmt.Sprint(shards), "--watch-after", "2s", "--timeout", "1h")
			want := fmt.Sprintf("no Cluster of a pivot falls to shard %d of %d: the others have adopted %d", index, shards, len(names))
			if n := has[index]; n == 1 {
				want = "1 Cluster: 1 adopted"
			} else if n > 1 {
				want = fmt.Sprintf("%d Clusters: %d adopted", n, n)
			} else if left := unadopted(t, namespace); len(left) > 0 {
				t.Errorf("shard %d has ended, and these records are open: %v", index, left)
			}
			if r.code != 0 || r.termination != want {
				t.Errorf("want %q of shard %d\n%s", want, index, r)
			}
		})
	}
	working.Wait()
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

// unadopted are the records that are not closed.
func unadopted(t *testing.T, namespace string) (open []string) {
	list := &corev1.ConfigMapList{}
	if err := world.Client().List(t.Context(), list, client.InNamespace(namespace), client.HasLabels{graph.RecordLabel}); err != nil || len(list.Items) == 0 {
		t.Errorf("%d records: %v", len(list.Items), err)
	}
	for _, m := range list.Items {
		if _, closed := m.Annotations[graph.AdoptedAnnotation]; !closed {
			open = append(open, m.Name)
		}
	}
	return open
}
