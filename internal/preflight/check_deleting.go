package preflight

import (
	"github.com/move-hook/move-hook/pkg/finding"
)

// checkDeleting finds objects that are on their way out: clusterctl would create
// them anew on the target.
func checkDeleting(s *Scope) []finding.Finding {
	var found []finding.Finding
	for _, o := range s.All() {
		if !o.Deleting || !s.Moves[o.ID].In {
			continue
		}
		found = append(found, finding.Finding{
			ID: "BeingDeleted", Severity: finding.Stops, Object: o.String(),
			Field: "metadata.deletionTimestamp", Have: "set", Want: "not set",
			Message: "is being deleted, and moving it would bring it back",
			Remedy:  "wait until it is gone, then run the command again",
		})
	}
	return found
}
