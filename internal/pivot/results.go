package pivot

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/move-hook/move-hook/internal/job"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/watch"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// PreResult is how Pre ended.
type PreResult struct {
	// Outcome is Done, Findings (something stops the pivot) or Deferred (something
	// was in flight until the time-out).
	Outcome   flow.Outcome `json:"outcome"`
	Namespace string       `json:"namespace,omitempty"`
	DryRun    bool         `json:"dryRun,omitempty"`
	// Clusters that are prepared; empty when findings stopped the flow.
	Clusters []PreparedCluster `json:"clusters"`
	// Findings of the checks, worst first; Ignored counts by ID those that were accepted.
	Findings []finding.Finding `json:"findings,omitempty"`
	Ignored  map[string]int    `json:"ignored,omitempty"`
	// Waiting is what was still in flight when the time was over.
	Waiting []adopt.Missing `json:"waiting,omitempty"`
	// Writes in the order in which they were made; empty on a prepared source.
	Writes []flow.Write `json:"writes"`
	// RecordFile is where the records were written to as well.
	RecordFile string  `json:"recordFile,omitempty"`
	Message    string  `json:"message,omitempty"`
	Seconds    float64 `json:"seconds"`
}

// PreflightResult is what would go wrong.
type PreflightResult struct {
	// Outcome is Done, or Findings where one is severe enough.
	Outcome   flow.Outcome `json:"outcome"`
	Namespace string       `json:"namespace,omitempty"`
	// Clusters that were checked.
	Clusters []graph.ID `json:"clusters"`
	// Findings, worst first. Never null.
	Findings []finding.Finding `json:"findings"`
	// Ignored counts by ID the findings that the user accepted.
	Ignored map[string]int `json:"ignored,omitempty"`
	Seconds float64        `json:"seconds"`
}

// PreparedCluster is a Cluster that is ready to be moved.
type PreparedCluster struct {
	Cluster graph.ID `json:"cluster"`
	// Objects in the record.
	Objects  int    `json:"objects"`
	Checksum string `json:"checksum"`
	// ConfigMaps that hold the record, in the Cluster's namespace.
	ConfigMaps []string `json:"configMaps"`
	// Held are the scalers that carry our hold.
	Held []graph.ID `json:"held"`
	// Pending carry the adoption label.
	Pending []graph.ID `json:"pending"`
}

// PrefillResult is how Prefill ended.
type PrefillResult struct {
	// Outcome is Done, or Findings (a Machine would be replaced, the control plane
	// contradicts its Machines, or nothing could be worked out).
	Outcome      flow.Outcome `json:"outcome"`
	Cluster      graph.ID     `json:"cluster"`
	ControlPlane graph.ID     `json:"controlPlane,omitzero"`
	// Machines is how many are adopted.
	Machines int `json:"machines"`
	// NoRollout: upstream's own comparison, of Cluster API JudgedBy, would replace none of them.
	NoRollout bool   `json:"noRollout"`
	JudgedBy  string `json:"judgedBy,omitempty"`
	// Objects to apply, where nothing is written: the template, if there is none yet,
	// and the control plane.
	Objects []*unstructured.Unstructured `json:"objects,omitempty"`
	// Next are the commands that follow.
	Next     []string          `json:"next,omitempty"`
	Findings []finding.Finding `json:"findings,omitempty"`
	// Applied: writing was asked for. Writes are in the order in which they were made.
	Applied bool         `json:"applied,omitempty"`
	DryRun  bool         `json:"dryRun,omitempty"`
	Writes  []flow.Write `json:"writes"`
	Message string       `json:"message,omitempty"`
	Seconds float64      `json:"seconds"`
}

// MoveResult is how Move ended.
type MoveResult struct {
	Outcome flow.Outcome `json:"outcome"`
	// Message says in a sentence what happened.
	Message string `json:"message,omitempty"`
	// AlreadyDone: the pivot was finished before this run, which did nothing.
	AlreadyDone bool `json:"alreadyDone,omitempty"`
	// Clusterctl names the clusterctl that was used, and CommandLine what it ran.
	Clusterctl  string `json:"clusterctl,omitempty"`
	CommandLine string `json:"commandLine,omitempty"`
	// Pre, Post and Verify are nil where the flow did not get there.
	Pre    *PreResult    `json:"pre,omitempty"`
	Post   *watch.Result `json:"post,omitempty"`
	Verify *VerifyResult `json:"verify,omitempty"`
	// Job is how post ended where it ran as a Job on the target; Post is nil then.
	Job *job.Result `json:"job,omitempty"`
	// Policies are the writes that took the guard off both sides.
	Policies []flow.Write `json:"policies,omitempty"`
	// Writes are those that went on where an earlier run was interrupted.
	Writes []flow.Write `json:"writes,omitempty"`
	// Findings about the move itself, for example objects left on the source.
	Findings []finding.Finding `json:"findings,omitempty"`
	Seconds  float64           `json:"seconds"`
}

// VerifyResult is the judgement of Verify.
type VerifyResult struct {
	// Outcome is Done or Findings.
	Outcome   flow.Outcome      `json:"outcome"`
	Namespace string            `json:"namespace,omitempty"`
	Clusters  []VerifiedCluster `json:"clusters"`
	Message   string            `json:"message,omitempty"`
	Seconds   float64           `json:"seconds"`
}

// Findings are those of all Clusters, worst first.
func (r VerifyResult) Findings() []finding.Finding {
	var all []finding.Finding
	for _, c := range r.Clusters {
		all = append(all, c.Findings...)
	}
	finding.Sort(all)
	return all
}

// Against names what a target was compared with.
type Against string

// What a target can be compared with.
const (
	AgainstRecord     Against = "record"
	AgainstRecordFile Against = "record file"
	AgainstDirectory  Against = "directory"
	AgainstSource     Against = "source"
	// AgainstRules: there was nothing to compare with, so Cluster API's owner rules were used.
	AgainstRules Against = "rules"
)

// VerifiedCluster is the judgement about one Cluster.
type VerifiedCluster struct {
	Cluster graph.ID `json:"cluster"`
	Against Against  `json:"against"`
	// Objects that were compared.
	Objects  int               `json:"objects"`
	Findings []finding.Finding `json:"findings"`
}

// StatusResult says where every Cluster stands.
type StatusResult struct {
	// Outcome is Done, or Blocked if a Cluster is reconciled on both sides.
	Outcome   flow.Outcome    `json:"outcome"`
	Namespace string          `json:"namespace,omitempty"`
	Clusters  []ClusterStatus `json:"clusters"`
	// Policies are what the sides are armed and guarded with.
	Policies []PolicyStatus `json:"policies,omitempty"`
	Message  string         `json:"message,omitempty"`
}

// State is where the pivot of one Cluster stands, computed from what is there.
type State string

// The states, in the order of a pivot.
const (
	// Untouched: on one side only and without a sign of a pivot.
	Untouched State = "untouched"
	// Prepared: `pre` is done and nothing has moved.
	Prepared State = "prepared"
	// Creating: clusterctl was creating on the target; the source is whole and paused.
	Creating State = "creating"
	// Deleting: clusterctl was deleting on the source; the target is whole.
	Deleting State = "deleting"
	// Arrived: the target is whole, the source is empty, adoption has not begun.
	Arrived State = "arrived"
	// Adopting: `post` has begun and not finished.
	Adopting State = "adopting"
	// Verified: the record is closed and nothing of ours is left on the objects.
	Verified State = "verified"
	// Split: both sides reconcile the Cluster.
	Split State = "split"
	// Absent: on neither side.
	Absent State = "absent"
)

// States lists all states in the order of a pivot.
func States() []State {
	return []State{Untouched, Prepared, Creating, Deleting, Arrived, Adopting, Verified, Split, Absent}
}

// ClusterStatus is where one Cluster stands.
type ClusterStatus struct {
	Cluster graph.ID `json:"cluster"`
	State   State    `json:"state"`
	// Detail says in one sentence what makes it so.
	Detail string `json:"detail"`
	// Next is the command to run next; empty where there is nothing to do.
	Next string `json:"next,omitempty"`
	// Source and Target are nil where that side was not given.
	Source *CopyStatus `json:"source,omitempty"`
	Target *CopyStatus `json:"target,omitempty"`
	// Record is nil where none was found.
	Record *RecordStatus `json:"record,omitempty"`

	// snapshot is the record itself, open or closed, if it can be used.
	snapshot *graph.Snapshot
	// sameCopies and otherCopies count the source's objects that are the copies which
	// the record saw, by UID, and those that are not.
	sameCopies, otherCopies int
}

// CopyStatus is one side's copy of a Cluster.
type CopyStatus struct {
	// Exists: the Cluster object itself is there.
	Exists bool `json:"exists"`
	// Paused is one of the Paused constants, or empty.
	Paused string `json:"paused,omitempty"`
	// Announced: the Cluster names a record; Released: post has released its scalers.
	Announced bool `json:"announced,omitempty"`
	Released  bool `json:"released,omitempty"`
	// Objects that belong to it, and how many of the record are missing.
	Objects  int `json:"objects"`
	Missing  int `json:"missing,omitempty"`
	Machines int `json:"machines"`
	// Held and Pending carry our hold and the adoption label.
	Held    []graph.ID `json:"held,omitempty"`
	Pending []graph.ID `json:"pending,omitempty"`
	// Deleting counts objects that are being deleted, Leaving those that clusterctl
	// has marked for deletion after a move.
	Deleting int `json:"deleting,omitempty"`
	Leaving  int `json:"leaving,omitempty"`
}

// What a Cluster can be paused by.
const (
	PausedSpec       = "spec.paused"
	PausedAnnotation = "annotation"
	PausedHold       = "hold"
)

// RecordStatus is what is known of a Cluster's record.
type RecordStatus struct {
	// On says where it was found: "source", "target", "file".
	On       []string `json:"on"`
	Checksum string   `json:"checksum,omitempty"`
	Objects  int      `json:"objects"`
	Closed   bool     `json:"closed,omitempty"`
	// Partial says why it cannot be used yet.
	Partial string `json:"partial,omitempty"`
}

func (r *RecordStatus) on(side string) bool { return r != nil && slices.Contains(r.On, side) }
