package scale_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

// arriving Clusters: a hundred in a soak or a benchmark.
func arriving() int {
	if os.Getenv("MOVE_HOOK_SOAK") != "" || os.Getenv("MOVE_HOOK_BENCH") != "" {
		return 100
	}
	return 10
}

// TestArrival_ManyClustersAtOnce restores Clusters of 45 objects all at once, in
// random order and without owner references, while post runs, and tells how long
// each took from its last object to adopted. No controllers run: the test writes
// the status that they would.
func TestArrival_ManyClustersAtOnce(t *testing.T) {
	clusters := arriving()
	source, target, stop, err := stack.Pair(t.Context(), stack.Options{Bare: true, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	stack.LogsOnFailure(t, source, target)
	stack.Must(stack.Synthetic(t.Context(), source, clusters))(t)
	hook, proxy := stack.Must(scenario.BuildMoveHook(t.Context(), t.TempDir()))(t), stack.Must(stack.Proxy(target))(t)
	t.Cleanup(proxy.Close)
	adopted := begin(t, hook, "post", "--to-kubeconfig", proxy.Kubeconfig(), "-n", stack.SyntheticNamespace,
		"--adopt-unmarked", "--settle", "1s", "--watch-after", "0s", "--timeout", "15m")

	arrived := restore(t, target, stack.Must(scenario.TakeBackup(t.Context(), source, stack.SyntheticNamespace))(t))
	ended := adopted(clusters)
	var took []time.Duration
	for name, last := range arrived {
		took = append(took, ended[name].Sub(last))
	}
	slices.Sort(took)
	requests, writes := len(proxy.Requests()), len(proxy.Mutating())
	t.Logf("%d Clusters of %d objects: adopted p50 %s, p99 %s after their last object; %.1f requests a Cluster, %.1f of them writes",
		clusters, stack.ObjectsPerSyntheticCluster, at(took, 50), at(took, 99), float64(requests)/float64(clusters), float64(writes)/float64(clusters))
	// Each object: one dry run and one write of its owners, and little besides; and what
	// upstream's verdict about three control-plane Machines reads.
	if most := (3*stack.ObjectsPerSyntheticCluster + 15) * clusters; requests > most {
		t.Errorf("%d requests, want at most %d: %v", requests, most, proxy.Counts())
	}
	want := stack.Must(stack.OwnerGraph(t.Context(), source, stack.SyntheticNamespace))(t)
	have := stack.Must(stack.OwnerGraph(t.Context(), target, stack.SyntheticNamespace))(t)
	for object, owners := range want {
		if !slices.Equal(owners, have[object]) {
			t.Fatalf("%s is owned by %v, on the source by %v", object, have[object], owners)
		}
	}
}

func at(sorted []time.Duration, percent int) time.Duration {
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)].Round(10 * time.Millisecond)
}

// begin starts post and returns what waits for its end and says when each of the
// Clusters was adopted.
func begin(t *testing.T, program string, args ...string) func(clusters int) map[string]time.Time {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	stderr := stack.Must(cmd.StderrPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seen, said := map[string]time.Time{}, []string{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			name, ok := strings.CutSuffix(lines.Text(), " is adopted")
			if ok {
				seen[name[strings.LastIndexByte(name, '/')+1:]] = time.Now()
			} else {
				said = append(said, lines.Text())
			}
		}
	}()
	return func(clusters int) map[string]time.Time {
		<-read
		if err := cmd.Wait(); err != nil || len(seen) != clusters {
			t.Fatalf("post: %v; %d of %d Clusters adopted:\n%s", err, len(seen), clusters, strings.Join(said[max(0, len(said)-20):], "\n"))
		}
		return seen
	}
}

// restore creates the objects in random order, many at a time, and says when the
// last of each Cluster was there.
func restore(t *testing.T, m *stack.Management, objects scenario.Backup) map[string]time.Time {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: stack.SyntheticNamespace}}
	if err := m.Client().Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	arrived, mu := map[string]time.Time{}, sync.Mutex{}
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(24)
	for _, o := range objects.Shuffled(rand.New(rand.NewPCG(1, 1))) {
		group.Go(func() error {
			o := o.DeepCopy()
			if err := m.Client().Create(ctx, o); err != nil {
				return fmt.Errorf("restoring %s %s: %w", o.GetKind(), o.GetName(), err)
			}
			err := writeStatus(ctx, m, o)
			mu.Lock()
			defer mu.Unlock()
			arrived[o.GetLabels()["cluster.x-k8s.io/cluster-name"]] = time.Now()
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return arrived
}

// writeStatus is what controllers rebuild.
func writeStatus(ctx context.Context, m *stack.Management, o *unstructured.Unstructured) error {
	var status string
	switch o.GetKind() {
	case "Cluster":
		status = `{"status":{"initialization":{"infrastructureProvisioned":true}}}`
	case "Machine":
		status = fmt.Sprintf(`{"status":{"nodeRef":{"name":%q}}}`, o.GetName())
	case "KubeadmConfig":
		status = fmt.Sprintf(`{"status":{"dataSecretName":%q}}`, o.GetName())
	default:
		return nil
	}
	return m.Client().Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(status)))
}
