package preflight

import (
	"fmt"
	"maps"
	"slices"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// checkNamespaces finds namespaces that are on their way out. One that does not exist
// is created by clusterctl (mover.go, ensureNamespace).
func checkNamespaces(in Input) []finding.Finding {
	var found []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(in.Target.Rooms)) {
		if !in.Target.Rooms[name].Terminating {
			continue
		}
		found = append(found, finding.Finding{
			ID: "NamespaceTerminating", Severity: finding.Stops, Object: "Namespace " + name,
			Field: "metadata.deletionTimestamp", Have: "set", Want: "not set",
			Message: fmt.Sprintf("is being deleted on %s, where nothing can be created in it any more", in.Target.Name),
			Remedy:  "wait until it is gone, then run the command again",
		})
	}
	return found
}

// checkQuotas finds quotas that leave too little room for the objects that move. The
// offer cannot: a dry run uses nothing of a quota, so each object alone fits.
func checkQuotas(in Input) []finding.Finding {
	coming := map[string]map[string]int64{}
	for _, id := range in.Source.moving() {
		if _, there := in.Target.There[id]; there || id.Namespace == "" {
			continue
		}
		in.Target.count(coming, id, 1)
	}
	for cluster, records := range recordsOf(in.Source) {
		if records == 0 {
			in.Target.count(coming, graph.ID{Kind: graph.ConfigMap.Kind, Namespace: cluster.Namespace}, 1)
		}
	}
	var found []finding.Finding
	for _, namespace := range slices.Sorted(maps.Keys(in.Target.Rooms)) {
		for _, q := range in.Target.Rooms[namespace].Quotas {
			for _, resource := range slices.Sorted(maps.Keys(q.Hard)) {
				more := coming[namespace][resource]
				if more == 0 || q.Used[resource]+more <= q.Hard[resource] {
					continue
				}
				found = append(found, finding.Finding{
					ID: "QuotaExceeded", Severity: finding.Stops, Object: "ResourceQuota " + namespace + "/" + q.Name,
					Field: "spec.hard[" + resource + "]", Have: fmt.Sprint(q.Hard[resource]), Want: fmt.Sprint(q.Used[resource] + more),
					Message: fmt.Sprintf("has no room on %s for what moves: %d are used and %d come", in.Target.Name, q.Used[resource], more),
					Remedy:  "raise it",
				})
			}
		}
	}
	return found
}

// count adds objects under every name by which a quota may count them
// (k8s.io/apiserver pkg/quota/v1/generic, and kubernetes pkg/quota/v1/evaluator/core).
func (t *TargetFacts) count(coming map[string]map[string]int64, id graph.ID, n int64) {
	plural := t.Kinds[id.GroupKind()].Resource
	names := []string{"count/" + plural + "." + id.Group}
	switch id.GroupKind() {
	case graph.Secret:
		names = []string{"count/secrets", "secrets"}
	case graph.ConfigMap:
		names = []string{"count/configmaps", "configmaps"}
	}
	for _, name := range names {
		if coming[id.Namespace] == nil {
			coming[id.Namespace] = map[string]int64{}
		}
		coming[id.Namespace][name] += n
	}
}

// recordsOf counts the records that the Clusters have. One that has none gets one
// from `move-hook pre`, which then moves too.
func recordsOf(s *Scope) map[graph.ID]int {
	records := map[graph.ID]int{}
	for _, cluster := range s.Clusters {
		records[cluster] = 0
	}
	for _, o := range s.Graph.OfKind(graph.ConfigMap) {
		if !graph.IsRecord(o) {
			continue
		}
		for _, e := range s.Graph.Owners(o.ID) {
			if _, ok := records[e.To]; ok {
				records[e.To]++
			}
		}
	}
	return records
}
