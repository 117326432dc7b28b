package pivot

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/graph"
)

// todo is what a move or resume has to do, by Cluster.
type todo struct {
	// move: on the source and free, or about to be; adopt: on the target already;
	// done: verified.
	move, adopt, done []graph.ID
	// thaw, a part of move, are paused by an interrupted clusterctl that had deleted
	// nothing: unpaused, they can be moved again.
	thaw []graph.ID
	// finish: deletion from the source has begun, or ended without the target being
	// unpaused. The source is never unpaused again.
	finish []graph.ID
	// stuck are Clusters that nobody but a person can judge.
	stuck []ClusterStatus
	// records are those of thaw and finish.
	records map[graph.ID]graph.Snapshot
}

// plan says what there is to do for every state. clusterctl creates everything in a
// namespace before it deletes anything, so that once one Cluster is being deleted no
// other that it had paused may be unpaused on the source.
func plan(clusters []ClusterStatus) todo {
	t := todo{records: map[graph.ID]graph.Snapshot{}}
	deleting := false
	for _, c := range clusters {
		if c.byClusterctl() {
			t.records[c.Cluster] = *c.snapshot
		}
		switch c.State {
		case Untouched, Prepared:
			// A Cluster that lives on the target and was never moved is not ours.
			if c.Source.any() {
				t.move = append(t.move, c.Cluster)
			}
		case Creating:
			switch {
			case c.Source.live() && !c.Target.live():
				t.move = append(t.move, c.Cluster)
			case !c.byClusterctl():
				t.stuck = append(t.stuck, c)
			case c.Target.live():
				// Unpaused by hand, or it was split: what reconciles already goes on.
				t.finish = append(t.finish, c.Cluster)
				deleting = true
			default:
				t.thaw = append(t.thaw, c.Cluster)
			}
		case Deleting:
			if c.Source.live() || !c.byClusterctl() {
				t.stuck = append(t.stuck, c)
				continue
			}
			t.finish = append(t.finish, c.Cluster)
			deleting = true
		case Arrived, Adopting:
			switch {
			case c.Target.Paused != PausedSpec || c.Target.Released:
				t.adopt = append(t.adopt, c.Cluster)
			case c.byClusterctl():
				t.finish = append(t.finish, c.Cluster)
				deleting = true
			default:
				t.stuck = append(t.stuck, c)
			}
		case Verified:
			t.done = append(t.done, c.Cluster)
		case Split:
			t.stuck = append(t.stuck, c)
		case Absent:
		}
	}
	if deleting {
		t.finish = append(t.finish, t.thaw...)
		t.thaw = nil
		slices.SortFunc(t.finish, graph.ID.Compare)
	}
	t.move = append(t.move, t.thaw...)
	slices.SortFunc(t.move, graph.ID.Compare)
	return t
}

// byClusterctl says that the record, which has to be usable, knows of no pause by the
// Cluster's user: then an interrupted clusterctl has paused it.
func (c *ClusterStatus) byClusterctl() bool {
	if !c.Record.usable() || c.snapshot == nil {
		return false
	}
	n, ok := c.snapshot.Node(c.Cluster)
	return ok && !n.PausedByUser
}

// stuck says what was found and where to read on.
func stuck(clusters []ClusterStatus) string {
	var lines []string
	for _, c := range clusters {
		line := fmt.Sprintf("%s is %s: %s", c.Cluster, c.State, c.Detail)
		if !c.Record.usable() && c.State != Split {
			line += "; without a usable record nobody can say whose pause it is and whether the target is whole (give it with --record FILE)"
		}
		lines = append(lines, line)
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
