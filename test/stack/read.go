package stack

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReadAll reads every object of the namespace that `clusterctl move` could
// concern: of every kind whose CRD has clusterctl's label, Secrets and
// ConfigMaps. Sorted by kind and name; the API server's own ConfigMap is left out.
func ReadAll(ctx context.Context, m API, namespace string) ([]*unstructured.Unstructured, error) {
	kinds, err := kindsOf(ctx, m.Client())
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := m.Client().List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing %s in %s: %w", kind.Kind, namespace, err)
		}
		for i := range list.Items {
			if kind.Kind == "ConfigMap" && list.Items[i].GetName() == "kube-root-ca.crt" {
				continue
			}
			all = append(all, &list.Items[i])
		}
	}
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int { return strings.Compare(identity(a), identity(b)) })
	return all, nil
}

// kindsOf are Secret, ConfigMap and the namespaced kinds with clusterctl's label, each at its storage version.
func kindsOf(ctx context.Context, c client.Client) ([]schema.GroupVersionKind, error) {
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := c.List(ctx, crds, client.HasLabels{clusterctlv1.ClusterctlLabel}); err != nil {
		return nil, fmt.Errorf("listing the kinds that clusterctl knows: %w", err)
	}
	kinds := []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("ConfigMap")}
	for _, crd := range crds.Items {
		if crd.Spec.Scope != apiextensionsv1.NamespaceScoped {
			continue
		}
		for _, version := range crd.Spec.Versions {
			if version.Storage {
				kinds = append(kinds, schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind})
			}
		}
	}
	return kinds, nil
}

// OwnerGraph maps each object of the namespace to its owners, by identity, so
// that the graphs of two management clusters can be compared with cmp.Diff:
//
//	"Machine.cluster.x-k8s.io/c1-cp-0": {"KubeadmControlPlane.controlplane.cluster.x-k8s.io/c1-cp controller blocking"}
//
// An owner that is there under another UID is marked "stale", one that is not
// there "missing". Objects without owners map to nothing.
func OwnerGraph(ctx context.Context, m API, namespace string) (map[string][]string, error) {
	objects, err := ReadAll(ctx, m, namespace)
	if err != nil {
		return nil, err
	}
	return ownerGraph(objects), nil
}

func ownerGraph(objects []*unstructured.Unstructured) map[string][]string {
	live := map[string]string{}
	for _, object := range objects {
		live[identity(object)] = string(object.GetUID())
	}
	graph := map[string][]string{}
	for _, object := range objects {
		owners := []string{}
		for _, owner := range object.GetOwnerReferences() {
			owners = append(owners, ownerEdge(owner, live))
		}
		slices.Sort(owners)
		graph[identity(object)] = owners
	}
	return graph
}

func ownerEdge(owner metav1.OwnerReference, live map[string]string) string {
	gv, _ := schema.ParseGroupVersion(owner.APIVersion) // a group alone is what is left of a wrong one
	id := named(gv.WithKind(owner.Kind).GroupKind(), owner.Name)
	edge := id
	if owner.Controller != nil && *owner.Controller {
		edge += " controller"
	}
	if owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion {
		edge += " blocking"
	}
	switch uid, ok := live[id]; {
	case !ok:
		edge += " missing"
	case uid != string(owner.UID):
		edge += " stale"
	}
	return edge
}

func identity(object *unstructured.Unstructured) string {
	return named(object.GroupVersionKind().GroupKind(), object.GetName())
}

func named(kind schema.GroupKind, name string) string {
	return cmp.Or(strings.TrimSuffix(kind.String(), "."), kind.Kind) + "/" + name
}
