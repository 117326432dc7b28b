package preflight

import (
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// checkBlockMove finds objects for which clusterctl will wait after it has paused the
// Clusters (mover.go, waitReadyForMove). Providers set the annotation at any time and
// take it off when they see the pause, so it is no fault in itself.
func checkBlockMove(in Input) []finding.Finding {
	var found []finding.Finding
	for _, o := range in.Source.All() {
		value, blocked := o.Annotations[graph.BlockMoveAnnotation]
		if !blocked || !in.Source.Moves[o.ID].In {
			continue
		}
		f := finding.Finding{
			ID: "BlockMove", Severity: finding.Notes, Object: o.String(),
			Field: "metadata.annotations[" + graph.BlockMoveAnnotation + "]", Have: value,
			Message: "blocks the move until its controller takes the annotation off, for which clusterctl waits after it has paused the Cluster",
			Remedy:  "make sure that the controller runs; if nobody takes it off: kubectl annotate " + resource(o.ID) + " " + graph.BlockMoveAnnotation + "-",
		}
		if holder := in.BlockedBy[o.ID]; holder != "" {
			f.Message = "blocks the move until " + holder + " takes the annotation off, for which clusterctl waits after it has paused the Cluster"
		}
		found = append(found, f)
	}
	return found
}
