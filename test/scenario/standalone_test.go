package scenario_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

// identities are what Machines keep when they are adopted and lose when they are replaced.
func identities(t *testing.T, m *stack.Management, namespace string) map[string]string {
	t.Helper()
	machines := &clusterv1.MachineList{}
	if err := m.Client().List(t.Context(), machines, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, machine := range machines.Items {
		out[machine.Name] = string(machine.UID) + " of " + machine.CreationTimestamp.String()
	}
	return out
}

// steady is how long a control plane is watched after it has taken over.
func steady() time.Duration {
	if soak() {
		return 5 * time.Minute
	}
	return 20 * time.Second
}

// tookOver waits until the control plane is Available with all Machines up to date,
// and demands that it stays so and replaces nothing.
func tookOver(t *testing.T, m *stack.Management, namespace, cluster string, before map[string]string) {
	t.Helper()
	cp := &controlplanev1.KubeadmControlPlane{}
	key := client.ObjectKey{Namespace: namespace, Name: controlPlaneOf(t, m, namespace, cluster)}
	want := int32(len(before))
	good := func() bool {
		if err := m.Client().Get(t.Context(), key, cp); err != nil {
			t.Fatal(err)
		}
		return ptr.Deref(cp.Status.Replicas, 0) == want && ptr.Deref(cp.Status.UpToDateReplicas, 0) == want &&
			conditions.IsTrue(cp, controlplanev1.KubeadmControlPlaneAvailableCondition)
	}
	waitFor(t, 3*time.Minute, "control plane "+key.String()+" to be Available with all Machines up to date", good)
	wait(t, steady())
	if !good() {
		t.Errorf("control plane %s is no longer Available with %d of %d: %+v", key, ptr.Deref(cp.Status.UpToDateReplicas, 0), want, cp.Status.Conditions)
	}
	if diff := cmp.Diff(before, identities(t, m, namespace)); diff != "" {
		t.Errorf("Machines before and after:\n%s", diff)
	}
	ownedByControlPlane(t, m, namespace, cluster, cp.Name)
}

func controlPlaneOf(t *testing.T, m *stack.Management, namespace, cluster string) string {
	t.Helper()
	c := &clusterv1.Cluster{}
	if err := m.Client().Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: cluster}, c); err != nil {
		t.Fatal(err)
	}
	if c.Spec.ControlPlaneRef.Name == "" {
		t.Fatalf("Cluster %s/%s has no control plane", namespace, cluster)
	}
	return c.Spec.ControlPlaneRef.Name
}

// ownedByControlPlane: what upstream's KCP owns after an adoption, and what it leaves.
func ownedByControlPlane(t *testing.T, m *stack.Management, namespace, cluster, controlPlane string) {
	t.Helper()
	kcp := "KubeadmControlPlane.controlplane.cluster.x-k8s.io/" + controlPlane + " controller blocking"
	owners := stack.Must(stack.OwnerGraph(t.Context(), m, namespace))(t)
	machines := 0
	for object, have := range owners {
		kind, name, _ := strings.Cut(object, "/")
		_, isConfig := owners["KubeadmConfig.bootstrap.cluster.x-k8s.io/"+name]
		var want []string
		switch {
		case kind == "Machine.cluster.x-k8s.io":
			machines++
			want = []string{"Cluster.cluster.x-k8s.io/" + cluster, kcp}
		case kind == "Secret" && isConfig:
			want = []string{"KubeadmConfig.bootstrap.cluster.x-k8s.io/" + name + " controller"}
		case kind == "Secret" && slices.Contains([]string{"ca", "etcd", "proxy", "sa"}, strings.TrimPrefix(name, cluster+"-")):
			want = []string{kcp}
		case kind == "Secret" && name == cluster+"-kubeconfig":
			// The Cluster's reference stays where it was, and is not made where it was not.
			have = slices.DeleteFunc(have, func(o string) bool { return o == "Cluster.cluster.x-k8s.io/"+cluster })
			want = []string{kcp}
		default:
			continue
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("owners of %s (-want +have):\n%s", object, diff)
		}
	}
	if machines == 0 {
		t.Error("there is no Machine: nothing was proved")
	}
	for _, o := range stack.Must(stack.ReadAll(t.Context(), m, namespace))(t) {
		for key := range o.GetLabels() {
			if key == "pivot.cluster.x-k8s.io/adoption" {
				t.Errorf("%s %s still carries the adoption label", o.GetKind(), o.GetName())
			}
		}
		if _, held := o.GetAnnotations()["pivot.cluster.x-k8s.io/held"]; held {
			t.Errorf("%s %s is still held", o.GetKind(), o.GetName())
		}
	}
}

// TestAdopt_StandAlone adopts a control plane of three Machines where it is, and
// moves it afterwards as any other.
func TestAdopt_StandAlone(t *testing.T) {
	key := ready(t, "lonely")
	before := identities(t, world.source, key.Namespace)
	hook(t, 0, "prefill", key.Name, "-n", key.Namespace, "--kubeconfig", world.source.Kubeconfig(), "--apply")
	hook(t, 0, "post", key.Name, "-n", key.Namespace, "--kubeconfig", world.source.Kubeconfig(), "--watch-after", "5s", "--timeout", "3m")
	tookOver(t, world.source, key.Namespace, key.Name, before)
	hook(t, 0, "verify", key.Name, "-n", key.Namespace, "--to-kubeconfig", world.source.Kubeconfig())

	p, err := scenario.Pivot(t.Context(), world.env, key, settled(), func(context.Context) error {
		hook(t, 0, "move", "--kubeconfig", world.source.Kubeconfig(), "--to-kubeconfig", world.target.Kubeconfig(),
			"-n", key.Namespace, "--clusterctl", world.env.Clusterctl, "--watch-after", "5s")
		return nil
	})
	prove(t, p, err)
	tookOver(t, world.target, key.Namespace, key.Name, identities(t, world.target, key.Namespace))
}

// TestAdopt_AfterTheMove moves the Machines without a control plane, and gives them
// one on the target.
func TestAdopt_AfterTheMove(t *testing.T) {
	key := ready(t, "later")
	hook(t, 0, "move", "--kubeconfig", world.source.Kubeconfig(), "--to-kubeconfig", world.target.Kubeconfig(),
		"-n", key.Namespace, "--clusterctl", world.env.Clusterctl, "--watch-after", "5s")
	before := identities(t, world.target, key.Namespace)
	hook(t, 0, "prefill", key.Name, "-n", key.Namespace, "--kubeconfig", world.target.Kubeconfig(), "--apply")
	hook(t, 0, "post", key.Name, "-n", key.Namespace, "--kubeconfig", world.target.Kubeconfig(), "--watch-after", "5s", "--timeout", "3m")
	tookOver(t, world.target, key.Namespace, key.Name, before)
}

// manifests are the objects that YAML holds, one a document.
func manifests(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
	return objects
}

// TestAdopt_TogetherWithTheMachines restores Machines that never had a control plane
// in random order together with the control plane that adopts them.
func TestAdopt_TogetherWithTheMachines(t *testing.T) {
	b := plain(t, "alone")
	b.clear(t)
	arm(t, b.key.Namespace)
	printed := hook(t, 0, "prefill", b.key.Name, "-n", b.key.Namespace, "--kubeconfig", world.source.Kubeconfig(), "-o", "yaml")
	objects := slices.Clone(b.objects)
	objects = append(objects, manifests(t, printed.Stdout)...)
	controlPlane := objects[slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "KubeadmControlPlane" })]
	for i, o := range objects {
		if o.GetKind() == "Cluster" {
			objects[i] = o.DeepCopy()
			ref := map[string]any{"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": controlPlane.GetName()}
			if err := unstructured.SetNestedMap(objects[i].Object, ref, "spec", "controlPlaneRef"); err != nil {
				t.Fatal(err)
			}
		}
	}
	random := rand.New(rand.NewPCG(4, 2))
	b.exactly(t, objects, func() {
		shuffled := objects.Shuffled(random)
		err := shuffled.Restore(t.Context(), world.target, func() time.Duration { return time.Duration(random.IntN(300)) * time.Millisecond })
		if err != nil {
			t.Fatal(err)
		}
		hook(t, 0, b.post(world.target.Kubeconfig())...)
		tookOver(t, world.target, b.key.Namespace, b.key.Name, identities(t, world.target, b.key.Namespace))
	})
}
