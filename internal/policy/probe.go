package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/move-hook/move-hook/internal/management"
)

const (
	// spread is how long after a write an arm counts as in force at the earliest.
	// Of several API servers the probe asks one; each reads policies anew every
	// second (policy_source.go, policyRefreshInterval).
	spread = 3 * time.Second
	// inForceTimeout bounds the wait for a policy that does not take effect.
	inForceTimeout = 30 * time.Second
	probeEvery     = 200 * time.Millisecond
)

// inForce waits until an object that is created in the scope goes through every
// policy as it was just written. It creates one with dry run, so nothing is stored.
// unproven says why that could not be told.
func (s *Store) inForce(ctx context.Context, scope Scope, policies []*admissionv1.MutatingAdmissionPolicy, wrote bool) (unproven string, err error) {
	begin, missing := time.Now(), ""
	refused, err := s.probe(ctx, scope, func(annotations map[string]string) bool {
		missing = firstMissing(policies, annotations)
		return missing == ""
	}, func() bool { return !wrote || time.Since(begin) >= spread })
	if refused != nil && err == nil {
		unproven = "it cannot be checked that the arm is in force, wait some seconds before anything arrives: " + refused.Error()
	}
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		if missing != "" {
			err = errors.New(missing)
		}
		return "", fmt.Errorf("the arm for %s is stored on %s and does not take effect: restore nothing yet, run the command again: %w", scope, s.cluster.Name(), err)
	}
	return unproven, nil
}

// offForce waits until what is created in the scope is let through. What it cannot
// tell is no error: the arm is off a second later.
func (s *Store) offForce(ctx context.Context, scope Scope) error {
	_, _ = s.probe(ctx, scope, func(annotations map[string]string) bool {
		for name := range builders {
			if _, marked := annotations[probeMark+name]; marked {
				return false
			}
		}
		return true
	}, func() bool { return true })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// probe creates an object in the scope with dry run until its annotations are as
// they are to be and enough says so too. refused is why nobody can tell.
func (s *Store) probe(ctx context.Context, scope Scope, as func(annotations map[string]string) bool, enough func() bool) (refused, err error) {
	o, err := probeFor(scope)
	if err != nil {
		return nil, err
	}
	var failed error
	err = wait.PollUntilContextTimeout(ctx, probeEvery, inForceTimeout, true, func(ctx context.Context) (bool, error) {
		var annotations map[string]string
		annotations, failed = s.create(ctx, o)
		untold := apierrors.IsForbidden(failed) || apierrors.IsAlreadyExists(failed)
		if untold {
			refused = failed
		}
		return (untold || failed == nil && as(annotations)) && enough(), nil
	})
	if err != nil && failed != nil {
		err = failed
	}
	return refused, err
}

// create tries to and stores nothing; it gives the annotations that it would have.
func (s *Store) create(ctx context.Context, o *schedulingv1.PriorityClass) (map[string]string, error) {
	got, err := s.cluster.Clientset().SchedulingV1().PriorityClasses().Create(ctx, o.DeepCopy(),
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: management.FieldManager})
	if err != nil {
		return nil, err
	}
	return got.Annotations, nil
}

// probeFor is an object that the bindings of one scope select, and no other's.
func probeFor(scope Scope) (*schedulingv1.PriorityClass, error) {
	name, err := scope.Name()
	if err != nil {
		return nil, err
	}
	selector, err := scope.objects()
	if err != nil {
		return nil, err
	}
	set, err := satisfying(selector)
	if err != nil {
		return nil, err
	}
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: probeName + name, Labels: set}, Value: 1}, nil
}

func firstMissing(policies []*admissionv1.MutatingAdmissionPolicy, annotations map[string]string) string {
	for _, p := range policies {
		if key, mark := markOf(p); annotations[key] != mark {
			return "the API server does not apply mutatingadmissionpolicy " + p.Name + " yet"
		}
	}
	return ""
}
