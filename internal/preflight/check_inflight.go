package preflight

import (
	"fmt"
	"slices"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

const inFlightID = "InFlight"

// checkInFlight finds what was begun and is not finished. pre waits for those that it
// can wait for; whoever moves by other means should wait himself. Machines that are
// joining or leaving are MachineWithoutNode's and BeingDeleted's.
func checkInFlight(s *Scope) []finding.Finding {
	var found []finding.Finding
	told := map[graph.ID]bool{}
	for _, f := range Flying(s) {
		if o, ok := s.Graph.Object(f.Object); ok && unfinished(o) == f.What {
			continue
		}
		told[f.Object] = true
		found = append(found, inFlight(f.Object, f.What))
	}
	for _, o := range s.All() {
		if told[o.ID] || !s.Moves[o.ID].In {
			continue
		}
		if what := unsettled(o); what != "" {
			found = append(found, inFlight(o.ID, what))
		} else if hooks := o.Annotations[hooksAnnotation]; hooks != "" && o.GroupKind() != graph.Machine {
			found = append(found, inFlight(o.ID, "still has to call the runtime hooks "+hooks))
		}
	}
	return found
}

// NotAwaited leaves out what pre waits for anyway.
func NotAwaited(s *Scope, fs []finding.Finding) []finding.Finding {
	awaited := map[string]bool{}
	for _, f := range Flying(s) {
		awaited[f.Object.String()] = true
	}
	return slices.DeleteFunc(fs, func(f finding.Finding) bool { return f.ID == inFlightID && awaited[f.Object] })
}

func inFlight(id graph.ID, what string) finding.Finding {
	return finding.Finding{
		ID: inFlightID, Severity: finding.Harms, Object: id.String(), Message: what,
		Remedy: "wait until it has ended; `move-hook pre` waits for what makes or deletes Machines",
	}
}

// unsettled compares what a scaler has observed with what it wants. Without a status
// it has observed nothing yet.
func unsettled(o *graph.Object) string {
	want := o.Facts.Replicas
	switch {
	case want == nil || o.GroupKind() == graph.MachineSet:
		return ""
	case o.Facts.ObservedReplicas != nil && *o.Facts.ObservedReplicas != *want:
		return fmt.Sprintf("is scaling: has %d replicas and wants %d", *o.Facts.ObservedReplicas, *want)
	case o.Facts.UpToDateReplicas != nil && *o.Facts.UpToDateReplicas < *want:
		return fmt.Sprintf("is rolling out: %d of %d replicas are up to date", *o.Facts.UpToDateReplicas, *want)
	}
	return ""
}
