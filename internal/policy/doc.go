// Package policy lets the API server itself keep what arrives still, and what is
// pending safe: the arm (MutatingAdmissionPolicies that hold and label arriving
// objects, whoever creates them) and the guard (a ValidatingAdmissionPolicy that
// denies what would undo a pivot). The builders are pure; Store puts what they
// build on a management cluster and takes it off again.
package policy

// Names of the policies, and of our marks on them and on what they touch.
const (
	HoldName   = "move-hook-arm-hold"
	LabelName  = "move-hook-arm-label"
	OwnersName = "move-hook-arm-owners"
	GuardName  = "move-hook-guard"

	// Label is on every policy and binding of ours; its value says which part it is.
	Label      = "pivot.cluster.x-k8s.io/policy"
	LabelArm   = "arm"
	LabelGuard = "guard"

	// SinceAnnotation is when a policy or binding was made, RFC 3339.
	SinceAnnotation = "pivot.cluster.x-k8s.io/since"
	// ExpiresAnnotation is on bindings: until when the arm is meant to stay, RFC 3339.
	// CEL has no clock, so an expired arm goes on working: status and post say so.
	ExpiresAnnotation = "pivot.cluster.x-k8s.io/expires"
	// ArmedByAnnotation is on bindings: who armed.
	ArmedByAnnotation = "pivot.cluster.x-k8s.io/armed-by"

	group = "admissionregistration.k8s.io"
)
