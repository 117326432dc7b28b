package graph_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/move-hook/move-hook/pkg/graph"
)

// The kinds of the worlds that clusterctl and we look at. Of those of example.com,
// plain is not discovered, loose moves by its kind, and identity is a
// cluster-scoped root.
var (
	plain    = graph.GroupKind{Group: "example.com", Kind: "Plain"}
	loose    = graph.GroupKind{Group: "example.com", Kind: "Loose"}
	identity = graph.GroupKind{Group: "example.com", Kind: "Identity"}
	template = graph.GroupKind{Group: "example.com", Kind: "Template"}

	worldKinds = map[graph.GroupKind]graph.KindInfo{
		graph.Cluster:                   {},
		graph.ClusterClass:              {},
		graph.ClusterResourceSet:        {},
		graph.ClusterResourceSetBinding: {},
		graph.KubeadmControlPlane:       {},
		graph.MachineDeployment:         {},
		graph.MachineSet:                {},
		graph.Machine:                   {},
		graph.KubeadmConfig:             {},
		graph.Secret:                    {},
		graph.ConfigMap:                 {},
		template:                        {},
		plain:                           {},
		loose:                           {ForceMove: true},
		identity:                        {ForceMove: true, ForceMoveHierarchy: true},
	}
)

func versionOf(gk graph.GroupKind) string {
	switch {
	case gk.Group == "":
		return "v1"
	case strings.HasSuffix(gk.Group, graph.CoreGroup):
		return gk.Group + "/v1beta2"
	default:
		return gk.Group + "/v1"
	}
}

func kindInfo(gk graph.GroupKind) graph.KindInfo {
	k := worldKinds[gk]
	k.GroupKind, k.APIVersion = gk, versionOf(gk)
	k.Namespaced, k.Discovered = gk != identity, gk != plain
	k.ForceMove = k.ForceMove || graph.ForceMoves(gk)
	k.ForceMoveHierarchy = k.ForceMoveHierarchy || graph.ForceMoves(gk)
	return k
}

// world makes random objects in the namespaces fleet (which moves), other and
// providers (where an infrastructure provider runs).
type world struct {
	*rand.Rand
	objects []*unstructured.Unstructured
}

func (w *world) one(in int) bool { return w.IntN(in) == 0 }

func (w *world) add(gk graph.GroupKind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": versionOf(gk), "kind": gk.Kind}}
	if gk == identity {
		namespace = ""
	}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetUID(types.UID("uid-" + gk.Kind + "-" + namespace + "-" + name))
	if spec != nil {
		u.Object["spec"] = spec
	}
	w.objects = append(w.objects, u)
	return u
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 7))}
	for _, namespace := range []string{"fleet", "other", "providers"} {
		w.class(namespace)
		for i := range 1 + w.IntN(2) {
			w.cluster(namespace, fmt.Sprintf("c%d", i))
		}
		kinds := []graph.GroupKind{
			graph.ClusterResourceSet, graph.KubeadmControlPlane, graph.MachineDeployment, graph.MachineSet, graph.Machine,
			graph.KubeadmConfig, graph.Secret, graph.ConfigMap, plain, loose, identity,
		}
		for i := range w.IntN(25) {
			gk := kinds[w.IntN(len(kinds))]
			var spec map[string]any
			if gk != graph.Secret && gk != graph.ConfigMap {
				spec = map[string]any{}
			}
			u := w.add(gk, namespace, fmt.Sprintf("n%d-%s", i, namespace), spec)
			if gk == graph.Machine {
				u.Object["status"] = map[string]any{"nodeRef": map[string]any{"name": "node"}}
			}
		}
	}
	for _, u := range w.objects {
		w.own(u)
		if w.one(12) {
			u.SetLabels(map[string]string{graph.MoveLabel: ""})
		}
		if w.one(20) {
			u.SetLabels(map[string]string{graph.MoveHierarchyLabel: ""})
		}
	}
	return w
}

// class makes a ClusterClass with templates, one of a kind that is not discovered.
func (w *world) class(namespace string) {
	ref := func(gk graph.GroupKind, name string) map[string]any {
		w.add(gk, namespace, name, map[string]any{})
		return map[string]any{"templateRef": map[string]any{"apiVersion": versionOf(gk), "kind": gk.Kind, "name": name}}
	}
	controlPlane := ref(plain, "class-cp-"+namespace)
	controlPlane["healthCheck"] = map[string]any{"remediation": ref(template, "class-remediation-"+namespace)}
	w.add(graph.ClusterClass, namespace, "class", map[string]any{
		"infrastructure": ref(template, "class-infra-"+namespace),
		"controlPlane":   controlPlane,
		"workers": map[string]any{"machineDeployments": []any{map[string]any{
			"class": "a", "infrastructure": ref(template, "class-md-"+namespace), "bootstrap": ref(template, "class-boot-"+namespace),
		}}},
	})
}

// cluster makes a Cluster, perhaps of a ClusterClass anywhere, with what belongs to it by convention.
func (w *world) cluster(namespace, name string) {
	spec := map[string]any{}
	if w.one(2) {
		ref := map[string]any{"name": "class"}
		if w.one(2) {
			ref["namespace"] = []string{"fleet", "other"}[w.IntN(2)]
		}
		spec["topology"] = map[string]any{"classRef": ref, "version": "v1.36.0"}
	}
	u := w.add(graph.Cluster, namespace, name, spec)
	u.Object["status"] = map[string]any{
		"initialization": map[string]any{"infrastructureProvisioned": true, "controlPlaneInitialized": true},
		"conditions": []any{map[string]any{
			"type": clusterv1.ClusterControlPlaneInitializedCondition, "status": "True", "reason": "Initialized", "lastTransitionTime": "2026-01-01T00:00:00Z",
		}},
	}
	for _, purpose := range []string{"ca", "etcd", "kubeconfig", "apiserver-etcd-client", "other"} {
		if w.one(2) {
			w.add(graph.Secret, namespace, name+"-"+purpose, nil)
		}
	}
	if w.one(2) {
		w.add(graph.ClusterResourceSetBinding, namespace, name, map[string]any{"clusterName": name})
	}
}

// own gives an object owners of its own namespace or cluster-scoped ones. Some are
// stale or gone, except Clusters, ClusterClasses and Machines: clusterctl fails when
// it cannot read one of those, which is also why none owns what
// clusterctl reads alone in another namespace: a ClusterClass, a template, a Secret.
func (w *world) own(u *unstructured.Unstructured) {
	var refs []metav1.OwnerReference
	for range w.IntN(3) {
		owner := w.objects[w.IntN(len(w.objects))]
		named := slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() })
		if u.GetKind() == "Cluster" || named || (owner.GetNamespace() != "" && owner.GetNamespace() != u.GetNamespace()) {
			continue
		}
		ref := metav1.OwnerReference{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()}
		if mustBeRead := slices.Contains([]string{"Cluster", "ClusterClass", "Machine"}, owner.GetKind()); mustBeRead {
			readAlone := slices.Contains([]string{"ClusterClass", "Template", "Plain", "Secret"}, u.GetKind()) && u.GetNamespace() != "fleet"
			ofItsClass := u.GetNamespace() == "other" && owner.GetKind() == "ClusterClass"
			if readAlone && !ofItsClass {
				continue
			}
		} else {
			switch w.IntN(12) {
			case 0:
				ref.UID = "of-another-copy"
			case 1:
				ref.Name, ref.UID = "gone", "gone"
			}
		}
		refs = append(refs, ref)
	}
	u.SetOwnerReferences(refs)
}

// graph has all objects, also those that clusterctl does not read.
func (w *world) graph(t *testing.T, namespace string, order []int) *graph.Graph {
	t.Helper()
	var b graph.Builder
	for _, gk := range slices.SortedFunc(maps.Keys(worldKinds), graph.GroupKind.Compare) {
		b.Kind(kindInfo(gk))
		b.Listed(gk, "")
	}
	b.Scope(namespace, "providers")
	for _, i := range order {
		o, err := graph.Extract(w.objects[i].Object)
		if err != nil {
			t.Fatal(err)
		}
		b.Add(o)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}
