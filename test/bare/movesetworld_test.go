package bare_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/pkg/graph"
)

// Kinds of another project: widgets without clusterctl's label, and cluster-scoped
// identities that take along what they own.
var (
	widgetKind   = graph.GroupKind{Group: "example.com", Kind: "Widget"}
	identityKind = graph.GroupKind{Group: "example.com", Kind: "Identity"}
)

func infra(kind string) graph.GroupKind {
	return graph.GroupKind{Group: infrav1.GroupVersion.Group, Kind: kind}
}

// own replaces the owner references of an object, as its controller would.
func own(t *testing.T, c *management.Cluster, child graph.ID, owners ...metav1.OwnerReference) {
	t.Helper()
	o := get(t, c, child)
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: child.Namespace, Name: child.Name, OwnerReferences: o.Owners}}
	m.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.APIVersion, child.Kind))
	before := m.DeepCopy()
	m.OwnerReferences = owners
	if err := world.Client().Patch(t.Context(), m, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// by is a reference to a live owner.
func by(t *testing.T, c *management.Cluster, owner graph.ID) metav1.OwnerReference {
	t.Helper()
	o := get(t, c, owner)
	return metav1.OwnerReference{APIVersion: o.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: o.UID}
}

func controlledBy(t *testing.T, c *management.Cluster, owner graph.ID) metav1.OwnerReference {
	t.Helper()
	ref := by(t, c, owner)
	ref.Controller, ref.BlockOwnerDeletion = ptr.To(true), ptr.To(true)
	return ref
}

// withUID is a reference to another copy, or to what is not there.
func withUID(ref metav1.OwnerReference, uid types.UID) metav1.OwnerReference {
	ref.UID = uid
	return ref
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	if err := world.Create(t.Context(), objects...); err != nil {
		t.Fatal(err)
	}
}

func secret(namespace, name string, labels map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
}

func configMap(namespace, name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
}

func template(namespace, name string) *infrav1.DevMachineTemplate {
	return &infrav1.DevMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: infrav1.DevMachineTemplateSpec{
		Template: infrav1.DevMachineTemplateResource{Spec: infrav1.DevMachineSpec{
			Backend: infrav1.DevMachineBackendSpec{InMemory: &infrav1.InMemoryMachineBackendSpec{}},
		}},
	}}
}

func custom(gk graph.GroupKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: gk.Group, Version: "v1", Kind: gk.Kind})
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// makeKinds installs the kinds of the other project.
func makeKinds(t *testing.T) {
	t.Helper()
	crd := func(kind graph.GroupKind, plural string, scope apiextensionsv1.ResourceScope, labels map[string]string) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: plural + "." + kind.Group, Labels: labels},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: kind.Group, Scope: scope,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind.Kind, Plural: plural},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1", Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
				}},
			},
		}
	}
	crds := []*apiextensionsv1.CustomResourceDefinition{
		crd(widgetKind, "widgets", apiextensionsv1.NamespaceScoped, nil),
		crd(identityKind, "identities", apiextensionsv1.ClusterScoped, map[string]string{graph.ClusterctlLabel: "", graph.MoveHierarchyLabel: ""}),
	}
	for _, crd := range crds {
		if err := world.Client().Create(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		// Other tests need not see these kinds.
		t.Cleanup(func() { _ = world.Client().Delete(context.WithoutCancel(t.Context()), crd) })
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: "v1", Kind: crd.Spec.Names.Kind + "List"})
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
			return world.Client().List(ctx, list) == nil, nil
		})
		if err != nil {
			t.Fatalf("%s is not served: %v", crd.Name, err)
		}
	}
}

// makeGlobals makes what clusterctl sees beside any namespace: an identity, and
// labelled Secrets beside the providers, of which only an infrastructure
// provider's are looked at.
func makeGlobals(t *testing.T) {
	t.Helper()
	if err := world.Client().Create(t.Context(), custom(identityKind, "", "account")); err != nil {
		t.Fatal(err)
	}
	move := map[string]string{graph.MoveLabel: ""}
	credentials := secret("capd-system", "credentials", move)
	// It would move with every other test's Cluster.
	t.Cleanup(func() { _ = world.Client().Delete(context.WithoutCancel(t.Context()), credentials) })
	create(t, credentials, secret("capd-system", "not-labelled", nil), secret("capi-system", "not-infrastructure", move))
}
