package arm_test

import (
	"context"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/policy"
	"github.com/move-hook/move-hook/pkg/graph"
)

var (
	ofMachine = metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Machine", Name: "m", UID: "of-the-source", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}
	ofConfig  = metav1.OwnerReference{APIVersion: "bootstrap.cluster.x-k8s.io/v1beta1", Kind: "KubeadmConfig", Name: "m", UID: "of-the-source", Controller: ptr.To(false)}
	ofOthers  = metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d", UID: "elsewhere", Controller: ptr.To(true)}
	// Nothing keeps a name from having any characters.
	ofQuoted = metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Machine", Name: `a"b\c'd/é`, UID: "of-the-source"}
)

func TestHoldOwners(t *testing.T) {
	const ns = "arm-owners"
	namespace(t, ns)
	arm(t, policy.ArmOptions{Scope: policy.Scope{Namespace: ns}, HoldOwners: true})
	theirs := map[string]string{"theirs": "x"}
	for name, test := range map[string]struct {
		annotations map[string]string
		owners      []metav1.OwnerReference
		held        bool
	}{
		"controller":        {nil, []metav1.OwnerReference{ofMachine}, true},
		"with-annotations":  {theirs, []metav1.OwnerReference{ofMachine}, true},
		"several":           {theirs, []metav1.OwnerReference{ofConfig, ofMachine}, true},
		"mixed":             {nil, []metav1.OwnerReference{ofOthers, ofConfig}, true},
		"odd-name":          {nil, []metav1.OwnerReference{ofQuoted}, true},
		"owned-by-others":   {theirs, []metav1.OwnerReference{ofOthers}, false},
		"owned-by-nobody":   {nil, nil, false},
		"group-looks-alike": {nil, []metav1.OwnerReference{{APIVersion: "notcluster.x-k8s.io/v1", Kind: "Machine", Name: "m", UID: "x"}}, false},
	} {
		m := metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: maps.Clone(test.annotations), OwnerReferences: test.owners}
		for _, o := range []client.Object{
			&corev1.Secret{ObjectMeta: m}, &corev1.ConfigMap{ObjectMeta: m},
			&infrav1.DevMachine{ObjectMeta: m, Spec: infrav1.DevMachineSpec{Backend: infrav1.DevMachineBackendSpec{InMemory: &infrav1.InMemoryMachineBackendSpec{}}}},
		} {
			if err := world.Client().Create(t.Context(), o.DeepCopyObject().(client.Object)); err != nil {
				t.Fatalf("%T %s: %v", o, name, err)
			}
			got := meta(t, o)
			left := maps.Clone(got.GetAnnotations())
			value, held := left[graph.OwnersAnnotation]
			delete(left, graph.OwnersAnnotation)
			if held != test.held || len(left) != len(test.annotations) || left["theirs"] != test.annotations["theirs"] {
				t.Errorf("%T %s: annotations %v", o, name, got.GetAnnotations())
			}
			if !test.held {
				if diff := cmp.Diff(test.owners, got.GetOwnerReferences()); diff != "" {
					t.Errorf("%T %s: %s", o, name, diff)
				}
				continue
			}
			back, err := graph.ParseHeldOwners(value)
			if err != nil {
				t.Errorf("%T %s: %s: %v", o, name, value, err)
			}
			if diff := cmp.Diff(withoutUIDs(test.owners), back); diff != "" || len(got.GetOwnerReferences()) > 0 {
				t.Errorf("%T %s: owners %v; the annotation: %s", o, name, got.GetOwnerReferences(), diff)
			}
		}
	}
}

func withoutUIDs(owners []metav1.OwnerReference) []metav1.OwnerReference {
	var out []metav1.OwnerReference
	for _, o := range owners {
		o.UID = types.UID("")
		out = append(out, o)
	}
	return out
}

// TestHoldOwners_WhatControllersMakeIsLeftAlone: their owner references are live.
func TestHoldOwners_WhatControllersMakeIsLeftAlone(t *testing.T) {
	const ns = "arm-owners-controllers"
	namespace(t, ns)
	arm(t, policy.ArmOptions{Scope: policy.Scope{Namespace: ns}, HoldOwners: true})
	for user, held := range map[string]bool{
		"system:kube-controller-manager":               false,
		"system:serviceaccount:kube-system:generic":    false,
		"system:serviceaccount:capi-system:controller": false,
		"system:serviceaccount:velero:server":          true,
		"system:admin":                                 true,
	} {
		mayAll(t, user)
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "x-", OwnerReferences: []metav1.OwnerReference{ofConfig}}}
		eventually(t, user, func(ctx context.Context) error {
			return as(t, func(cfg *rest.Config) { cfg.Impersonate.UserName = user }).Create(ctx, o)
		})
		if got := len(meta(t, o).GetOwnerReferences()) == 0; got != held {
			t.Errorf("%s: held %t, want %t", user, got, held)
		}
	}
}
