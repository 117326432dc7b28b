// Package scale_test shows that move-hook stays fast and small where a management
// cluster is large, with clusterctl's numbers from the same run beside its own.
package scale_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

// pageSize is how many objects an answer of the API server must bring, at least,
// where there are more to come.
const pageSize = 500

// sizes are counted in workload clusters. The last is 45,000 objects, for which
// clusterctl takes minutes.
func sizes() []int {
	if os.Getenv("MOVE_HOOK_SOAK") != "" || os.Getenv("MOVE_HOOK_BENCH") != "" {
		return []int{100, 200, 500, 1000}
	}
	return []int{100}
}

// row is what was measured with one number of objects.
type row struct {
	objects                     int
	hook, preflight, clusterctl usage
}

func TestScale_GraphAgreesWithClusterctl(t *testing.T) {
	m := stack.Must(stack.Start(t.Context(), stack.Options{Name: "scale", Bare: true, Progress: os.Stderr}))(t)
	t.Cleanup(m.Stop)
	stack.LogsOnFailure(t, m)
	proxy := stack.Must(stack.Proxy(m))(t)
	t.Cleanup(proxy.Close)
	hook := stack.Must(scenario.BuildMoveHook(t.Context(), t.TempDir()))(t)
	var rows []row
	for _, clusters := range sizes() {
		t.Run(fmt.Sprintf("%d Clusters", clusters), func(t *testing.T) {
			start := time.Now()
			stack.Must(stack.Synthetic(t.Context(), m, clusters))(t)
			t.Logf("filled in %s", time.Since(start).Round(time.Second))
			want := clusters * stack.ObjectsPerSyntheticCluster

			ours := run(t, hook, "graph", "--kubeconfig", m.Kubeconfig(), "-n", stack.SyntheticNamespace, "-o", "json")
			graph := decode(t, ours.stdout)
			if graph.Counts.Objects != want || len(graph.Objects) != want || len(graph.Unseen) != 0 {
				t.Errorf("move-hook saw %d objects and misses %d owners; made were %d", len(graph.Objects), len(graph.Unseen), want)
			}
			// In a dry run it looks at no target.
			theirs := run(t, m.Clusterctl(), "move", "--dry-run", "-v", "1", "--kubeconfig", m.Kubeconfig(), "-n", stack.SyntheticNamespace)
			if diff := cmp.Diff(created(t, theirs), graph.moving()); diff != "" {
				t.Errorf("the move sets differ (- clusterctl, + move-hook):\n%s", shorten(diff))
			}
			requestsAreFew(t, proxy, hook, want)
			if err := stack.Provisioned(t.Context(), m, stack.SyntheticNamespace); err != nil {
				t.Fatal(err)
			}
			// Nothing is wrong with them, so it must find nothing.
			preflight := run(t, hook, "preflight", "--kubeconfig", m.Kubeconfig(), "-n", stack.SyntheticNamespace, "--fail-on", "notes")
			rows = append(rows, row{want, ours.usage, preflight.usage, theirs.usage})
		})
	}
	t.Log("\n" + table(rows))
}

// requestsAreFew counts what move-hook asks of the API server: pages of lists, and
// nothing object by object. That holds on every machine, other than times.
func requestsAreFew(t *testing.T, proxy *stack.APIProxy, hook string, objects int) {
	t.Helper()
	proxy.Forget()
	run(t, hook, "graph", "--kubeconfig", proxy.Kubeconfig(), "-n", stack.SyntheticNamespace, "-o", "json")
	lists, requests := map[string]bool{}, proxy.Requests()
	for _, r := range requests {
		if r.Verb != "list" {
			t.Errorf("one request for one object: %s", r)
		}
		lists[r.Group+"/"+r.Resource+"/"+r.Namespace] = true
	}
	// Every list has one page that may be less than full.
	most := len(lists) + objects/pageSize
	if len(requests) > most {
		t.Errorf("%d requests for %d objects in %d lists, want at most %d: %v", len(requests), objects, len(lists), most, proxy.Counts())
	}
	t.Logf("%d requests for %d objects in %d lists", len(requests), objects, len(lists))
}

// table is for people: time and memory are the machine's, so nothing is asserted.
func table(rows []row) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "objects\tmove-hook graph\tmove-hook preflight\tclusterctl move --dry-run\tratio\tmemory\tmemory of preflight\tmemory of clusterctl\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%d\t%.2f s\t%.2f s\t%.2f s\t%.1f\t%d MiB\t%d MiB\t%d MiB\t\n", r.objects, r.hook.wall.Seconds(), r.preflight.wall.Seconds(), r.clusterctl.wall.Seconds(),
			r.clusterctl.wall.Seconds()/r.hook.wall.Seconds(), r.hook.memory>>20, r.preflight.memory>>20, r.clusterctl.memory>>20)
	}
	_ = w.Flush() // A strings.Builder takes everything.
	return out.String()
}

// shorten keeps the beginning: a difference can be as long as the fleet is large.
func shorten(text string) string {
	lines := strings.SplitAfterN(text, "\n", 41)
	return strings.Join(lines[:min(len(lines), 40)], "")
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
