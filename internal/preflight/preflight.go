package preflight

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// Input is all that the checks know.
type Input struct {
	// SourceName is how messages call the source.
	SourceName string
	// Namespace and Names are what was asked for; empty for all namespaces, all Clusters.
	Namespace string
	Names     []types.NamespacedName
	// Source is never nil.
	Source *Scope
	// Target is nil where no target was given.
	Target *TargetFacts
	// Missing are the rights that this user does not have, on both sides.
	Missing []Right
	// Rollouts is what upstream says of the Machines of each control plane; a Cluster
	// that is not in it was not asked about.
	Rollouts map[graph.ID]Rollout
	// Others are Clusters of other namespaces, which stay.
	Others []graph.Object
	// BlockedBy is who set clusterctl's block-move annotation, where that is known.
	BlockedBy map[graph.ID]string
	// Now is when the source was read.
	Now time.Time
}

// Rollout is what upstream says of one Cluster's control-plane Machines.
type Rollout struct {
	Verdicts map[graph.ID]adopt.Rollout
	// Unknown is why nobody can say; Verdicts are then empty.
	Unknown string
	// ProviderVersion is what is installed, as clusterctl's inventory has it.
	ProviderVersion string
}

// check looks for one kind of fault. Each has a file of its own, and its findings'
// IDs are documented in docs/pivot.md.
type check func(Input) []finding.Finding

// checks are all there are. Those of the target have nothing to say without one.
func checks() []check {
	return slices.Concat(scopeChecks(), sourceChecks(), targetChecks(), []check{checkPermissions})
}

// scopeChecks say whether what was asked for is there and was seen.
func scopeChecks() []check {
	return []check{checkScope, checkNames, checkUnreadable}
}

func sourceChecks() []check {
	return []check{
		onSource(checkPaused),
		onSource(checkProvisioned),
		onSource(checkNodes),
		onSource(checkDeleting),
		onSource(checkUnseenOwner),
		onSource(checkOptedOut),
		onSource(checkLeftBehind),
		onSource(checkOwners),
		onSource(checkInFlight),
		checkBlockMove,
		onSource(checkProviderID),
		onSource(checkEndpoint),
		checkForgotten,
		onSource(checkSelectors),
		checkShared,
		checkRollouts,
	}
}

func onSource(c func(*Scope) []finding.Finding) check {
	return func(in Input) []finding.Finding { return c(in.Source) }
}

// Run gives the findings of every check, worst first.
func Run(in Input) []finding.Finding {
	all := []finding.Finding{}
	for _, c := range checks() {
		all = append(all, c(in)...)
	}
	finding.Sort(all)
	return slices.Compact(all)
}

// Stops says that one of the findings stops the move.
func Stops(fs []finding.Finding) bool { return AtLeast(fs, finding.Stops) }

// AtLeast says that one of the findings is as severe as this or worse.
func AtLeast(fs []finding.Finding, s finding.Severity) bool {
	severities := Severities()
	return slices.ContainsFunc(fs, func(f finding.Finding) bool {
		return slices.Index(severities, f.Severity) <= slices.Index(severities, s)
	})
}

// Severities are all there are, worst first.
func Severities() []finding.Severity {
	return []finding.Severity{finding.Stops, finding.Harms, finding.Notes}
}
