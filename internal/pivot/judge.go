package pivot

import (
	"fmt"
	"strings"

	"github.com/move-hook/move-hook/pkg/graph"
)

// facts is everything that a status follows from. Nothing else is looked at.
type facts struct {
	cluster graph.ID
	// source and target are nil where that side was not given.
	source, target *CopyStatus
	record         *RecordStatus
}

// verdict is what the facts amount to.
type verdict struct {
	state  State
	detail string
	next   string
}

// judge is total: every combination of facts has one state. The order of the
// cases is the order of how much is at stake.
func judge(f facts) verdict {
	onSource, onTarget := f.source.any(), f.target.any()
	switch {
	case onSource && onTarget:
		return judgeBoth(f)
	case onSource:
		return judgeSource(f)
	case onTarget:
		return judgeTarget(f)
	default:
		return verdict{Absent, "nothing of it is on " + f.sides(), ""}
	}
}

// judgeBoth: a move stopped in the middle, or two live copies.
func judgeBoth(f facts) verdict {
	s, t := f.source, f.target
	switch {
	case s.live() && t.live():
		return verdict{Split, "both copies are reconciled: the source and the target act on the same machines",
			pauseCommand("SOURCE", f.cluster)}
	case s.live() && (s.Missing > 0 || s.Leaving > 0 || s.Deleting > 0):
		return verdict{Deleting, fmt.Sprintf("%d objects are gone from the source or going, and it is reconciled: its control plane may make new Machines", s.Missing+s.Leaving+s.Deleting),
			pauseCommand("SOURCE", f.cluster)}
	case s.Missing > 0 && t.Missing > 0:
		return verdict{Deleting, fmt.Sprintf("%d objects are gone from the source and %d are missing on the target: do not delete anything more", s.Missing, t.Missing), f.command("resume")}
	case s.Missing > 0 || s.Leaving > 0 || s.Deleting > 0:
		return verdict{Deleting, fmt.Sprintf("the target is whole, %d objects are still on the source, and what reconciles is %s", s.Objects, f.who()), f.command("resume")}
	case t.Missing > 0:
		return verdict{Creating, fmt.Sprintf("the source is whole, %d objects are missing on the target, and what reconciles is %s", t.Missing, f.who()), f.retry()}
	default:
		return verdict{Creating, fmt.Sprintf("both copies are whole, nothing was deleted from the source yet, and what reconciles is %s", f.who()), f.retry()}
	}
}

// judgeSource: nothing has arrived (as far as anybody could look).
func judgeSource(f facts) verdict {
	s := f.source
	switch {
	case s.Missing > 0 && s.live():
		return verdict{Prepared, fmt.Sprintf("the record does not fit any more: %d of its objects are gone", s.Missing), f.command("pre")}
	case s.Missing > 0:
		return verdict{Deleting, fmt.Sprintf("%d objects of the record are gone from the source and nothing of it is on %s", s.Missing, f.other("target")), f.command("rollback")}
	case s.Leaving > 0 || s.Deleting > 0:
		return verdict{Deleting, fmt.Sprintf("%d objects are being deleted on the source and nothing of it is on %s", s.Leaving+s.Deleting, f.other("target")), f.command("rollback")}
	case s.Paused == PausedSpec && s.marked():
		return verdict{Creating, "the source is paused and nothing has arrived: clusterctl stopped before it created anything", f.retry()}
	case !s.marked() && f.record.closed():
		return verdict{Untouched, "it came here by an earlier pivot that is finished", f.command("move")}
	case !s.marked() && !f.record.on("source"):
		return verdict{Untouched, "no sign of a pivot", f.command("move")}
	case len(s.Pending) > 0 && s.Announced && f.record.usable():
		return verdict{Prepared, fmt.Sprintf("recorded (%d objects), %d scalers held, %d objects labelled", f.record.Objects, len(s.Held), len(s.Pending)), f.command("move")}
	default:
		return verdict{Prepared, "`move-hook pre` has begun and not finished: " + f.lacks(), f.command("pre")}
	}
}

// judgeTarget: the source is empty, or was not given.
func judgeTarget(f facts) verdict {
	t := f.target
	switch {
	case !t.marked() && f.record.closed():
		return verdict{Verified, "adopted; nothing of the pivot is left on its objects", ""}
	case !t.marked() && f.record == nil:
		return verdict{Untouched, "no sign of a pivot", ""}
	case f.record.closed():
		return verdict{Adopting, fmt.Sprintf("the record is closed but %d holds and %d labels are left", len(t.Held), len(t.Pending)), f.command("post")}
	case t.Missing > 0:
		return verdict{Arrived, fmt.Sprintf("%d objects of the record are missing", t.Missing), f.command("post")}
	case t.Released || f.record != nil && len(t.Pending) == 0:
		return verdict{Adopting, "`move-hook post` has begun and not finished", f.command("post")}
	case t.Paused == PausedSpec && f.source != nil:
		return verdict{Arrived, "the source is empty, but clusterctl has not unpaused the target", f.command("resume")}
	case t.Paused == PausedSpec:
		return verdict{Arrived, "the target is paused: clusterctl may still be deleting on the source", f.command("status") + " with the source given"}
	default:
		return verdict{Arrived, fmt.Sprintf("%d objects are here and adoption has not begun", t.Objects), f.command("post")}
	}
}

// any: something of the Cluster is there.
func (c *CopyStatus) any() bool { return c != nil && (c.Exists || c.Objects > 0) }

// live: controllers act on this copy.
func (c *CopyStatus) live() bool { return c != nil && c.Exists && c.Paused == "" }

// marked: something of a pivot is on the objects.
func (c *CopyStatus) marked() bool {
	return c != nil && (len(c.Held) > 0 || len(c.Pending) > 0 || c.Announced || c.Released)
}

func (r *RecordStatus) closed() bool { return r != nil && r.Closed }
func (r *RecordStatus) usable() bool { return r != nil && !r.Closed && r.Partial == "" }

// command is the move-hook command for this Cluster.
func (f facts) command(verb string) string {
	words := []string{"move-hook", verb, "-n", f.cluster.Namespace}
	if verb != "move" && verb != "resume" && verb != "rollback" {
		// clusterctl moves whole namespaces, so these take no names.
		words = append(words, f.cluster.Name)
	}
	return strings.Join(words, " ")
}

// retry is the way on while nothing was deleted from the source.
func (f facts) retry() string {
	if f.source.live() {
		return f.command("move")
	}
	return f.command("resume")
}

func pauseCommand(context string, cluster graph.ID) string {
	return "kubectl --context " + context + " -n " + cluster.Namespace + " patch cluster " + cluster.Name +
		` --type=merge -p '{"spec":{"paused":true}}'`
}

func (f facts) who() string {
	switch {
	case f.source.live():
		return "the source"
	case f.target.live():
		return "the target"
	default:
		return "neither"
	}
}

func (f facts) sides() string {
	switch {
	case f.source != nil && f.target != nil:
		return "the source or the target"
	case f.source != nil:
		return "the source"
	default:
		return "the target"
	}
}

// other names the side that has nothing, or that nobody looked at.
func (f facts) other(side string) string {
	if side == "target" && f.target == nil || side == "source" && f.source == nil {
		return "the " + side + " (which was not given)"
	}
	return "the " + side
}

// lacks says what a begun `pre` has not done.
func (f facts) lacks() string {
	var lacking []string
	switch {
	case f.record == nil:
		lacking = append(lacking, "no record")
	case f.record.Partial != "":
		lacking = append(lacking, f.record.Partial)
	case f.record.Closed:
		lacking = append(lacking, "the record is of an earlier pivot")
	}
	if !f.source.Announced {
		lacking = append(lacking, "the Cluster does not name its record")
	}
	if len(f.source.Pending) == 0 {
		lacking = append(lacking, "no adoption label")
	}
	return strings.Join(lacking, ", ")
}
