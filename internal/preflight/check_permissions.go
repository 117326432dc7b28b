package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/move-hook/move-hook/pkg/finding"
)

// checkPermissions tells what this user lacks.
func checkPermissions(in Input) []finding.Finding { return MissingPermissions(in.Missing) }

// MissingPermissions is a finding for each right.
func MissingPermissions(missing []Right) []finding.Finding {
	var found []finding.Finding
	for _, r := range missing {
		f := finding.Finding{
			ID: "MissingPermission", Severity: finding.Stops, Object: r.what() + " on the " + string(r.Side),
			Message: fmt.Sprintf("this user may not %s: %s", strings.Join(r.Verbs, ", "), r.Why),
			Remedy:  fmt.Sprintf("as its administrator: move-hook preflight --print-role %s | kubectl apply -f -", r.Side),
		}
		if r.Optional {
			f.Severity = finding.Notes
		}
		found = append(found, f)
	}
	return found
}

func (r Right) what() string {
	name := r.Resource
	if r.Group != "" {
		name += "." + r.Group
	}
	if r.Namespace != "" {
		name += " in namespace " + r.Namespace
	}
	return name
}

// Side is one end of a pivot.
type Side string

const (
	Source Side = "source"
	Target Side = "target"
)

// Right is what a pivot does with a resource on one side.
type Right struct {
	Side            Side
	Group, Resource string
	// Namespace is empty for all, and for what is cluster-scoped.
	Namespace string
	Verbs     []string
	// Why says what needs it.
	Why string
	// Optional: without it something is not done, and the move goes on.
	Optional bool
}

// Resource is a kind that clusterctl moves.
type Resource struct {
	Group, Plural string
	Namespaced    bool
	// Moves: there are objects that move.
	Moves bool
}

// Needs are what rights are needed for.
type Needs struct {
	// Resources are the kinds that clusterctl lists on that side, Secrets and ConfigMaps among them.
	Resources []Resource
	// Namespace of the Clusters; empty for all.
	Namespace string
	// ProviderNamespaces are those of infrastructure providers, whose Secrets clusterctl lists.
	ProviderNamespaces []string
	// NewNamespaces: there are namespaces to create on the target.
	NewNamespaces bool
}

// Rights gives what the commands of a pivot need on one side: pre, clusterctl move
// and the way back on the source; clusterctl move and post on the target.
func Rights(side Side, n Needs) []Right {
	var all []Right
	need := func(group, resource, namespace, why string, verbs ...string) *Right {
		all = append(all, Right{Side: side, Group: group, Resource: resource, Namespace: namespace, Verbs: verbs, Why: why})
		return &all[len(all)-1]
	}
	need("apiextensions.k8s.io", "customresourcedefinitions", "", "clusterctl and move-hook read there which kinds move", "get", "list")
	need("clusterctl.cluster.x-k8s.io", "providers", "", "clusterctl compares the providers of both sides", "get", "list")
	need("coordination.k8s.io", "leases", n.Namespace, "two runs keep off each other by a Lease", "get", "create", "update", "delete")
	for _, r := range n.Resources {
		namespace := n.Namespace
		if !r.Namespaced {
			namespace = ""
		}
		if side == Source {
			need(r.Group, r.Plural, namespace, "clusterctl lists every kind that it may move", "get", "list")
		} else {
			need(r.Group, r.Plural, namespace, "post waits for what arrives", "get", "list", "watch")
		}
		switch {
		case !r.Moves:
		case side == Source && r.Namespaced:
			need(r.Group, r.Plural, namespace, "clusterctl takes away what it has moved", "patch", "delete")
			need(r.Group, r.Plural, namespace, "resume and rollback of an interrupted move", "create").Optional = true
		case side == Target:
			need(r.Group, r.Plural, namespace, "clusterctl creates or updates what it moves, post corrects it", "create", "update", "patch")
			if r.Namespaced {
				need(r.Group, r.Plural, namespace, "resume and rollback of an interrupted move", "delete").Optional = true
			}
		}
	}
	if side == Source {
		need("", "configmaps", n.Namespace, "pre writes the record", "create", "update", "delete")
		for _, namespace := range n.ProviderNamespaces {
			if n.Namespace != "" && namespace != n.Namespace {
				need("", "secrets", namespace, "clusterctl lists the Secrets of infrastructure providers", "get", "list")
			}
		}
	} else {
		need("", "events", n.Namespace, "post tells what it does in Events", "create").Optional = true
		need("", "namespaces", "", "clusterctl looks whether the namespace is there", "get")
		if n.NewNamespaces {
			need("", "namespaces", "", "clusterctl creates the namespaces that are missing", "create")
		}
	}
	for _, resource := range []string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"} {
		need("admissionregistration.k8s.io", resource, "", "the guard stays as long as something is armed", "get", "list").Optional = true
	}
	for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
		need("admissionregistration.k8s.io", resource, "", "the guard, which keeps others off what is being moved",
			"get", "list", "create", "update", "delete").Optional = true
	}
	return all
}

// Lacking joins what is denied of the rights: one Right for each that lacks some verb.
func Lacking(all []Right, denied func(r Right, verb string) bool) []Right {
	var missing []Right
	for _, r := range all {
		r.Verbs = slices.DeleteFunc(slices.Clone(r.Verbs), func(verb string) bool { return !denied(r, verb) })
		if len(r.Verbs) > 0 {
			missing = append(missing, r)
		}
	}
	return missing
}
