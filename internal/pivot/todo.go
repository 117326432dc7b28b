package pivot

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/graph"
)

// todo is what a move has to do, by Cluster.
type todo struct {
	// move: on the source and free; adopt: on the target already; done: verified.
	move, adopt, done []graph.ID
	// stuck are Clusters that this command must not touch.
	stuck []ClusterStatus
}

// plan says what there is to do for every state.
func plan(clusters []ClusterStatus) todo {
	var t todo
	for _, c := range clusters {
		switch c.State {
		case Untouched, Prepared:
			// A Cluster that lives on the target and was never moved is not ours.
			if c.Source.any() {
				t.move = append(t.move, c.Cluster)
			}
		case Creating:
			// Unpaused by its user after an interrupted move: clusterctl updates what it finds.
			if c.Source.live() && !c.Target.live() {
				t.move = append(t.move, c.Cluster)
			} else {
				t.stuck = append(t.stuck, c)
			}
		case Arrived:
			if c.Target.Paused == PausedSpec {
				t.stuck = append(t.stuck, c)
			} else {
				t.adopt = append(t.adopt, c.Cluster)
			}
		case Adopting:
			t.adopt = append(t.adopt, c.Cluster)
		case Verified:
			t.done = append(t.done, c.Cluster)
		case Deleting, Split:
			t.stuck = append(t.stuck, c)
		case Absent:
		}
	}
	return t
}

// stuck says what was found and where to read on.
func stuck(clusters []ClusterStatus) string {
	var lines []string
	for _, c := range clusters {
		lines = append(lines, fmt.Sprintf("%s is %s: %s", c.Cluster, c.State, c.Detail))
	}
	return strings.Join(lines, "; ") + "; run `move-hook status` and do what it says before you move again"
}

// onlyNamed refuses names that leave out a Cluster which clusterctl would move too.
func onlyNamed(move []graph.ID, names []types.NamespacedName) error {
	if len(names) == 0 {
		return nil
	}
	for _, cluster := range move {
		if !slices.Contains(names, types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}) {
			return flow.Usage(fmt.Errorf("clusterctl moves everything in namespace %s, also %s, which was not named: name all of its Clusters or none",
				cluster.Namespace, cluster))
		}
	}
	return nil
}

func namesOf(clusters []graph.ID) []types.NamespacedName {
	names := make([]types.NamespacedName, 0, len(clusters))
	for _, c := range clusters {
		names = append(names, types.NamespacedName{Namespace: c.Namespace, Name: c.Name})
	}
	return names
}

// nouns is "Cluster fleet/c1" or "Clusters fleet/c1, fleet/c2".
func nouns(clusters []graph.ID) string {
	if len(clusters) == 1 {
		return clusters[0].String()
	}
	paths := make([]string, 0, len(clusters))
	for _, c := range clusters {
		paths = append(paths, c.Namespace+"/"+c.Name)
	}
	return "Clusters " + strings.Join(paths, ", ")
}
