package pivot

import (
	"fmt"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// undo is what a rollback has to do, by Cluster.
type undo struct {
	// release: nothing has left the source, our marks go; restore: the source is made
	// whole from the target's copies, which go; nothing: there is no pivot to undo.
	release, restore, nothing []graph.ID
	// refused says why a Cluster cannot be given back. Nothing is then undone.
	refused []finding.Finding
	records map[graph.ID]graph.Snapshot
}

// planRollback says what there is to undo for every state.
func planRollback(clusters []ClusterStatus) undo {
	u := undo{records: map[graph.ID]graph.Snapshot{}}
	for i := range clusters {
		c := &clusters[i]
		if c.snapshot != nil {
			u.records[c.Cluster] = *c.snapshot
		}
		switch c.State {
		case Absent:
			u.nothing = append(u.nothing, c.Cluster)
		case Untouched:
			if c.Source.any() && c.madeHere() {
				// A rollback was killed after it had given everything back.
				u.release = append(u.release, c.Cluster)
			} else {
				u.nothing = append(u.nothing, c.Cluster)
			}
		case Prepared:
			u.release = append(u.release, c.Cluster)
		case Creating, Deleting, Arrived, Adopting:
			if f, refused := c.irreversible(); refused {
				u.refused = append(u.refused, f)
			} else {
				u.restore = append(u.restore, c.Cluster)
			}
		case Verified, Split:
			f, _ := c.irreversible()
			u.refused = append(u.refused, f)
		}
	}
	return u
}

// madeHere: the closed record beside a Cluster knows objects by the UIDs that they
// have on the source, so it was written there and is of no earlier pivot.
func (c *ClusterStatus) madeHere() bool {
	return c.Record.closed() && c.Record.on("source") && c.sameCopies > 0
}

// irreversible says why the source cannot be given back what it had.
func (c *ClusterStatus) irreversible() (finding.Finding, bool) {
	f := finding.Finding{Severity: finding.Stops, Object: c.Cluster.String()}
	switch {
	case c.State == Split:
		f.ID, f.Message = "LiveOnBothSides", "is reconciled on both sides, so nobody can say whose state is the right one"
		f.Remedy = "pause the copy that is to go: kubectl -n " + c.Cluster.Namespace + " patch cluster " + c.Cluster.Name + ` --type=merge -p '{"spec":{"paused":true}}'`
	case c.State == Verified, c.Record.closed(), c.Target != nil && c.Target.Released:
		f.ID, f.Message = "AdoptionFinished", "was adopted and its controllers run on the target: what they have done since, no record knows"
		f.Remedy = "move it back: move-hook move -n " + c.Cluster.Namespace + " with source and target exchanged"
	case !c.Record.usable() || c.snapshot == nil:
		f.ID, f.Message = "RecordUnusable", "has no record that can be used, so nobody can say what the source had"
		f.Remedy = "give the record with --record FILE"
	case c.State == Deleting && c.Source.live():
		f.ID = "LiveWhileDeleting"
		f.Message = fmt.Sprintf("is reconciled on the source although %d of its objects are gone from there", c.Source.Missing)
		f.Remedy = "pause it on the source: kubectl -n " + c.Cluster.Namespace + " patch cluster " + c.Cluster.Name + ` --type=merge -p '{"spec":{"paused":true}}'`
	default:
		return finding.Finding{}, false
	}
	return f, true
}
