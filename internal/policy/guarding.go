package policy

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/move-hook/move-hook/internal/pivot/flow"
)

// Guard installs the guard, or brings it up to date; it writes nothing where it is
// as it should be. Errors for which Unavailable holds need not stop a flow.
func (s *Store) Guard(ctx context.Context) ([]flow.Write, error) {
	policies, bindings, err := s.validating(ctx)
	if err != nil {
		return nil, err
	}
	terms, err := s.terms(ctx)
	if err != nil {
		return nil, err
	}
	out, err := policies.ensure(ctx, GuardName, func(*admissionv1.ValidatingAdmissionPolicy) (*admissionv1.ValidatingAdmissionPolicy, error) {
		return GuardPolicy(terms), nil
	}, func(have, want *admissionv1.ValidatingAdmissionPolicy) bool {
		return equality.Semantic.DeepEqual(have.Spec, want.Spec) && holds(have.Labels, want.Labels)
	})
	if err != nil {
		return out, err
	}
	wrote, err := bindings.ensure(ctx, GuardName, func(*admissionv1.ValidatingAdmissionPolicyBinding) (*admissionv1.ValidatingAdmissionPolicyBinding, error) {
		return GuardBinding(), nil
	}, func(have, want *admissionv1.ValidatingAdmissionPolicyBinding) bool {
		return equality.Semantic.DeepEqual(have.Spec, want.Spec) && holds(have.Labels, want.Labels)
	})
	return append(out, wrote...), err
}

// Unguard removes the guard if it is there: the binding first, so that a policy
// without one is what a killed call leaves. Whether anything still needs the guard
// is for the caller to ask, see Pending.
func (s *Store) Unguard(ctx context.Context) ([]flow.Write, error) {
	policies, bindings, err := s.validating(ctx)
	if err != nil {
		return nil, err
	}
	var out []flow.Write
	binding, err := bindings.get(ctx, GuardName)
	if err == nil && binding != nil {
		out, err = bindings.remove(ctx, binding)
	}
	if err != nil {
		return out, err
	}
	policy, err := policies.get(ctx, GuardName)
	if err != nil || policy == nil {
		return out, err
	}
	wrote, err := policies.remove(ctx, policy)
	return append(out, wrote...), err
}

// GuardState is what there is of the guard.
type GuardState string

// The states of the guard.
const (
	GuardAbsent    GuardState = "absent"
	GuardInstalled GuardState = "installed"
	// GuardPartial: half of it, without effect; left by a call that was killed.
	GuardPartial GuardState = "partial"
)

// Guarded says what there is of the guard.
func (s *Store) Guarded(ctx context.Context) (GuardState, error) {
	policies, bindings, err := s.validating(ctx)
	if err != nil {
		return "", err
	}
	policy, err := policies.get(ctx, GuardName)
	if err != nil {
		return "", err
	}
	binding, err := bindings.get(ctx, GuardName)
	switch {
	case err != nil:
		return "", err
	case policy != nil && binding != nil:
		return GuardInstalled, nil
	case policy == nil && binding == nil:
		return GuardAbsent, nil
	}
	return GuardPartial, nil
}
