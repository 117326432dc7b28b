package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// checkKinds finds kinds and versions that move and that the target does not serve.
// clusterctl would find it at the first such object, with the source paused.
func checkKinds(in Input) []finding.Finding {
	counts := map[graph.GroupKind]int{}
	for _, id := range in.Source.moving() {
		counts[id.GroupKind()]++
	}
	var found []finding.Finding
	for _, gk := range slices.SortedFunc(maps.Keys(in.Target.Kinds), graph.GroupKind.Compare) {
		k := in.Target.Kinds[gk]
		f := finding.Finding{Severity: finding.Stops, Object: gk.String()}
		move := fmt.Sprintf("%d of its objects move", counts[gk])
		if counts[gk] == 1 {
			move = "an object of it moves"
		}
		switch {
		case len(k.Served) == 0 && k.Unknown != "":
			f.ID = "KindMissing"
			f.Message = fmt.Sprintf("is perhaps not served by %s, and %s: %s", in.Target.Name, move, k.Unknown)
			f.Remedy = "let the API server answer for that group, then run the command again"
		case len(k.Served) == 0:
			f.ID = "KindMissing"
			f.Message = fmt.Sprintf("is not served by %s, and %s", in.Target.Name, move)
			f.Remedy = "install its provider on the target, or its CustomResourceDefinition"
		case !slices.Contains(k.Served, k.Version):
			f.ID, f.Field, f.Have, f.Want = "VersionMissing", "apiVersion", strings.Join(k.Served, ", "), k.Version
			f.Message = fmt.Sprintf("is served by %s in other versions than clusterctl creates it in, and %s", in.Target.Name, move)
			f.Remedy = "upgrade its provider on the older side"
		case !k.Labelled:
			f.ID, f.Severity, f.Field, f.Want = "KindUnlabelled", finding.Harms, "metadata.labels", graph.ClusterctlLabel
			f.Message = fmt.Sprintf("is not labelled for clusterctl on %s, so a later move from there leaves its objects behind", in.Target.Name)
			f.Remedy = "kubectl label crd " + k.Resource + "." + gk.Group + " " + graph.ClusterctlLabel + "= with the target's kubeconfig"
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}
