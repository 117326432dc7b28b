package bare_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/move-hook/move-hook/pkg/labels"
	"github.com/move-hook/move-hook/test/stack"
)

// standAloneOn makes a Cluster of stand-alone control-plane Machines, one that
// initialised it and the others that joined, as they are once they run.
func standAloneOn(t *testing.T, m *stack.Management, ns, name string, machines int, change ...func(client.Object)) {
	t.Helper()
	objects := stack.Cluster(name).InNamespace(ns).StandAloneControlPlane(machines).Objects()
	for _, o := range objects {
		if machine, ok := o.(*clusterv1.Machine); ok {
			machine.Spec.Bootstrap.DataSecretName = &machine.Name
		}
		for _, c := range change {
			c(o)
		}
	}
	if err := m.Create(t.Context(), objects...); err != nil {
		t.Fatal(err)
	}
}

func mergeInto(t *testing.T, m *stack.Management, o client.Object, ns, name, patch string) {
	t.Helper()
	o.SetNamespace(ns)
	o.SetName(name)
	if err := m.Client().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// prefilled are the kinds that prefill writes.
var prefilled = []schema.GroupVersionKind{
	clusterv1.GroupVersion.WithKind("Cluster"), clusterv1.GroupVersion.WithKind("Machine"),
	controlplanev1.GroupVersion.WithKind("KubeadmControlPlane"), bootstrapv1.GroupVersion.WithKind("KubeadmConfig"),
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "DevMachineTemplate"},
}

// written is what stands on the server in a namespace after prefill, without what
// differs by its nature.
func written(t *testing.T, m *stack.Management, ns string) string {
	t.Helper()
	var out []string
	for _, gvk := range prefilled {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := m.Client().List(t.Context(), list, client.InNamespace(ns)); err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			annotations := o.GetAnnotations()
			if _, ok := annotations[labels.Held]; ok {
				annotations[labels.Held] = "held"
			}
			var owners []string
			for _, owner := range o.GetOwnerReferences() {
				owners = append(owners, owner.APIVersion+" "+owner.Kind+"/"+owner.Name)
			}
			text := stack.Must(json.Marshal([]any{o.GetKind(), o.GetName(), o.GetLabels(), annotations, owners, o.Object["spec"]}))(t)
			out = append(out, strings.ReplaceAll(string(text), ns, "NAMESPACE"))
		}
	}
	return strings.Join(out, "\n")
}

// safe: at no moment may a control plane act. It is held from its first byte, whole
// whenever the Cluster refers to it, and marked for adoption.
func safe(t *testing.T, m *stack.Management, ns, name string) {
	t.Helper()
	var kcps controlplanev1.KubeadmControlPlaneList
	if err := m.Client().List(t.Context(), &kcps, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	for _, kcp := range kcps.Items {
		meta := labels.Meta{Labels: kcp.Labels, Annotations: kcp.Annotations}
		if !labels.PausedByAnnotation(meta) || !labels.IsHeld(meta) || !labels.IsPending(meta) {
			t.Errorf("%s is not held and marked: %v %v", kcp.Name, kcp.Labels, kcp.Annotations)
		}
	}
	cluster := &clusterv1.Cluster{}
	if err := m.Client().Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, cluster); err != nil {
		t.Fatal(err)
	}
	if cluster.Spec.ControlPlaneRef.IsDefined() && (len(kcps.Items) != 1 || *kcps.Items[0].Spec.Replicas != 3) {
		t.Errorf("the Cluster refers to %s and it is not whole", cluster.Spec.ControlPlaneRef.Name)
	}
}

func TestPrefill_AppliedFromEveryKill(t *testing.T) {
	m := target(t)
	proxy := stack.Must(stack.Proxy(m))(t)
	t.Cleanup(proxy.Close)
	prefill := func(ns string) []string {
		return []string{"prefill", "--kubeconfig", proxy.Kubeconfig(), "-n", ns, "c1", "--apply"}
	}
	run := func(t *testing.T, code int, ns string) result {
		t.Helper()
		return hook(t, code, prefill(ns)...)
	}
	for way, prepare := range map[string]func(t *testing.T, ns string){
		"new": func(*testing.T, string) {},
		// The user made a control plane that says only what it must.
		"filled": func(t *testing.T, ns string) {
			kcp := half(ns, "c1-control-plane")
			if err := m.Client().Create(t.Context(), kcp); err != nil {
				t.Fatal(err)
			}
			mergeInto(t, m, &clusterv1.Cluster{}, ns, "c1", `{"spec":{"controlPlaneRef":{"apiGroup":"controlplane.cluster.x-k8s.io","kind":"KubeadmControlPlane","name":"c1-control-plane"}}}`)
		},
	} {
		t.Run(way, func(t *testing.T) {
			whole := "whole-" + way
			standAloneOn(t, m, whole, "c1", 3)
			prepare(t, whole)
			run(t, 0, whole) // also the guard, which is the server's and stays
			writes := len(slices.DeleteFunc(proxy.Mutating(), notAbout(whole)))
			if writes < 5 {
				t.Fatalf("only %d writes", writes)
			}
			want := written(t, m, whole)
			safe(t, m, whole, "c1")
			proxy.Forget()
			run(t, 0, whole)
			if again := slices.DeleteFunc(proxy.Mutating(), notAbout(whole)); len(again) > 0 {
				t.Errorf("the second run wrote %v", again)
			}
			for n := 1; n <= writes; n++ {
				for _, when := range []stack.Moment{stack.Before, stack.After} {
					ns := fmt.Sprintf("%s-%d-%d", way, n, when)
					standAloneOn(t, m, ns, "c1", 3)
					prepare(t, ns)
					if cut := proxy.CutAt(n, when); n == 1 && when == stack.Before {
						run(t, 5, ns) // it gives up by itself
						<-cut
					} else {
						killed(t, cut, prefill(ns)...)
					}
					if err := proxy.Heal(); err != nil {
						t.Fatal(err)
					}
					if way == "new" {
						safe(t, m, ns, "c1")
					}
					run(t, 0, ns)
					safe(t, m, ns, "c1")
					if diff := cmp.Diff(want, strings.ReplaceAll(written(t, m, ns), ns, "NAMESPACE")); diff != "" {
						t.Errorf("cut at write %d (%d), the end is another:\n%s", n, when, diff)
					}
				}
			}
		})
	}
}

func notAbout(ns string) func(stack.Request) bool {
	return func(r stack.Request) bool { return r.Namespace != ns || r.Resource == "events" }
}

// half is the least that a user's control plane can say.
func half(ns, name string) *controlplanev1.KubeadmControlPlane {
	kcp := &controlplanev1.KubeadmControlPlane{}
	kcp.Namespace, kcp.Name = ns, name
	kcp.Labels = map[string]string{labels.Adoption: labels.Pending}
	kcp.Spec.Version = stack.KubernetesVersion
	kcp.Spec.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "DevMachineTemplate", Name: name}
	return kcp
}

func TestPrefill_PrintedApplied(t *testing.T) {
	m := target(t)
	const ns = "printed"
	standAloneOn(t, m, ns, "c1", 3)
	before := written(t, m, ns)
	args := []string{"prefill", "--kubeconfig", m.Kubeconfig(), "-n", ns, "c1"}
	r := hook(t, 0, args...)
	if again := hook(t, 0, args...); again.stdout != r.stdout {
		t.Errorf("the same input printed other bytes:\n%s", cmp.Diff(r.stdout, again.stdout))
	}
	if !strings.Contains(r.stdout, "# No Machine would be replaced, as Cluster API v1.14.2 compares.") {
		t.Errorf("it does not say that nothing is replaced\n%s", r)
	}
	hook(t, 0, append(args, "--apply", "--dry-run")...)
	if diff := cmp.Diff(before, written(t, m, ns)); diff != "" {
		t.Errorf("something was written:\n%s", diff)
	}
	listed := hook(t, 0, append(args, "-o", "json")...)
	var list struct{ Items []unstructured.Unstructured }
	if err := json.Unmarshal([]byte(listed.stdout), &list); err != nil || len(list.Items) != 2 {
		t.Errorf("%v: %d objects\n%s", err, len(list.Items), listed)
	}

	for doc := range strings.SplitSeq(r.stdout, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		if len(u.Object) == 0 {
			continue // the comments
		}
		if err := m.Client().Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	// What was applied is what would be filled in, so only the rest is written.
	r = hook(t, 0, append(args, "--apply")...)
	for _, no := range []string{"devmachinetemplate", "kubeadmcontrolplane."} {
		if strings.Contains(r.stdout, no) {
			t.Errorf("what was applied was written again: %s\n%s", no, r)
		}
	}
	safe(t, m, ns, "c1")
	if r = hook(t, 0, append(args, "--apply")...); strings.Contains(r.stdout, "labelled") {
		t.Errorf("the second run wrote\n%s", r)
	}
}

// patches finds the commands that a result gives, as name and patch.
var patches = regexp.MustCompile(`kubectl patch kubeadmconfig -n \S+ (\S+) --type=merge -p '(.*)'`)

func TestPrefill_SaysWhoWouldBeReplacedAndTheWayOut(t *testing.T) {
	m := target(t)
	for name, change := range map[string]func(client.Object){
		// As users write them: only the first Machine has a clusterConfiguration.
		"joins-without": func(o client.Object) {
			if c, ok := o.(*bootstrapv1.KubeadmConfig); ok && c.Spec.JoinConfiguration.ControlPlane != nil {
				c.Spec.ClusterConfiguration = bootstrapv1.ClusterConfiguration{}
			}
		},
		// KubeadmControlPlane adds a feature gate for these versions, which no
		// configuration of a user has.
		"feature-gate": func(o client.Object) {
			if machine, ok := o.(*clusterv1.Machine); ok {
				machine.Spec.Version = "v1.34.2"
			}
		},
		"both-sections": func(o client.Object) {
			if c, ok := o.(*bootstrapv1.KubeadmConfig); ok && c.Spec.JoinConfiguration.ControlPlane != nil {
				c.Spec.InitConfiguration.NodeRegistration = c.Spec.JoinConfiguration.NodeRegistration
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			standAloneOn(t, m, name, "c1", 3, change)
			args := []string{"prefill", "--kubeconfig", m.Kubeconfig(), "-n", name, "c1"}
			before := written(t, m, name)
			r := hook(t, 1, args...)
			if !strings.Contains(r.stdout, "WOULD BE REPLACED") || !strings.Contains(r.stdout, "kind: KubeadmControlPlane") {
				t.Errorf("want a warning and the objects\n%s", r)
			}
			hook(t, 1, append(args, "--apply")...)
			if diff := cmp.Diff(before, written(t, m, name)); diff != "" {
				t.Errorf("it wrote although Machines would be replaced:\n%s", diff)
			}
			remedies := map[string]string{}
			for _, match := range patches.FindAllStringSubmatch(r.stdout, -1) {
				remedies[match[1]] = match[2]
			}
			if len(remedies) == 0 {
				t.Fatalf("no way out is given\n%s", r)
			}
			for _, config := range slices.Sorted(maps.Keys(remedies)) {
				mergeInto(t, m, &bootstrapv1.KubeadmConfig{}, name, config, remedies[config])
			}
			hook(t, 0, append(args, "--apply")...)
		})
	}
}

func TestPrefill_KeepsWhatTheUserSet(t *testing.T) {
	m := target(t)
	const ns = "kept"
	standAloneOn(t, m, ns, "c1", 3)
	kcp := half(ns, "mine")
	kcp.Spec.KubeadmConfigSpec.JoinConfiguration.NodeRegistration.CRISocket = "unix:///mine"
	if err := m.Client().Create(t.Context(), kcp); err != nil {
		t.Fatal(err)
	}
	args := []string{"prefill", "--kubeconfig", m.Kubeconfig(), "-n", ns, "c1", "--control-plane", "mine"}
	r := hook(t, 1, args...)
	for _, want := range []string{"joinConfiguration.nodeRegistration.criSocket: have unix:///mine, want unix:///var/run/containerd/containerd.sock", "Contradiction", "WOULD BE REPLACED"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("it does not say %q\n%s", want, r)
		}
	}
	hook(t, 1, append(args, "--apply", "--allow-rollout")...)
	got := &controlplanev1.KubeadmControlPlane{}
	if err := m.Client().Get(t.Context(), client.ObjectKeyFromObject(kcp), got); err != nil {
		t.Fatal(err)
	}
	if s := got.Spec.KubeadmConfigSpec.JoinConfiguration.NodeRegistration; s.CRISocket != "unix:///mine" || len(s.KubeletExtraArgs) == 0 || *got.Spec.Replicas != 3 {
		t.Errorf("not kept, or not filled: %+v", got.Spec)
	}
	safe(t, m, ns, "c1")
}

func TestPrefill_Refusals(t *testing.T) {
	m := target(t)
	stack.Must(stack.Cluster("empty").InNamespace("refused").Create(t.Context(), m))(t)
	standAloneOn(t, m, "refused", "c1", 3, func(o client.Object) {
		if c, ok := o.(*clusterv1.Cluster); ok {
			c.Annotations = map[string]string{labels.Adoption: labels.Never}
		}
	})
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"nobody"}, "ClusterNotFound"},
		{[]string{"empty"}, "NoStandAloneMachine"},
		{[]string{"c1", "--apply"}, "AdoptionOptedOut"},
	} {
		r := hook(t, 1, append([]string{"prefill", "--kubeconfig", m.Kubeconfig(), "-n", "refused"}, test.args...)...)
		if !strings.Contains(r.stdout+r.stderr, test.want) || strings.Contains(r.stdout, "kind:") {
			t.Errorf("want %s\n%s", test.want, r)
		}
	}
	// Printing is no adoption.
	r := hook(t, 0, "prefill", "--kubeconfig", m.Kubeconfig(), "-n", "refused", "c1")
	if !strings.Contains(r.stdout, "AdoptionOptedOut") {
		t.Errorf("it does not say that it was opted out\n%s", r)
	}
	var list controlplanev1.KubeadmControlPlaneList
	if err := m.Client().List(t.Context(), &list); err != nil || len(list.Items) > 0 {
		t.Errorf("%v: %d control planes", err, len(list.Items))
	}
}
