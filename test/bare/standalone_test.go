package bare_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
	"github.com/move-hook/move-hook/test/stack"
)

// alone is a workload cluster c1 with three stand-alone control-plane Machines, as
// its controllers have left it, and a KubeadmControlPlane that fits them, which the
// Cluster names and which owns nothing yet.
type alone struct {
	*management.Cluster
	namespace string
}

var (
	machineKind = schema.GroupVersionKind{Group: clusterv1.GroupVersion.Group, Version: "v1beta2", Kind: "Machine"}
	clusterKind = schema.GroupVersionKind{Group: clusterv1.GroupVersion.Group, Version: "v1beta2", Kind: "Cluster"}
	configKind  = schema.GroupVersionKind{Group: bootstrapv1.GroupVersion.Group, Version: "v1beta2", Kind: "KubeadmConfig"}
	kcpKind     = schema.GroupVersionKind{Group: controlplanev1.GroupVersion.Group, Version: "v1beta2", Kind: "KubeadmControlPlane"}
	devKind     = schema.GroupVersionKind{Group: infrav1.GroupVersion.Group, Version: "v1beta2", Kind: "DevMachine"}
)

func standAlone(t *testing.T, namespace string) alone {
	t.Helper()
	a := alone{open(t, nil), namespace}
	stack.Must(stack.Cluster("c1").InNamespace(namespace).StandAloneControlPlane(3).Create(t.Context(), world.Management))(t)
	for _, o := range stack.Cluster("c1").InNamespace(namespace).ControlPlane(3).Objects() {
		switch o.(type) {
		case *controlplanev1.KubeadmControlPlane, *infrav1.DevMachineTemplate:
			create(t, o)
		}
	}
	a.patch(t, clusterKind, "c1", map[string]any{"spec": map[string]any{"controlPlaneRef": map[string]any{
		"apiGroup": kcpKind.Group, "kind": kcpKind.Kind, "name": "c1-cp"}}})
	ofCluster := by(t, a.Cluster, id(graph.Cluster, namespace, "c1"))
	own(t, a.Cluster, id(infra("DevCluster"), namespace, "c1"), ofCluster)
	for i := range 3 {
		name := fmt.Sprintf("c1-cp-%d", i)
		own(t, a.Cluster, id(graph.Machine, namespace, name), ofCluster)
		ofMachine := controlledBy(t, a.Cluster, id(graph.Machine, namespace, name))
		own(t, a.Cluster, id(graph.KubeadmConfig, namespace, name), ofMachine)
		own(t, a.Cluster, id(infra("DevMachine"), namespace, name), ofMachine)
		a.secret(t, name, controlledBy(t, a.Cluster, id(graph.KubeadmConfig, namespace, name)))
		a.patch(t, machineKind, name, map[string]any{"spec": map[string]any{"bootstrap": map[string]any{"dataSecretName": name}}})
		a.status(t, configKind, name, map[string]any{"dataSecretName": name})
	}
	for _, purpose := range []string{"ca", "etcd", "sa", "proxy"} {
		a.secret(t, "c1-"+purpose, controlledBy(t, a.Cluster, id(graph.KubeadmConfig, namespace, "c1-cp-0")))
	}
	a.secret(t, "c1-kubeconfig", ofCluster)
	if err := stack.Provisioned(t.Context(), world.Management, namespace); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a alone) secret(t *testing.T, name string, owner metav1.OwnerReference) {
	t.Helper()
	create(t, &corev1.Secret{Type: clusterv1.ClusterSecretType, ObjectMeta: metav1.ObjectMeta{
		Namespace: a.namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "c1"}, OwnerReferences: []metav1.OwnerReference{owner}}})
}

func (a alone) object(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(a.namespace)
	u.SetName(name)
	return u
}

func merge(t *testing.T, change any) client.Patch {
	t.Helper()
	return client.RawPatch("application/merge-patch+json", stack.Must(json.Marshal(change))(t))
}

func (a alone) patch(t *testing.T, kind schema.GroupVersionKind, name string, change map[string]any) {
	t.Helper()
	if err := world.Client().Patch(t.Context(), a.object(kind, name), merge(t, change)); err != nil {
		t.Fatal(err)
	}
}

func (a alone) status(t *testing.T, kind schema.GroupVersionKind, name string, status map[string]any) {
	t.Helper()
	if err := world.Client().Status().Patch(t.Context(), a.object(kind, name), merge(t, map[string]any{"status": status})); err != nil {
		t.Fatal(err)
	}
}

// delete begins a deletion that does not end before the test does.
func (a alone) delete(t *testing.T, kind schema.GroupVersionKind, name string) {
	t.Helper()
	a.patch(t, kind, name, map[string]any{"metadata": map[string]any{"finalizers": []string{"test/stays"}}})
	if err := world.Client().Delete(t.Context(), a.object(kind, name)); err != nil {
		t.Fatal(err)
	}
}

// post runs the real program on c1.
func (a alone) post(t *testing.T, code int, args ...string) result {
	t.Helper()
	return hook(t, code, append([]string{"post", "--kubeconfig", world.Kubeconfig(), "-n", a.namespace, "c1",
		"--settle", "1s", "--watch-after", "1s", "--timeout", "90s"}, args...)...)
}

// versions are the resourceVersions of everything in the namespace but Events.
func (a alone) versions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for o := range read(t, a.Cluster, management.Scope{Namespace: a.namespace}).All() {
		if o.Namespace == a.namespace && o.Kind != "Event" {
			out[o.ID.String()] = o.ResourceVersion
		}
	}
	return out
}

// owners are an object's owners in words, the controller with a star.
func (a alone) owners(t *testing.T, gk graph.GroupKind, name string) string {
	t.Helper()
	var out []string
	for _, o := range get(t, a.Cluster, id(gk, a.namespace, name)).Owners {
		star := ""
		if o.Controller != nil && *o.Controller {
			star = "*"
		}
		out = append(out, star+o.Kind+"/"+o.Name)
	}
	return strings.Join(out, ", ")
}

// TestAdopt_StandAloneMachinesInPlace is the whole of what post does to them; that
// upstream's controllers are content with it is proved where they run.
func TestAdopt_StandAloneMachinesInPlace(t *testing.T) {
	a := standAlone(t, "adopt-in-place")
	r := a.post(t, 0, "--explain")
	for _, words := range []string{"every check:", "fine     one control plane", "KubeadmControlPlane adopt-in-place/c1-cp",
		"fine     Machine adopt-in-place/c1-cp-1: its control plane leaves it as it is", "equal, as Cluster API v1.14.2 judges"} {
		if !strings.Contains(r.stdout, words) {
			t.Errorf("it does not explain %q\n%s", words, r)
		}
	}
	a.adopted(t)
	if _, held := get(t, a.Cluster, id(graph.KubeadmControlPlane, a.namespace, "c1-cp")).Annotations[labels.Paused]; held {
		t.Error("the control plane is still paused")
	}
	before := a.versions(t)
	a.post(t, 0)
	a.unchanged(t, before)
	hook(t, 0, "verify", "--kubeconfig", world.Kubeconfig(), "-n", a.namespace, "c1")
}

// adopted demands the owners and labels that upstream leaves behind.
func (a alone) adopted(t *testing.T) {
	t.Helper()
	for i := range 3 {
		name := fmt.Sprintf("c1-cp-%d", i)
		if got := a.owners(t, graph.Machine, name); got != "Cluster/c1, *KubeadmControlPlane/c1-cp" {
			t.Errorf("Machine %s: owners %s", name, got)
		}
		m := get(t, a.Cluster, id(graph.Machine, a.namespace, name))
		if m.Labels[clusterv1.MachineControlPlaneNameLabel] != "c1-cp" || labels.IsPending(labels.MetaOf(m)) {
			t.Errorf("Machine %s: labels %v", name, m.Labels)
		}
		if got := a.owners(t, graph.Secret, name); got != "*KubeadmConfig/"+name {
			t.Errorf("Secret %s: owners %s", name, got)
		}
	}
	for _, purpose := range []string{"ca", "etcd", "sa", "proxy"} {
		if got := a.owners(t, graph.Secret, "c1-"+purpose); got != "*KubeadmControlPlane/c1-cp" {
			t.Errorf("Secret %s: owners %s", purpose, got)
		}
	}
	if got := a.owners(t, graph.Secret, "c1-kubeconfig"); got != "Cluster/c1, *KubeadmControlPlane/c1-cp" {
		t.Errorf("Secret kubeconfig: owners %s", got)
	}
}

func (a alone) unchanged(t *testing.T, before map[string]string) {
	t.Helper()
	after := a.versions(t)
	for name, version := range before {
		if after[name] != version {
			t.Errorf("%s was written: %s, then %s", name, version, after[name])
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d objects, then %d", len(before), len(after))
	}
}

// TestAdopt_HalfAdoptedIsFinished: a control plane that has one of three Machines
// and one of the certificates.
func TestAdopt_HalfAdoptedIsFinished(t *testing.T) {
	a := standAlone(t, "adopt-half")
	ofKCP := controlledBy(t, a.Cluster, id(graph.KubeadmControlPlane, a.namespace, "c1-cp"))
	own(t, a.Cluster, id(graph.Machine, a.namespace, "c1-cp-1"), by(t, a.Cluster, id(graph.Cluster, a.namespace, "c1")), ofKCP)
	own(t, a.Cluster, id(graph.Secret, a.namespace, "c1-ca"), ofKCP)
	a.post(t, 0)
	a.adopted(t)
}

// TestAdopt_OneMinorApartWhereAllowed: the Machines are adopted, and that they will
// be replaced is said.
func TestAdopt_OneMinorApartWhereAllowed(t *testing.T) {
	a := standAlone(t, "adopt-minor")
	a.patch(t, kcpKind, "c1-cp", map[string]any{"spec": map[string]any{"version": "v1.37.0"}})
	r := a.post(t, 0, "--max-version-skew", "1")
	a.adopted(t)
	for i := range 3 {
		if words := fmt.Sprintf("Machine %s/c1-cp-%d: its control plane will replace it", a.namespace, i); !strings.Contains(r.stdout+r.stderr, words) {
			t.Errorf("it does not say %q\n%s", words, r)
		}
	}
}

// TestAdopt_AnotherControlPlaneProvider: owners and labels are put right, what only
// holds for a KubeadmControlPlane is skipped and said so.
func TestAdopt_AnotherControlPlaneProvider(t *testing.T) {
	makeSmallControlPlane(t)
	a := standAlone(t, "adopt-other")
	kind := schema.GroupVersionKind{Group: smallControlPlane.Group, Version: "v1beta2", Kind: smallControlPlane.Kind}
	if err := world.Client().Delete(t.Context(), a.object(kcpKind, "c1-cp")); err != nil {
		t.Fatal(err)
	}
	u := a.object(kind, "c1-cp")
	u.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c1", labels.Adoption: labels.Pending})
	u.SetAnnotations(map[string]string{labels.Paused: "", labels.Held: labels.Holder{Who: "test", Since: time.Now()}.String()})
	u.Object["spec"] = map[string]any{"replicas": int64(3), "version": "v1.36.0", "machineTemplate": map[string]any{"spec": map[string]any{
		"infrastructureRef": map[string]any{"apiGroup": infrav1.GroupVersion.Group, "kind": "DevMachineTemplate", "name": "c1-cp"}}}}
	create(t, u)
	a.patch(t, clusterKind, "c1", map[string]any{"spec": map[string]any{"controlPlaneRef": map[string]any{
		"apiGroup": kind.Group, "kind": kind.Kind, "name": "c1-cp"}}})
	r := a.post(t, 0, "--explain")
	for _, words := range []string{"it is no KubeadmControlPlane", "skipped  bootstrap configs are KubeadmConfigs", "skipped  the control plane replaces no Machine"} {
		if !strings.Contains(r.stdout, words) {
			t.Errorf("it does not say %q\n%s", words, r)
		}
	}
	for i := range 3 {
		name := fmt.Sprintf("c1-cp-%d", i)
		if got := a.owners(t, graph.Machine, name); got != "Cluster/c1, *SmallControlPlane/c1-cp" {
			t.Errorf("Machine %s: owners %s", name, got)
		}
	}
	o := get(t, a.Cluster, id(smallControlPlane, a.namespace, "c1-cp"))
	if m := labels.MetaOf(o); labels.IsPending(m) || labels.IsHeld(m) || a.owners(t, smallControlPlane, "c1-cp") != "Cluster/c1" {
		t.Errorf("control plane: labels %v, annotations %v, owners %v", o.Labels, o.Annotations, o.Owners)
	}
}
