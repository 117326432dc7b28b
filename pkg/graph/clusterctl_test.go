package graph_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
	"sigs.k8s.io/cluster-api/util/secret"

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

// server is a management cluster with the world's objects.
func (w *world) server(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme, clusterctlv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	objects := []client.Object{&clusterctlv1.Provider{
		ObjectMeta: metav1.ObjectMeta{Namespace: "providers", Name: "infrastructure-example"},
		Type:       string(clusterctlv1.InfrastructureProviderType),
	}}
	for gk := range worldKinds {
		if gk.Group == "" {
			continue
		}
		info := kindInfo(gk)
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(gk.Kind) + "s." + gk.Group, Labels: map[string]string{}}}
		_, version, _ := strings.Cut(info.APIVersion, "/")
		crd.Spec.Group, crd.Spec.Names.Kind, crd.Spec.Scope = gk.Group, gk.Kind, apiextensionsv1.NamespaceScoped
		if !info.Namespaced {
			crd.Spec.Scope = apiextensionsv1.ClusterScoped
		}
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: version, Served: true, Storage: true}}
		if info.Discovered {
			crd.Labels[graph.ClusterctlLabel] = ""
		}
		if worldKinds[gk].ForceMoveHierarchy {
			crd.Labels[graph.MoveHierarchyLabel] = ""
		} else if worldKinds[gk].ForceMove {
			crd.Labels[graph.MoveLabel] = ""
		}
		objects = append(objects, crd)
	}
	for _, u := range w.objects {
		objects = append(objects, u.DeepCopy())
	}
	// A real client drops the namespace from a list of cluster-scoped objects; the fake filters by it.
	list := func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		if l.GetObjectKind().GroupVersionKind().Kind == identity.Kind {
			opts = nil
		}
		return c.List(ctx, l, opts...)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{List: list}).Build()
}

// proxy gives clusterctl the server; it needs nothing else of a kubeconfig.
type proxy struct{ client client.Client }

var errNoKubeconfig = errors.New("there is no kubeconfig")

func (p proxy) NewClient(context.Context) (client.Client, error) { return p.client, nil }
func (p proxy) GetConfig() (*rest.Config, error)                 { return nil, errNoKubeconfig }
func (p proxy) CurrentNamespace() (string, error)                { return "", errNoKubeconfig }
func (p proxy) ValidateKubernetesVersion() error                 { return nil }
func (p proxy) CheckClusterAvailable(context.Context) error      { return nil }
func (p proxy) GetContexts(string) ([]string, error)             { return nil, errNoKubeconfig }
func (p proxy) ListResources(context.Context, map[string]string, ...string) ([]unstructured.Unstructured, error) {
	return nil, errNoKubeconfig
}
func (p proxy) GetResourceNames(context.Context, string, string, []client.ListOption, string) ([]string, error) {
	return nil, errNoKubeconfig
}

// clusterctlMoves are the names of the files that `clusterctl move --to-directory` writes.
func clusterctlMoves(t *testing.T, w *world, namespace string) []string {
	t.Helper()
	dir := t.TempDir()
	c := cluster.New(cluster.Kubeconfig{}, nil, cluster.InjectProxy(proxy{w.server(t)}))
	if err := c.ObjectMover().ToDirectory(t.Context(), namespace, dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
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

func TestMoveSet_IsWhatClusterctlWrites(t *testing.T) {
	counts := map[graph.MoveReason]int{}
	for seed := range uint64(30) {
		w := newWorld(seed)
		for _, namespace := range []string{"fleet", ""} {
			g := w.graph(t, namespace, w.Perm(len(w.objects)))
			set := g.MoveSet()
			if len(set) != len(w.objects) {
				t.Fatalf("seed %d: %d verdicts about %d objects: something fell out", seed, len(set), len(w.objects))
			}
			var ours []string
			for _, m := range set {
				counts[m.Reason]++
				if m.In {
					ours = append(ours, m.ID.Kind+"_"+m.ID.Namespace+"_"+m.ID.Name+".yaml")
				}
			}
			slices.Sort(ours)
			if diff := cmp.Diff(clusterctlMoves(t, w, namespace), ours); diff != "" {
				t.Errorf("seed %d, namespace %q: -clusterctl +move-hook\n%s", seed, namespace, diff)
				for _, m := range set {
					t.Logf("%v %s: %s", m.In, m.ID, m.Why())
				}
				t.FailNow()
			}
			if diff := cmp.Diff(set, w.graph(t, namespace, w.Perm(len(w.objects))).MoveSet()); diff != "" {
				t.Fatalf("seed %d: the order of Add changes the result:\n%s", seed, diff)
			}
		}
	}
	for _, r := range []graph.MoveReason{
		graph.InHierarchy, graph.LabelledMove, graph.KindMoves, graph.NoRoot, graph.OwnerOutside,
		graph.OwnerUnseen, graph.OwnerStale, graph.NotDiscovered, graph.OutOfScope, graph.InCycle,
	} {
		if counts[r] == 0 {
			t.Errorf("no world has an object with the reason %q: the worlds are too tame", r)
		}
	}
}

func TestParseSecretName_IsUpstreams(t *testing.T) {
	for _, name := range []string{
		"c1-ca", "c1-etcd", "c1-sa", "c1-proxy", "c1-kubeconfig", "c1-apiserver-etcd-client", "c1-lock", "ca", "-ca", "c1-ca-ca", "c1ca", "", "c1-",
	} {
		wantCluster, wantPurpose, err := secret.ParseSecretName(name)
		gotCluster, gotPurpose, ok := graph.ParseSecretName(name)
		if gotCluster != wantCluster || gotPurpose != string(wantPurpose) || ok != (err == nil) {
			t.Errorf("%q is (%q, %q, %v), upstream says (%q, %q, %v)", name, gotCluster, gotPurpose, ok, wantCluster, wantPurpose, err)
		}
	}
}

func TestWellKnownKeys_AreUpstreams(t *testing.T) {
	for ours, upstreams := range map[string]string{
		graph.PausedAnnotation:        clusterv1.PausedAnnotation,
		graph.ClusterNameLabel:        clusterv1.ClusterNameLabel,
		graph.ControlPlaneLabel:       clusterv1.MachineControlPlaneLabel,
		graph.ControlPlaneNameLabel:   clusterv1.MachineControlPlaneNameLabel,
		graph.DeploymentNameLabel:     clusterv1.MachineDeploymentNameLabel,
		graph.SetNameLabel:            clusterv1.MachineSetNameLabel,
		graph.PoolNameLabel:           clusterv1.MachinePoolNameLabel,
		graph.ClusterctlLabel:         clusterctlv1.ClusterctlLabel,
		graph.MoveLabel:               clusterctlv1.ClusterctlMoveLabel,
		graph.MoveHierarchyLabel:      clusterctlv1.ClusterctlMoveHierarchyLabel,
		graph.BlockMoveAnnotation:     clusterctlv1.BlockMoveAnnotation,
		graph.DeleteForMoveAnnotation: clusterctlv1.DeleteForMoveAnnotation,
		graph.LastAppliedAnnotation:   corev1.LastAppliedConfigAnnotation,
		graph.CoreGroup:               clusterv1.GroupVersion.Group,
		graph.AddonsGroup:             addonsv1.GroupVersion.Group,
	} {
		if ours != upstreams {
			t.Errorf("%q should be %q", ours, upstreams)
		}
	}
}
