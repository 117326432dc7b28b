package pivot

import (
	"slices"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
)

// IDs documents the findings of Move, Verify and Rollback that neither adopt.IDs nor
// preflight.IDs have, sorted by ID.
func IDs() []adopt.Entry { return slices.Clone(entries()) }

func entries() []adopt.Entry {
	return []adopt.Entry{
		{ID: "AdoptionFinished", Severity: finding.Stops, Cause: "Adoption on the target has finished and its controllers run: a rollback could not give back what they have done since.",
			Remedy: "move the Clusters back, with source and target exchanged"},
		{ID: "LeftOnSource", Severity: finding.Harms, Cause: "An object of the record is still on the source after the move.",
			Remedy: "see `move-hook status`"},
		{ID: "LiveOnBothSides", Severity: finding.Stops, Cause: "Both copies of a Cluster are reconciled.",
			Remedy: "pause the copy that is to go"},
		{ID: "LiveWhileDeleting", Severity: finding.Stops, Cause: "The source's copy is reconciled although deletion from the source has begun.",
			Remedy: "pause it on the source"},
		{ID: "LostObject", Severity: finding.Stops, Cause: "An object of the record is neither on the source nor on the target, so an interrupted pivot can be neither finished nor undone.",
			Remedy: "create it by hand or bring it back from a backup"},
		{ID: "MachineOnlyOnTarget", Severity: finding.Stops, Cause: "A Machine was made on the target after the move; a rollback would leave it without anybody who knows it.",
			Remedy: "delete it on the target while its controllers run, or finish the pivot"},
		{ID: "NotMoved", Severity: finding.Stops, Cause: "clusterctl ended without an error, and a Cluster has not arrived or not left.",
			Remedy: "see `move-hook status`"},
		{ID: "RecordUnusable", Severity: finding.Harms, Cause: "A Cluster's record is not complete or cannot be read.",
			Remedy: "give the record with --record FILE"},
	}
}
