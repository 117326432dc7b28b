package scenario_test

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

// get reads "Kind/name".
func get(t *testing.T, m *stack.Management, name, namespace string) *unstructured.Unstructured {
	t.Helper()
	objects := stack.Must(stack.ReadAll(t.Context(), m, namespace))(t)
	return stack.Must(scenario.Backup(objects).Find(name))(t)
}

// merge patches "Kind/name".
func merge(t *testing.T, m *stack.Management, name, namespace, patch string) {
	t.Helper()
	if err := m.Client().Patch(t.Context(), get(t, m, name, namespace), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// own replaces the owner references of "Kind/name".
func own(t *testing.T, m *stack.Management, name, namespace string, owners []metav1.OwnerReference) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": owners}})
	if err != nil {
		t.Fatal(err)
	}
	merge(t, m, name, namespace, string(text))
}

// freeze stops the garbage collector for as long as the test lasts: what is
// planted here it would take away at once.
func freeze(t *testing.T, m *stack.Management) {
	t.Helper()
	for _, p := range m.Processes() {
		if p.Name != "kube-controller-manager" {
			continue
		}
		if err := syscall.Kill(p.PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := syscall.Kill(p.PID, syscall.SIGCONT); err != nil {
				t.Error(err)
			}
		})
		return
	}
	t.Fatal("no garbage collector runs")
}

// foreign is an object of which move-hook knows nothing, as an owner.
func foreign(t *testing.T, namespace string) metav1.OwnerReference {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "foreign"}}
	if err := world.target.Client().Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: cm.Name, UID: cm.UID}
}

// TestP2_OwnersComeBackWrong has the restore bring owner references that are each
// wrong in another way.
func TestP2_OwnersComeBackWrong(t *testing.T) {
	b := prepared(t)
	b.clear(t)
	ns := b.key.Namespace
	if err := b.objects.HoldClusters().Restore(t.Context(), world.target, nil); err != nil {
		t.Fatal(err)
	}
	freeze(t, world.target)
	set := get(t, world.target, b.first(t, "MachineSet"), ns)
	var workers []string
	for _, o := range b.objects {
		if o.GetKind() == "Machine" && o.GetLabels()["cluster.x-k8s.io/set-name"] == set.GetName() {
			workers = append(workers, o.GetName())
		}
	}
	ofSet := reference(set, true)
	ofCluster := reference(get(t, world.target, "Cluster/"+b.key.Name, ns), false)
	stays := foreign(t, ns)

	stale := reference(get(t, world.target, "Machine/"+workers[0], ns), true)
	stale.UID = "of-the-source"
	old := ofSet
	old.APIVersion = "cluster.x-k8s.io/v1beta1"
	own(t, world.target, "KubeadmConfig/"+workers[0], ns, []metav1.OwnerReference{stale, stays})
	own(t, world.target, "Machine/"+workers[0], ns, []metav1.OwnerReference{ofCluster, ofSet}) // a race's work
	own(t, world.target, "Machine/"+workers[1], ns, []metav1.OwnerReference{old})
	own(t, world.target, "DevMachineTemplate/restore-md-0", ns, []metav1.OwnerReference{stays})

	r := hook(t, 0, b.post(world.target.Kubeconfig())...)
	for _, want := range []string{"KubeadmConfig " + ns + "/" + workers[0], "DevMachineTemplate " + ns + "/restore-md-0"} {
		if !strings.Contains(r.Stdout, want) || !strings.Contains(r.Stdout, "ForeignOwner") {
			t.Errorf("%s has a foreign owner, which is not said\n%s", want, r)
		}
	}
	// What nobody expected is still there; without it, everything is as on the source.
	for _, name := range []string{"KubeadmConfig/" + workers[0], "DevMachineTemplate/restore-md-0"} {
		owners := get(t, world.target, name, ns).GetOwnerReferences()
		if !slices.Contains(owners, stays) {
			t.Errorf("%s lost its foreign owner: %v", name, owners)
		}
		own(t, world.target, name, ns, slices.DeleteFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == stays.UID }))
	}
	if err := world.target.Client().Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: stays.Name}}); err != nil {
		t.Fatal(err)
	}
	b.adopted(t)
	if got := get(t, world.target, "Machine/"+workers[1], ns).GetOwnerReferences()[0].APIVersion; got != ofSet.APIVersion {
		t.Errorf("the owner reference names version %s, upstream writes %s", got, ofSet.APIVersion)
	}
}

func reference(o *unstructured.Unstructured, controller bool) metav1.OwnerReference {
	r := metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID()}
	if controller {
		r.Controller, r.BlockOwnerDeletion = ptr.To(true), ptr.To(true)
	}
	return r
}

// TestP3_VerifyFindsPlantedFaults plants one fault after the other on an adopted
// Cluster, while no controller runs that would take it away.
func TestP3_VerifyFindsPlantedFaults(t *testing.T) {
	b := prepared(t)
	b.clear(t)
	ns := b.key.Namespace
	if err := b.objects.Restore(t.Context(), world.target, nil); err != nil {
		t.Fatal(err)
	}
	hook(t, 0, b.post(world.target.Kubeconfig())...)
	if err := world.target.StopManagers(t.Context()); err != nil {
		t.Fatal(err)
	}
	freeze(t, world.target)
	hook(t, 0, b.verify()...)

	intruder := foreign(t, ns)
	intruder.Controller = ptr.To(true)
	const deployment, template, ca = "MachineDeployment/restore-md-0", "KubeadmConfigTemplate/restore-md-0", "Secret/restore-ca"
	set, machine := b.first(t, "MachineSet"), b.first(t, "Machine")
	owners := func(change func(metav1.OwnerReference) []metav1.OwnerReference) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) { o.SetOwnerReferences(change(o.GetOwnerReferences()[0])) }
	}
	for _, fault := range []struct {
		id    string
		on    string
		plant func(*unstructured.Unstructured)
	}{
		{"MissingOwner", ca, func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) }},
		{"StaleOwnerUID", ca, owners(func(r metav1.OwnerReference) []metav1.OwnerReference {
			r.UID = "stale"
			return []metav1.OwnerReference{r}
		})},
		{"DoubledOwner", template, owners(func(r metav1.OwnerReference) []metav1.OwnerReference {
			// The API server itself takes away a reference that is the same in every field.
			again := r
			again.APIVersion = "cluster.x-k8s.io/v1beta1"
			return []metav1.OwnerReference{r, again}
		})},
		{"WrongOwner", deployment, owners(func(metav1.OwnerReference) []metav1.OwnerReference {
			return []metav1.OwnerReference{reference(get(t, world.target, "KubeadmControlPlane/restore-cp", ns), false)}
		})},
		{"SecondController", set, owners(func(r metav1.OwnerReference) []metav1.OwnerReference {
			r.Controller = nil // the API server refuses two
			return []metav1.OwnerReference{r, intruder}
		})},
		{"OwnerNotController", set, owners(func(r metav1.OwnerReference) []metav1.OwnerReference {
			r.Controller = nil
			return []metav1.OwnerReference{r}
		})},
		{"LabelLeft", "KubeadmControlPlane/restore-cp", func(o *unstructured.Unstructured) {
			o.SetLabels(with(o.GetLabels(), labels.Adoption, labels.Pending))
		}},
		{"HoldLeft", set, func(o *unstructured.Unstructured) {
			o.SetAnnotations(with(with(o.GetAnnotations(), labels.Paused, ""), labels.Held, "by hand"))
		}},
		{"PauseLeft", deployment, func(o *unstructured.Unstructured) { o.SetAnnotations(with(o.GetAnnotations(), labels.Paused, "")) }},
		{"ReplicasChanged", deployment, func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, int64(5), "spec", "replicas")
		}},
		{"VersionChanged", machine, func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, "v1.35.0", "spec", "version")
		}},
	} {
		t.Run(fault.id, func(t *testing.T) {
			was := get(t, world.target, fault.on, ns)
			planted := was.DeepCopy()
			fault.plant(planted)
			update(t, planted)
			b.finds(t, fault.id, fault.on)
			was.SetResourceVersion(planted.GetResourceVersion())
			update(t, was)
			hook(t, 0, b.verify()...)
		})
	}
	t.Run("MissingObject", func(t *testing.T) {
		was := get(t, world.target, template, ns)
		if err := scenario.Delete(t.Context(), world.target, was); err != nil {
			t.Fatal(err)
		}
		b.finds(t, "MissingObject", template)
		place(t, was)
		hook(t, 0, b.verify()...)
	})
	t.Run("ExtraMachine", func(t *testing.T) {
		extra := get(t, world.target, machine, ns)
		extra.SetName("extra")
		place(t, extra)
		b.finds(t, "ExtraMachine", "Machine/extra")
		if err := scenario.Delete(t.Context(), world.target, extra); err != nil {
			t.Fatal(err)
		}
		hook(t, 0, b.verify()...)
	})
	t.Run("SourceUnpaused", func(t *testing.T) {
		pauseSource(t, b.key, false)
		b.finds(t, "SourceUnpaused", "Cluster/"+b.key.Name, "--kubeconfig", world.source.Kubeconfig())
		pauseSource(t, b.key, true)
	})
	if err := world.target.Client().Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: intruder.Name}}); err != nil {
		t.Fatal(err)
	}
	if err := world.target.StartManagers(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// finds demands that verify exits 1 and names the fault and the object.
func (b backup) finds(t *testing.T, id, object string, more ...string) {
	t.Helper()
	r := hook(t, 1, b.verify(more...)...)
	kind, name, _ := strings.Cut(object, "/")
	about := graph.ID{Kind: kind, Namespace: b.key.Namespace, Name: name}.String()
	for line := range strings.Lines(r.Stdout) {
		if strings.Contains(line, id) && strings.Contains(line, about) {
			return
		}
	}
	t.Errorf("%s of %s is not found\n%s", id, about, r)
}

func update(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	if err := world.target.Client().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// place creates an object anew that was read before.
func place(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	o.SetResourceVersion("")
	o.SetUID("")
	if err := world.target.Client().Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}
