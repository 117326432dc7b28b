package graph_test

import (
	"context"
	"errors"
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
		graph.ClusterSecretType:       string(clusterv1.ClusterSecretType),
		graph.CoreGroup:               clusterv1.GroupVersion.Group,
		graph.AddonsGroup:             addonsv1.GroupVersion.Group,
	} {
		if ours != upstreams {
			t.Errorf("%q should be %q", ours, upstreams)
		}
	}
}
