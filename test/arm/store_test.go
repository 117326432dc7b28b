package arm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/policy"
	"github.com/move-hook/move-hook/test/stack"
)

// ours are the names of all our policies and bindings.
func ours(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, list := range []client.ObjectList{
		&admissionv1.MutatingAdmissionPolicyList{}, &admissionv1.MutatingAdmissionPolicyBindingList{},
		&admissionv1.ValidatingAdmissionPolicyList{}, &admissionv1.ValidatingAdmissionPolicyBindingList{},
	} {
		partial := &metav1.PartialObjectMetadataList{}
		gvk := stack.Must(world.Client().GroupVersionKindFor(list))(t)
		partial.SetGroupVersionKind(gvk)
		if err := world.Client().List(t.Context(), partial, client.HasLabels{policy.Label}); err != nil {
			t.Fatal(err)
		}
		for _, o := range partial.Items {
			out = append(out, strings.TrimSuffix(gvk.Kind, "List")+" "+o.Name)
		}
	}
	return out
}

var scoped = policy.ArmOptions{Scope: policy.Scope{Namespace: "arm-store", Selector: "a=b"}, HoldOwners: true, Expires: time.Hour, By: "test"}

func TestStore_TheSecondTimeNothingIsWritten(t *testing.T) {
	s, count := store(t, false)
	first := stack.Must(s.Arm(t.Context(), scoped))(t)
	name := stack.Must(scoped.Name())(t)
	if diff := cmp.Diff([]flow.Write{
		"mutatingadmissionpolicy.admissionregistration.k8s.io/move-hook-arm-hold created",
		"mutatingadmissionpolicy.admissionregistration.k8s.io/move-hook-arm-label created",
		"mutatingadmissionpolicy.admissionregistration.k8s.io/move-hook-arm-owners created",
		flow.Write("mutatingadmissionpolicybinding.admissionregistration.k8s.io/move-hook-arm-hold-" + name + " created"),
		flow.Write("mutatingadmissionpolicybinding.admissionregistration.k8s.io/move-hook-arm-label-" + name + " created"),
		flow.Write("mutatingadmissionpolicybinding.admissionregistration.k8s.io/move-hook-arm-owners-" + name + " created"),
	}, first.Writes); diff != "" {
		t.Error(diff)
	}
	guarded := stack.Must(s.Guard(t.Context()))(t)
	if len(guarded) != 2 || count.Load() != 8 {
		t.Errorf("%q, %d writes", guarded, count.Load())
	}
	without := scoped
	without.HoldOwners = false
	for _, o := range []policy.ArmOptions{scoped, without} {
		again := stack.Must(s.Arm(t.Context(), o))(t)
		if wrote := append(again.Writes, stack.Must(s.Guard(t.Context()))(t)...); len(wrote) > 0 || count.Load() != 8 {
			t.Errorf("the second time: %q, %d writes", wrote, count.Load())
		}
	}
	arms := stack.Must(s.Arms(t.Context()))(t)
	if len(arms) != 1 || !arms[0].HoldOwners || arms[0].Partial || arms[0].Expired || arms[0].By != "test" || !arms[0].Scope().Is(scoped.Scope) ||
		arms[0].Expires.Sub(arms[0].Since) != time.Hour || time.Since(arms[0].Since).Abs() > time.Minute {
		t.Errorf("%+v", arms)
	}

	// Another time is a renewal, and an expired arm is renewed by the same.
	longer := scoped
	longer.Expires = 2 * time.Hour
	if wrote := stack.Must(s.Arm(t.Context(), longer))(t).Writes; len(wrote) != 3 || !strings.HasSuffix(string(wrote[0]), " configured") {
		t.Errorf("%q", wrote)
	}
	short := scoped
	short.Expires = time.Second
	stack.Must(s.Arm(t.Context(), short))(t)
	eventually(t, "it expires", func(ctx context.Context) error {
		if arms, err := s.Arms(ctx); err != nil || len(arms) != 1 || !arms[0].Expired {
			return fmt.Errorf("%+v %w", arms, err)
		}
		return nil
	})
	if wrote := stack.Must(s.Arm(t.Context(), short))(t).Writes; len(wrote) != 3 {
		t.Errorf("%q", wrote)
	}

	// And off: bindings first, and nothing the second time.
	var off []flow.Write
	for range 2 {
		off = append(off, stack.Must(s.Disarm(t.Context(), nil))(t)...)
		off = append(off, stack.Must(s.Unguard(t.Context()))(t)...)
	}
	if len(off) != 8 || !strings.Contains(string(off[2]), "binding") || strings.Contains(string(off[3]), "binding") || !strings.Contains(string(off[6]), "binding") {
		t.Errorf("%q", off)
	}
	if left := ours(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestStore_KilledInBetween takes off any one of what is there, which is more than
// a kill can do, and any first part of it, and runs again.
func TestStore_KilledInBetween(t *testing.T) {
	s, _ := store(t, false)
	ctx := t.Context()
	put := func() {
		t.Helper()
		stack.Must(s.Arm(ctx, scoped))(t)
		stack.Must(s.Guard(ctx))(t)
	}
	put()
	all := ours(t)
	if len(all) != 8 {
		t.Fatal(all)
	}
	for i, name := range all {
		remove(t, name)
		if arms := stack.Must(s.Arms(ctx))(t); i < 6 && !strings.Contains(name, "owners") && (len(arms) != 1 || !arms[0].Partial) {
			t.Errorf("without %s: %+v", name, arms)
		}
		put()
		if diff := cmp.Diff(all, ours(t)); diff != "" {
			t.Errorf("without %s: %s", name, diff)
		}
	}
	for _, name := range all[:4] {
		remove(t, name)
	}
	put()
	if diff := cmp.Diff(all, ours(t)); diff != "" {
		t.Error(diff)
	}
	// Disarm, too, ends where it would have.
	bindings := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !strings.Contains(s, "Binding") })
	for _, name := range bindings[1:] {
		remove(t, name)
	}
	stack.Must(s.Disarm(ctx, scoped.Is))(t)
	stack.Must(s.Unguard(ctx))(t)
	if left := ours(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func remove(t *testing.T, kindAndName string) {
	t.Helper()
	kind, name, _ := strings.Cut(kindAndName, " ")
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	o.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind(kind))
	if err := world.Client().Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// TestStore_WhatOthersChangedIsPutRight, and their own labels stay.
func TestStore_WhatOthersChangedIsPutRight(t *testing.T) {
	s := arm(t, policy.ArmOptions{})
	p := &admissionv1.MutatingAdmissionPolicy{}
	key := client.ObjectKey{Name: policy.HoldName}
	if err := world.Client().Get(t.Context(), key, p); err != nil {
		t.Fatal(err)
	}
	want := *p.Spec.DeepCopy()
	p.Spec.MatchConstraints.ResourceRules = p.Spec.MatchConstraints.ResourceRules[:1]
	p.Annotations["theirs"] = "x"
	if err := world.Client().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	armed := stack.Must(s.Arm(t.Context(), policy.ArmOptions{Expires: time.Hour, By: "another"}))(t)
	if len(armed.Writes) != 1 {
		t.Errorf("%q", armed.Writes)
	}
	if err := world.Client().Get(t.Context(), key, p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, p.Spec); diff != "" {
		t.Error(diff)
	}
}

func TestStore_DryRunStoresNothing(t *testing.T) {
	s, count := store(t, true)
	armed := stack.Must(s.Arm(t.Context(), scoped))(t)
	guarded := stack.Must(s.Guard(t.Context()))(t)
	for _, w := range append(armed.Writes, guarded...) {
		if !strings.HasSuffix(string(w), " created (dry run)") {
			t.Error(w)
		}
	}
	if left := ours(t); len(left) > 0 || count.Load() > 0 || len(armed.Writes) != 6 || len(guarded) != 2 {
		t.Errorf("stored: %v; %d writes; %q %q", left, count.Load(), armed.Writes, guarded)
	}
	const ns = "arm-dry"
	namespace(t, ns)
	arm(t, policy.ArmOptions{Scope: policy.Scope{Namespace: ns}})
	guard(t)
	before := ours(t)
	if wrote := append(stack.Must(s.Disarm(t.Context(), nil))(t), stack.Must(s.Unguard(t.Context()))(t)...); len(wrote) < 6 {
		t.Errorf("%q", wrote)
	}
	if diff := cmp.Diff(before, ours(t)); diff != "" {
		t.Error(diff)
	}
}

// TestArm_IsInForceWhenItReturns, every time: what arrives at once is stamped,
// and after disarm it is not.
func TestArm_IsInForceWhenItReturns(t *testing.T) {
	const ns = "arm-at-once"
	namespace(t, ns)
	s, _ := store(t, false)
	for i := range 5 {
		stack.Must(s.Arm(t.Context(), policy.ArmOptions{Scope: policy.Scope{Namespace: ns}, Expires: time.Hour, By: "test"}))(t)
		o := stack.Cluster(fmt.Sprint("c", i)).InNamespace(ns).Objects()[0].(*clusterv1.Cluster)
		arrives(t, world.Client(), wanted, o)
		stack.Must(s.Disarm(t.Context(), nil))(t)
		off := o.DeepCopy()
		off.Name = fmt.Sprint("off", i)
		arrives(t, world.Client(), nothing, off)
	}
}
