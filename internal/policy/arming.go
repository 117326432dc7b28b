package policy

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/move-hook/move-hook/internal/pivot/flow"
)

// ArmOptions say what to arm, and for how long.
type ArmOptions struct {
	Scope
	// Expires is for how long the arm is meant to stay.
	Expires time.Duration
	// HoldOwners arms against stale owner references too. An arm that has it keeps it.
	HoldOwners bool
	// By is who arms, for whoever finds the binding; empty for the user that the API
	// server knows the caller as.
	By string
}

// Armed is what Arm did.
type Armed struct {
	Writes []flow.Write
	// Notes are sentences about control plane kinds that a hold may not stop.
	Notes []string
	// Unproven says why it could not be checked that the arm is in force; empty where it is.
	Unproven string
}

// Arm puts the policies and the bindings of a scope in place and waits until the
// API server uses them. Policies come before bindings: a binding without its policy
// would do nothing. Armed once, the same call writes nothing until the arm has
// expired. Errors: a scope that is none, ErrUnserved, the server's refusal, and
// that the arm is stored and does not take effect.
func (s *Store) Arm(ctx context.Context, o ArmOptions) (Armed, error) {
	var out Armed
	scope, err := o.Name()
	if err != nil {
		return out, err
	}
	policies, bindings, err := s.mutating(ctx)
	if err != nil {
		return out, err
	}
	terms, err := s.terms(ctx)
	if err != nil {
		return out, err
	}
	out.Notes = notes(terms)
	by := o.By
	if by == "" {
		by = s.user(ctx)
	}
	now := s.cluster.Now().Truncate(time.Second)
	parts := []string{HoldName, LabelName}
	if o.HoldOwners {
		parts = append(parts, OwnersName)
	} else if have, err := bindings.get(ctx, OwnersName+"-"+scope); err != nil {
		return out, err
	} else if have != nil {
		parts = append(parts, OwnersName)
	}
	var wanted []*admissionv1.MutatingAdmissionPolicy
	for _, name := range parts {
		var want *admissionv1.MutatingAdmissionPolicy
		wrote, err := policies.ensure(ctx, name, func(have *admissionv1.MutatingAdmissionPolicy) (*admissionv1.MutatingAdmissionPolicy, error) {
			want = builders[name](terms, sinceOf(have, now))
			return want, nil
		}, samePolicy)
		if err != nil {
			return out, err
		}
		wanted = append(wanted, want)
		out.Writes = append(out.Writes, wrote...)
	}
	for _, name := range parts {
		wrote, err := bindings.ensure(ctx, name+"-"+scope, func(have *admissionv1.MutatingAdmissionPolicyBinding) (*admissionv1.MutatingAdmissionPolicyBinding, error) {
			since := now
			if have != nil && lasts(have.Annotations, o.Expires, now) {
				since, _ = timeOf(have.Annotations, SinceAnnotation)
			}
			want, err := Bind(name, o.Scope, by, since, since.Add(o.Expires))
			if err == nil && have != nil && since != now {
				want.Annotations[ArmedByAnnotation] = have.Annotations[ArmedByAnnotation]
			}
			return want, err
		}, sameBinding)
		if err != nil {
			return out, err
		}
		out.Writes = append(out.Writes, wrote...)
	}
	if s.DryRun {
		return out, nil
	}
	out.Unproven, err = s.inForce(ctx, o.Scope, wanted, len(out.Writes) > 0)
	return out, err
}

var builders = map[string]func(Terms, time.Time) *admissionv1.MutatingAdmissionPolicy{
	HoldName: Hold, LabelName: Pending, OwnersName: Owners,
}

// sinceOf keeps the time of the first arming, which is in the mark of what was held.
func sinceOf(have *admissionv1.MutatingAdmissionPolicy, now time.Time) time.Time {
	if have != nil {
		if since, ok := timeOf(have.Annotations, SinceAnnotation); ok {
			return since
		}
	}
	return now
}

// lasts: armed for as long as is asked for, and not over yet.
func lasts(annotations map[string]string, expires time.Duration, now time.Time) bool {
	since, hasSince := timeOf(annotations, SinceAnnotation)
	until, hasUntil := timeOf(annotations, ExpiresAnnotation)
	return hasSince && hasUntil && until.Equal(since.Add(expires).Truncate(time.Second)) && until.After(now)
}

func timeOf(annotations map[string]string, key string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, annotations[key])
	return t, err == nil
}

func samePolicy(have, want *admissionv1.MutatingAdmissionPolicy) bool {
	return equality.Semantic.DeepEqual(have.Spec, want.Spec) && holds(have.Labels, want.Labels) && holds(have.Annotations, want.Annotations)
}

func sameBinding(have, want *admissionv1.MutatingAdmissionPolicyBinding) bool {
	return equality.Semantic.DeepEqual(have.Spec, want.Spec) && holds(have.Labels, want.Labels) && holds(have.Annotations, want.Annotations)
}

// holds: others may have added labels and annotations of their own.
func holds(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

// Disarm removes the bindings that pick selects, nil for all, and every policy of
// the arm that no binding uses any more. Bindings go first: a policy that goes
// before its bindings would leave them behind for a later arm. It returns when
// what arrives is let through.
func (s *Store) Disarm(ctx context.Context, pick func(Scope) bool) ([]flow.Write, error) {
	policies, bindings, err := s.mutating(ctx)
	if err != nil {
		return nil, err
	}
	var out []flow.Write
	all, err := bindings.list(ctx)
	if err != nil {
		return nil, err
	}
	left, off := map[string]bool{}, map[Scope]bool{}
	for i := range all {
		b := &all[i]
		if b.Labels[Label] != LabelArm || (pick != nil && !pick(scopeOfBinding(b))) {
			left[b.Spec.PolicyName] = true
			continue
		}
		wrote, err := bindings.remove(ctx, b)
		if err != nil {
			return out, err
		}
		out = append(out, wrote...)
		off[scopeOfBinding(b)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(builders)) {
		if left[name] {
			continue
		}
		have, err := policies.get(ctx, name)
		if err != nil {
			return out, err
		}
		if have == nil || have.Labels[Label] != LabelArm {
			continue
		}
		wrote, err := policies.remove(ctx, have)
		if err != nil {
			return out, err
		}
		out = append(out, wrote...)
	}
	for scope := range off {
		if s.DryRun {
			break
		}
		if err := s.offForce(ctx, scope); err != nil {
			return out, err
		}
	}
	return out, nil
}

func scopeOfBinding(b *admissionv1.MutatingAdmissionPolicyBinding) Scope {
	if b.Spec.MatchResources == nil {
		return Scope{}
	}
	return scopeOf(b.Spec.MatchResources.NamespaceSelector, b.Spec.MatchResources.ObjectSelector)
}

// Arm is an arm that is there.
type Arm struct {
	Namespace  string `json:"namespace,omitempty"`
	Selector   string `json:"selector,omitempty"`
	HoldOwners bool   `json:"holdOwners,omitempty"`
	By         string `json:"by,omitempty"`
	// Since is when it was armed or renewed, and Expires until when it is meant to stay.
	Since   time.Time `json:"since,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
	// Expired: it still works and is meant to be removed or renewed.
	Expired bool `json:"expired,omitempty"`
	// Partial: a policy or a binding is missing; arming again puts it there.
	Partial bool `json:"partial,omitempty"`
}

// Scope is what the arm is limited to.
func (a Arm) Scope() Scope { return Scope{a.Namespace, a.Selector} }

// Arms tells what is armed, sorted by scope; nothing where the API is not served.
func (s *Store) Arms(ctx context.Context) ([]Arm, error) {
	policies, bindings, err := s.mutating(ctx)
	if err != nil {
		return nil, err
	}
	all, err := bindings.list(ctx)
	if err != nil {
		return nil, err
	}
	have, err := policies.list(ctx)
	if err != nil {
		return nil, err
	}
	exists := map[string]bool{}
	for i := range have {
		exists[have[i].Name] = true
	}
	arms, parts := map[Scope]*Arm{}, map[Scope]int{}
	for i := range all {
		b := &all[i]
		if b.Labels[Label] != LabelArm {
			continue
		}
		scope := scopeOfBinding(b)
		a := arms[scope]
		if a == nil {
			a = &Arm{Namespace: scope.Namespace, Selector: scope.Selector}
			arms[scope] = a
		}
		if exists[b.Spec.PolicyName] && b.Spec.PolicyName != OwnersName {
			parts[scope]++
		}
		a.HoldOwners = a.HoldOwners || (b.Spec.PolicyName == OwnersName && exists[OwnersName])
		// A renewal that was killed has renewed some: what ends first counts.
		if expires, ok := timeOf(b.Annotations, ExpiresAnnotation); a.By == "" || ok && expires.Before(a.Expires) {
			a.By, a.Expires = b.Annotations[ArmedByAnnotation], expires
			a.Since, _ = timeOf(b.Annotations, SinceAnnotation)
			a.Expired = !expires.After(s.cluster.Now())
		}
	}
	var out []Arm
	for scope, a := range arms {
		a.Partial = parts[scope] < 2
		out = append(out, *a)
	}
	slices.SortFunc(out, func(a, b Arm) int { return strings.Compare(a.Scope().String(), b.Scope().String()) })
	return out, nil
}
