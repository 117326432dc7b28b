package pivot

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// noCluster is the finding of a scope that holds no Cluster. clusterctl would say
// "Clusters=0" and exit 0.
func noCluster(side, namespace string) finding.Finding {
	where, remedy := "namespace "+namespace, "give the right namespace with -n, or look into all with -A"
	if namespace == "" {
		where, remedy = "any namespace", "check that this is the right management cluster"
	}
	return finding.Finding{
		ID: "NoClusterInScope", Severity: finding.Stops, Object: side,
		Message: "holds no Cluster in " + where, Remedy: remedy,
	}
}

// missingNames finds Clusters that were asked for and do not exist.
func missingNames(s *scope, names []types.NamespacedName) []finding.Finding {
	var found []finding.Finding
	for _, name := range names {
		id := graph.ID{Group: graph.CoreGroup, Kind: graph.Cluster.Kind, Namespace: name.Namespace, Name: name.Name}
		if _, ok := s.graph.Object(id); !ok {
			found = append(found, finding.Finding{
				ID: "ClusterNotFound", Severity: finding.Stops, Object: id.String(),
				Message: "does not exist on the source", Remedy: "check its name and namespace",
			})
		}
	}
	return found
}

// unreadable finds kinds that clusterctl moves and that could not be listed: a
// record without them would be incomplete, and nobody would notice.
func unreadable(s *scope, namespace string) []finding.Finding {
	var found []finding.Finding
	for _, kind := range s.graph.Kinds() {
		in := namespace
		if !kind.Namespaced {
			in = ""
		}
		if !kind.Discovered || s.graph.Listed(kind.GroupKind, in) {
			continue
		}
		found = append(found, finding.Finding{
			ID: "UnreadableKind", Severity: finding.Stops, Object: kind.GroupKind.String(),
			Message: "cannot be listed, and clusterctl moves objects of this kind",
			Remedy:  "allow move-hook to list it",
		})
	}
	return found
}

// onTarget finds copies of the Clusters on the target that are reconciled there.
// A paused copy may be what an interrupted move left, which clusterctl updates.
func onTarget(ctx context.Context, target clusterLister, namespace string, clusters []graph.ID) ([]finding.Finding, error) {
	if target == nil {
		return nil, nil
	}
	there, err := target.Clusters(ctx, namespace)
	if err != nil {
		return nil, err
	}
	mine := map[graph.ID]bool{}
	for _, cluster := range clusters {
		mine[cluster] = true
	}
	var found []finding.Finding
	for i := range there {
		o := &there[i]
		m := labels.MetaOf(o)
		if !mine[o.ID] || m.SpecPaused || labels.PausedByAnnotation(m) {
			continue
		}
		found = append(found, finding.Finding{
			ID: "LiveOnTarget", Severity: finding.Stops, Object: o.ID.String(),
			Field: "spec.paused", Have: "not set", Want: "true",
			Message: fmt.Sprintf("is on %s already and not paused: both copies are reconciled", target.Name()),
			Remedy:  "see `move-hook status`",
		})
	}
	return found, nil
}
