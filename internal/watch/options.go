package watch

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// Options say which Clusters are to be adopted, and how.
type Options struct {
	// Cluster is the management cluster on which Clusters arrive.
	Cluster *management.Cluster
	// Namespace to look at; empty for all.
	Namespace string
	// Names are the Clusters that the user asked for; they are waited for also
	// while they do not exist. Empty: every Cluster that carries a sign of a pivot.
	Names []types.NamespacedName
	// Shard is this run's share of the Clusters; the zero value is all of them. A run to
	// which none of a pivot falls ends when the others have adopted theirs.
	Shard Shard
	// AdoptUnmarked takes Clusters without any sign of a pivot too.
	AdoptUnmarked bool
	Policy        adopt.Policy
	// Records come from a file; they stand in where the namespace holds no record.
	Records []graph.Snapshot
	// Other looks at the same Cluster on the other side; nil means that nobody can.
	Other func(ctx context.Context, cluster graph.ID) adopt.OtherSide
	// Timeout ends the run as deferred; zero waits for ever.
	Timeout time.Duration
	// Explain keeps every check of a Cluster with what was compared.
	Explain bool
	// DryRun asks the server to judge every write of one pass and stores nothing.
	DryRun bool
	// Watch keeps running after all Clusters ended, until the context does.
	Watch bool
	// Holder is our identity in Leases; empty means Identity().
	Holder string
	// Workers is how many Clusters may be worked on at the same time; 4 when zero.
	Workers  int
	Progress flow.Progress
}

// Result is how the run ended.
type Result struct {
	// Outcome is Done, Deferred or Blocked.
	Outcome flow.Outcome `json:"outcome"`
	// Namespace that was looked at; empty for all.
	Namespace string          `json:"namespace,omitempty"`
	DryRun    bool            `json:"dryRun,omitempty"`
	Clusters  []ClusterResult `json:"clusters"`
	// Writes to what belongs to no Cluster: the providers' Deployments.
	Writes []flow.Write `json:"writes,omitempty"`
	// Unlisted are the kinds that could not be watched: of them nothing is known.
	Unlisted []Unlisted `json:"unlisted,omitempty"`
	// Message is about the whole run, for example that nothing was in scope.
	Message string  `json:"message,omitempty"`
	Seconds float64 `json:"seconds"`
}

// ClusterResult is how the run ended for one Cluster.
type ClusterResult struct {
	Cluster  graph.ID          `json:"cluster"`
	Phase    adopt.Phase       `json:"phase"`
	Waiting  []adopt.Missing   `json:"waiting,omitempty"`
	Refusals []finding.Finding `json:"refusals,omitempty"`
	Notes    []finding.Finding `json:"notes,omitempty"`
	// Checks are all that was asked before the Cluster was adopted, with Options.Explain.
	Checks []adopt.Check `json:"checks,omitempty"`
	// Writes in the order in which they were made.
	Writes []flow.Write `json:"writes"`
	// Error is the last error, if the run ended before a pass succeeded again.
	Error string `json:"error,omitempty"`
	// Seconds from the first look at the Cluster to the last change of its phase.
	Seconds float64 `json:"seconds"`
	// PhaseSeconds is how long the Cluster stayed in each phase.
	PhaseSeconds map[adopt.Phase]float64 `json:"phaseSeconds,omitempty"`
}

// Unlisted is a kind that could not be watched, and the server's words.
type Unlisted struct {
	Kind graph.GroupKind `json:"kind"`
	// Namespace is empty for a watch over all of them.
	Namespace string `json:"namespace,omitempty"`
	Why       string `json:"why"`
}
