package adopt

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// State is everything a decision reads about one Cluster. It is built once a
// pass and never changed.
type State struct {
	// Now is the time of the observation; the only clock there is.
	Now     time.Time
	Cluster graph.ID
	// Graph holds at least every object that belongs to the Cluster. What it does
	// not say was Listed is Unknown, never absent.
	Graph *graph.Graph
	// Record is the ownership graph of the source; zero Expectation without one.
	Record Expectation
	// Named: the user asked for this Cluster by name (or for all with --adopt-unmarked).
	Named bool
	// Other is what is known of the same Cluster on the other side.
	Other OtherSide
	// Rollout is upstream's verdict per control-plane Machine; a missing key was not asked.
	Rollout map[graph.ID]Rollout
	// RolloutUnknown is why upstream could not be asked; empty where it could, or was not.
	RolloutUnknown string
	// ProviderVersion is the version of the KubeadmControlPlane provider that will act;
	// empty where nobody knows.
	ProviderVersion string
	// ControllersDown: the providers' Deployments are scaled to zero by move-hook.
	ControllersDown bool
	Policy          Policy
}

// Expectation is the record as far as it could be read.
type Expectation struct {
	// Snapshot is nil without a (complete) record: completeness is then inferred.
	Snapshot *graph.Snapshot
	// Objects are the record's own ConfigMaps, closed together.
	Objects []Target
	// Closed: the record says that adoption finished.
	Closed bool
	// Partial names what of a record is there but cannot be used yet: parts that
	// are missing, a checksum that does not match. Never treated as "no record".
	Partial []Missing
}

// OtherSide is the state of the Cluster's copy on the other management cluster.
type OtherSide string

const (
	// OtherUnknown: nobody could look. Not a refusal by itself in post.
	OtherUnknown  OtherSide = "unknown"
	OtherAbsent   OtherSide = "absent"
	OtherPaused   OtherSide = "paused"
	OtherUnpaused OtherSide = "unpaused"
)

// Rollout is upstream's UpToDate verdict about one control-plane Machine.
type Rollout struct {
	UpToDate bool `json:"upToDate"`
	// Reasons are why it is not, one a field.
	Reasons []RolloutReason `json:"reasons,omitempty"`
	// Diff is upstream's own comparison of the normalised KubeadmConfigs, where they
	// differ: lines of go-cmp, the Machine's with a minus and the control plane's with a plus.
	Diff string `json:"diff,omitempty"`
	// Version is the Cluster API version the verdict answers for.
	Version string `json:"version"`
}

// RolloutReason is one difference between a Machine and what its control plane
// would make in its place.
type RolloutReason struct {
	// Field is the path in the control plane's object, empty where upstream named none.
	Field string `json:"field,omitempty"`
	// Have is the Machine's value, Want the control plane's.
	Have string `json:"have,omitempty"`
	Want string `json:"want,omitempty"`
	// Message says in a few words what is the matter.
	Message string `json:"message"`
}

// String is one line: field, both values, message.
func (r RolloutReason) String() string {
	if r.Field == "" {
		return r.Message
	}
	if r.Have == "" && r.Want == "" {
		return r.Field + ": " + r.Message
	}
	return fmt.Sprintf("%s: have %s, want %s: %s", r.Field, cmp.Or(r.Have, "none"), cmp.Or(r.Want, "none"), r.Message)
}

// Policy are the flags that bear on a decision.
type Policy struct {
	// MaxVersionSkew is how many Kubernetes minors a Machine may differ from its
	// control plane (0 is equal; upstream's adoption allows 1).
	MaxVersionSkew int
	AllowScale     bool
	AllowRollout   bool
	PruneDangling  bool
	// Settle is how long nothing new may have arrived before an inferred
	// expectation counts as complete; WatchAfter how long Machines are watched
	// after the release.
	Settle, WatchAfter time.Duration
}

// Phase is where one Cluster stands.
type Phase string

const (
	Deferred       Phase = "deferred"
	Blocked        Phase = "blocked"
	Adopting       Phase = "adopting"
	AwaitingStatus Phase = "awaiting-status"
	Releasing      Phase = "releasing"
	Watching       Phase = "watching"
	Adopted        Phase = "adopted"
)

// Missing is one thing that is awaited.
type Missing struct {
	Object graph.ID `json:"object"`
	// What is the matter with it: "does not exist", "status.nodeRef is not set".
	What string `json:"what"`
	// Maker is who would make it: "the restore", "the bootstrap controller".
	Maker string `json:"maker,omitempty"`
	// unlisted: nobody could look for it.
	unlisted bool
}

// String is "Machine default/cp-0 does not exist (the restore makes it)".
func (m Missing) String() string {
	s := m.Object.String() + " " + m.What
	if m.Maker != "" {
		s += " (" + m.Maker + ")"
	}
	return s
}

// Plan is the decision of one pass. Only this package makes plans.
type Plan struct {
	Cluster graph.ID
	Phase   Phase
	// Waiting is set when deferred, awaiting-status or watching.
	Waiting []Missing
	// Refusals is set when blocked, and only then.
	Refusals []finding.Finding
	// Notes were kept and are reported: foreign owners, dangling references.
	Notes []finding.Finding
	// Again is set only where time itself is awaited (settle, watch-after);
	// otherwise zero: an event wakes us.
	Again time.Time
	steps []Step
}

// Step holds actions on distinct objects that may run side by side. A step
// starts only after all of the step before has ended.
type Step []Action

// Reason says why an action is in the plan, for people: "stale UID".
type Reason string

// Target is the copy of an object that a write is meant for.
type Target struct {
	graph.ID
	UID             types.UID
	ResourceVersion string
	APIVersion      string
}

// Action is one write. The set is closed.
//
//sumtype:decl
type Action interface {
	Target() Target
	Why() Reason
	// String is one line of a scenario and of --dry-run.
	String() string
	sealed()
}

// SetOwners replaces an object's owner references.
type SetOwners struct {
	On            Target
	Before, After []metav1.OwnerReference
	Reason        Reason
	// owners are the copies that After names and Before did not, for World.Confirm.
	owners []Target
}

// ChangeMeta changes labels and annotations: holds, releases, the adoption label.
type ChangeMeta struct {
	On     Target
	Change labels.Change
	Reason Reason
}

// CloseRecord marks one of the record's ConfigMaps as done.
type CloseRecord struct {
	On     Target
	At     time.Time
	Reason Reason
}

// Outcome is what became of a write.
type Outcome int

const (
	// Applied: the object changed (or would, in a dry run).
	Applied Outcome = iota
	// AlreadyThere: it was already so; nothing changed.
	AlreadyThere
	// Moved: the world is not what the decision saw; observe again.
	Moved
)

// Event is something to say about a Cluster. Saying is best effort.
type Event struct {
	Cluster graph.ID
	// On is the control plane object, or the Cluster where that is not known.
	On Target
	// Reason is AdoptionDeferred, AdoptionBlocked or Adopted.
	Reason  string
	Warning bool
	Message string
}

// World is what a pass needs of a management cluster. internal/management
// implements it on a real one.
type World interface {
	// Observe reads everything about one Cluster.
	Observe(ctx context.Context, cluster graph.ID) (State, error)
	// Confirm takes one uncached look at the owners that a plan is about to write
	// into references: same UID, not being deleted. False means observe again.
	Confirm(ctx context.Context, owners []Target) (bool, error)
	// Apply performs one action. With dryRun the server judges and nothing is stored.
	Apply(ctx context.Context, a Action, dryRun bool) (Outcome, error)
	// Tell says something; it may only ever make us say less, never do less.
	Tell(Event)
}
