package preflight

import (
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// checkScope finds a scope that holds no Cluster.
func checkScope(in Input) []finding.Finding {
	if len(in.Source.Clusters) > 0 || len(in.Names) > 0 {
		return nil
	}
	return []finding.Finding{NoCluster(in.SourceName, in.Namespace)}
}

// NoCluster is the finding of a scope that holds no Cluster. clusterctl would say
// "Clusters=0" and exit 0.
func NoCluster(side, namespace string) finding.Finding {
	where, remedy := "namespace "+namespace, "give the right namespace with -n, or look into all with -A"
	if namespace == "" {
		where, remedy = "any namespace", "check that this is the right management cluster"
	}
	return finding.Finding{
		ID: "NoClusterInScope", Severity: finding.Stops, Object: side,
		Message: "holds no Cluster in " + where, Remedy: remedy,
	}
}

// checkNames finds Clusters that were asked for and do not exist.
func checkNames(in Input) []finding.Finding {
	var found []finding.Finding
	for _, name := range in.Names {
		id := graph.ID{Group: graph.CoreGroup, Kind: graph.Cluster.Kind, Namespace: name.Namespace, Name: name.Name}
		if _, ok := in.Source.Graph.Object(id); !ok {
			found = append(found, finding.Finding{
				ID: "ClusterNotFound", Severity: finding.Stops, Object: id.String(),
				Message: "does not exist on the source", Remedy: "check its name and namespace",
			})
		}
	}
	return found
}

// checkUnreadable finds kinds that clusterctl moves and that could not be listed: a
// record without them would be incomplete, and nobody would notice.
func checkUnreadable(in Input) []finding.Finding {
	var found []finding.Finding
	for _, kind := range in.Source.Graph.Kinds() {
		namespace := in.Namespace
		if !kind.Namespaced {
			namespace = ""
		}
		if !kind.Discovered || in.Source.Graph.Listed(kind.GroupKind, namespace) {
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
