package adopt

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// The constructors below are the only places that make a Plan. None of those for
// a state in which nothing may be written takes steps (P1 by construction).

func deferred(c graph.ID, waiting []Missing, again time.Time) Plan {
	return Plan{Cluster: c, Phase: Deferred, Waiting: sortMissing(waiting), Again: again}
}

func refused(c graph.ID, refusals, notes []finding.Finding) Plan {
	return Plan{Cluster: c, Phase: Blocked, Refusals: sortFindings(refusals), Notes: sortFindings(notes)}
}

func adopted(c graph.ID, notes ...finding.Finding) Plan {
	return Plan{Cluster: c, Phase: Adopted, Notes: sortFindings(notes)}
}

func awaiting(c graph.ID, waiting []Missing, notes []finding.Finding) Plan {
	return Plan{Cluster: c, Phase: AwaitingStatus, Waiting: sortMissing(waiting), Notes: sortFindings(notes)}
}

func watching(c graph.ID, until time.Time, waiting []Missing, notes []finding.Finding) Plan {
	return Plan{Cluster: c, Phase: Watching, Waiting: sortMissing(waiting), Again: until, Notes: sortFindings(notes)}
}

// repairing, releasing and closing are the plans that write. Empty steps are left out.
func repairing(c graph.ID, steps []Step, notes []finding.Finding) Plan {
	return Plan{Cluster: c, Phase: Adopting, steps: tidy(steps), Notes: sortFindings(notes)}
}

func releasing(c graph.ID, steps []Step, notes []finding.Finding) Plan {
	return Plan{Cluster: c, Phase: Releasing, steps: tidy(steps), Notes: sortFindings(notes)}
}

func closing(c graph.ID, steps []Step, notes []finding.Finding) Plan {
	return Plan{Cluster: c, Phase: Watching, steps: tidy(steps), Notes: sortFindings(notes)}
}

func tidy(steps []Step) []Step {
	return slices.DeleteFunc(steps, func(s Step) bool { return len(s) == 0 })
}

func sortFindings(fs []finding.Finding) []finding.Finding {
	finding.Sort(fs)
	return slices.Compact(fs)
}

func sortMissing(ms []Missing) []Missing {
	slices.SortStableFunc(ms, func(a, b Missing) int {
		if c := a.Object.Compare(b.Object); c != 0 {
			return c
		}
		return strings.Compare(a.What, b.What)
	})
	return slices.CompactFunc(ms, func(a, b Missing) bool { return a.Object == b.Object && a.What == b.What })
}

// Steps are the writes in their order: a step starts only after all of the step
// before has ended. None when deferred, blocked, adopted or awaiting-status.
func (p Plan) Steps() iter.Seq[Step] { return slices.Values(p.steps) }

// Writes is the number of actions in all steps. After a plan with writes, whatever
// came of them, the world has to be observed again.
func (p Plan) Writes() int {
	n := 0
	for _, s := range p.steps {
		n += len(s)
	}
	return n
}

// Closes says that the plan ends the adoption: when its steps are done, the
// Cluster is adopted. Its Notes are the last to say how the watch went.
func (p Plan) Closes() bool { return p.Phase == Watching && len(p.steps) > 0 }

// Owners are the copies that the plan writes into owner references, sorted: what
// World.Confirm looks at.
func (p Plan) Owners() []Target {
	var out []Target
	for _, step := range p.steps {
		for _, a := range step {
			if s, ok := a.(SetOwners); ok {
				out = append(out, s.owners...)
			}
		}
	}
	slices.SortFunc(out, func(a, b Target) int { return a.ID.Compare(b.ID) })
	return slices.CompactFunc(out, func(a, b Target) bool { return a.ID == b.ID && a.UID == b.UID })
}

// String is the plan as scenarios and --dry-run show it: the phase, then one
// indented line for each step's action, awaited thing, refusal and note.
func (p Plan) String() string {
	var b strings.Builder
	b.WriteString(string(p.Phase))
	for i, s := range p.steps {
		for _, a := range s {
			fmt.Fprintf(&b, "\n  step %d: %s", i+1, a)
		}
	}
	for _, m := range p.Waiting {
		fmt.Fprintf(&b, "\n  waits: %s", m)
	}
	if !p.Again.IsZero() {
		fmt.Fprintf(&b, "\n  again: %s", p.Again.UTC().Format(time.RFC3339))
	}
	for _, f := range p.Refusals {
		fmt.Fprintf(&b, "\n  refused: %s", f)
	}
	for _, f := range p.Notes {
		fmt.Fprintf(&b, "\n  note: %s", f)
	}
	return b.String()
}
