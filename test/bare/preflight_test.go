package bare_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
	"github.com/move-hook/move-hook/test/stack"
)

// patient is a whole workload cluster c in a namespace of its own, to which a test
// does what preflight is to find.
type patient struct {
	t     *testing.T
	admin *management.Cluster
	ns    string
}

func (p patient) String() string { return "namespace " + p.ns }

func (p patient) id(gk graph.GroupKind, name string) graph.ID { return id(gk, p.ns, name) }

// raw reads an object in the version that the server prefers.
func (p patient) raw(of graph.ID) *unstructured.Unstructured {
	p.t.Helper()
	o := get(p.t, p.admin, of)
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.APIVersion, of.Kind))
	if err := world.Client().Get(p.t.Context(), client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, u); err != nil {
		p.t.Fatal(err)
	}
	return u
}

// set sets (or with nil removes) one field; those of status by way of the subresource.
func (p patient) set(of graph.ID, value any, path ...string) {
	p.t.Helper()
	u := p.raw(of)
	if value == nil {
		unstructured.RemoveNestedField(u.Object, path...)
	} else if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		p.t.Fatal(err)
	}
	update := func() error { return world.Client().Update(p.t.Context(), u) }
	if path[0] == "status" {
		update = func() error { return world.Client().Status().Update(p.t.Context(), u) }
	}
	if err := update(); err != nil {
		p.t.Fatal(err)
	}
}

func (p patient) annotate(of graph.ID, key, value string) {
	p.t.Helper()
	p.set(of, value, "metadata", "annotations", key)
}

func (p patient) own(child graph.ID, owners ...metav1.OwnerReference) {
	p.t.Helper()
	own(p.t, p.admin, child, owners...)
}

// preflight runs the program and gives ID and object of each finding, without the namespace.
func (p patient) preflight(args ...string) []string {
	p.t.Helper()
	var got []string
	for _, f := range p.findings(args...) {
		got = append(got, f.ID+" "+strings.ReplaceAll(f.Object, p.ns+"/", ""))
	}
	return got
}

func (p patient) findings(args ...string) []finding.Finding {
	p.t.Helper()
	all := append([]string{"preflight", "--kubeconfig", world.Kubeconfig(), "-n", p.ns, "-o", "json"}, args...)
	cmd := run(p.t, all...)
	var result struct{ Findings []finding.Finding }
	if err := json.Unmarshal([]byte(cmd.stdout), &result); err != nil {
		p.t.Fatalf("%v\n%s", err, cmd)
	}
	severe := slices.ContainsFunc(result.Findings, func(f finding.Finding) bool { return f.Severity != finding.Notes })
	if want := map[bool]int{false: 0, true: 1}[severe]; cmd.code != want {
		p.t.Errorf("want exit code %d\n%s", want, cmd)
	}
	return result.Findings
}

var (
	devCluster  = infra("DevCluster")
	devMachine  = infra("DevMachine")
	devTemplate = infra("DevMachineTemplate")
)

// TestPreflight_EachFaultIsFoundAndNothingElse plants one fault in a cluster that has
// everything else as upstream's controllers leave it.
func TestPreflight_EachFaultIsFoundAndNothingElse(t *testing.T) {
	admin := open(t, nil)
	const cp, set, worker = "c-cp-0", "c-md-0-x", "c-md-0-x-0"
	for name, c := range map[string]struct {
		plant func(patient)
		want  []string
	}{
		"clean": {func(patient) {}, nil},
		"paused": {func(p patient) { p.set(p.id(graph.Cluster, "c"), true, "spec", "paused") },
			[]string{"Paused Cluster c"}},
		"infrastructure": {func(p patient) {
			p.set(p.id(graph.Cluster, "c"), false, "status", "initialization", "infrastructureProvisioned")
		}, []string{"InfrastructureNotProvisioned Cluster c"}},
		"no-node": {func(p patient) { p.set(p.id(graph.Machine, worker), map[string]any{"phase": "Provisioned"}, "status") },
			[]string{"MachineWithoutNode Machine " + worker}},
		"not-initialized": {func(p patient) { p.set(p.id(graph.Machine, cp), map[string]any{"phase": "Provisioned"}, "status") },
			[]string{"ControlPlaneNotInitialized KubeadmControlPlane c-cp", "MachineWithoutNode Machine " + cp}},
		"being-deleted": {func(p patient) {
			config := p.id(graph.KubeadmConfig, worker)
			p.set(config, []any{"example.com/stay"}, "metadata", "finalizers")
			if err := world.Client().Delete(p.t.Context(), p.raw(config)); err != nil {
				p.t.Fatal(err)
			}
		}, []string{"BeingDeleted KubeadmConfig " + worker}},
		"template": {func(p patient) { p.own(p.id(devTemplate, "c-cp")) },
			[]string{"LeftBehind DevMachineTemplate c-cp"}},
		"file-from-secret": {func(p patient) {
			create(p.t, secret(p.ns, "cloud-config", nil))
			p.set(p.id(graph.KubeadmConfig, worker), []any{map[string]any{"path": "/etc/cloud", "contentFrom": map[string]any{
				"secret": map[string]any{"name": "cloud-config", "key": "value"}}}}, "spec", "files")
		}, []string{"LeftBehind Secret cloud-config"}},
		"drain-rule": {func(p patient) {
			create(p.t, &clusterv1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "gently"},
				Spec: clusterv1.MachineDrainRuleSpec{Drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorSkip}}})
		}, []string{"LeftBehind MachineDrainRule gently"}},
		"dangling": {func(p patient) {
			p.set(p.id(graph.MachineDeployment, "c-md-0"), "gone", "spec", "template", "spec", "bootstrap", "configRef", "name")
		}, []string{"DanglingReference KubeadmConfigTemplate gone"}},
		"unseen-owner": {func(p patient) {
			p.own(p.id(devCluster, "c"), withUID(by(p.t, admin, p.id(graph.Cluster, "c")), "another"))
		}, []string{"UnseenOwner DevCluster c"}},
		"collector": {func(p patient) {
			p.own(p.id(graph.Secret, worker), withUID(by(p.t, admin, p.id(graph.KubeadmConfig, worker)), "another"))
		}, []string{"CollectorTakes Secret " + worker}},
		"stale": {func(p patient) {
			p.own(p.id(graph.Secret, worker), by(p.t, admin, p.id(graph.Machine, worker)), withUID(by(p.t, admin, p.id(graph.KubeadmConfig, worker)), "another"))
		}, []string{"OwnerStale Secret " + worker}},
		"gone": {func(p patient) {
			gone := withUID(by(p.t, admin, p.id(graph.MachineSet, set)), "gone")
			gone.Name = "gone"
			p.own(p.id(graph.Secret, worker), by(p.t, admin, p.id(graph.KubeadmConfig, worker)), gone)
		}, []string{"OwnerGone Secret " + worker}},
		"owner-outside": {func(p patient) {
			custom := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "outside"}}
			if err := world.Client().Create(p.t.Context(), custom); err != nil { // of a kind that clusterctl does not move
				p.t.Fatal(err)
			}
			p.own(p.id(graph.Machine, worker), controlledBy(p.t, admin, p.id(graph.MachineSet, set)),
				metav1.OwnerReference{APIVersion: "v1", Kind: "ServiceAccount", Name: custom.Name, UID: custom.UID})
		}, []string{"LeftBehind DevMachine " + worker, "LeftBehind KubeadmConfig " + worker, "LeftBehind Machine " + worker, "LeftBehind Secret " + worker, "LeftBehind ServiceAccount outside"}},
		"twice": {func(p patient) {
			once := by(p.t, admin, p.id(graph.KubeadmConfig, worker))
			again := once
			again.BlockOwnerDeletion = ptr.To(true) // Of two that are equal the server keeps one.
			p.own(p.id(graph.Secret, worker), once, again)
		}, []string{"OwnerTwice Secret " + worker}},
		"cycle": {func(p patient) {
			create(p.t, configMap(p.ns, "a", map[string]string{graph.ClusterNameLabel: "c"}), configMap(p.ns, "b", map[string]string{graph.ClusterNameLabel: "c"}))
			a, b := p.id(graph.ConfigMap, "a"), p.id(graph.ConfigMap, "b")
			p.own(a, by(p.t, admin, b), by(p.t, admin, p.id(graph.Cluster, "c")))
			p.own(b, by(p.t, admin, a))
		}, []string{"OwnerCycle ConfigMap a", "OwnerCycle ConfigMap b"}},
		"old-version": {func(p patient) {
			old := by(p.t, admin, p.id(graph.Cluster, "c"))
			old.APIVersion = graph.CoreGroup + "/v1beta1"
			p.own(p.id(devCluster, "c"), old)
		}, []string{"OwnerVersion DevCluster c"}},
		"scaling": {func(p patient) { p.set(p.id(graph.MachineSet, set), int64(3), "spec", "replicas") },
			[]string{"InFlight MachineSet " + set}},
		"rollout": {func(p patient) {
			p.set(p.id(graph.KubeadmControlPlane, "c-cp"), int64(1), "status", "replicas")
			p.set(p.id(graph.KubeadmControlPlane, "c-cp"), int64(0), "status", "upToDateReplicas")
		}, []string{"InFlight KubeadmControlPlane c-cp"}},
		"pool": {func(p patient) {
			pool := &unstructured.Unstructured{Object: map[string]any{"apiVersion": clusterv1.GroupVersion.String(), "kind": "MachinePool",
				"metadata": map[string]any{"namespace": p.ns, "name": "c-pool", "labels": map[string]any{graph.ClusterNameLabel: "c"}},
				"spec": map[string]any{"clusterName": "c", "replicas": int64(2), "template": map[string]any{"spec": map[string]any{
					"clusterName": "c", "bootstrap": map[string]any{"dataSecretName": worker},
					"infrastructureRef": map[string]any{"apiGroup": graph.CoreGroup, "kind": "Machine", "name": worker}}}}}}
			create(p.t, pool)
			p.own(p.id(graph.MachinePool, "c-pool"), by(p.t, admin, p.id(graph.Cluster, "c")))
			p.set(p.id(graph.MachinePool, "c-pool"), int64(1), "status", "replicas")
		}, []string{"InFlight MachinePool c-pool"}},
		"remediation": {func(p patient) {
			p.annotate(p.id(graph.KubeadmControlPlane, "c-cp"), "controlplane.cluster.x-k8s.io/remediation-in-progress", "{}")
		}, []string{"InFlight KubeadmControlPlane c-cp"}},
		"in-place": {func(p patient) {
			p.annotate(p.id(graph.Machine, worker), "in-place-updates.internal.cluster.x-k8s.io/update-in-progress", "")
		}, []string{"InFlight Machine " + worker}},
		"hooks": {func(p patient) {
			p.annotate(p.id(graph.Cluster, "c"), "runtime.cluster.x-k8s.io/pending-hooks", "AfterClusterUpgrade")
		}, []string{"InFlight Cluster c"}},
		"block-move": {func(p patient) { p.annotate(p.id(devCluster, "c"), graph.BlockMoveAnnotation, "true") },
			[]string{"BlockMove DevCluster c"}},
		"provider-id": {func(p patient) { p.set(p.id(devMachine, worker), nil, "spec", "providerID") },
			[]string{"ProviderIDNotInSpec DevMachine " + worker}},
		"endpoint": {func(p patient) { p.set(p.id(devCluster, "c"), nil, "spec", "controlPlaneEndpoint") },
			[]string{"EndpointNotInSpec Cluster c"}},
		"expiry": {func(p patient) {
			p.set(p.id(graph.Machine, cp), "2099-01-01T00:00:00Z", "status", "certificatesExpiryDate")
		}, []string{"CertificatesExpiryForgotten Machine " + cp}},
		"overlap": {func(p patient) {
			all := map[string]any{graph.ClusterNameLabel: "c"}
			first := p.raw(p.id(graph.MachineDeployment, "c-md-0"))
			second := first.DeepCopy()
			for _, field := range []string{"uid", "resourceVersion", "creationTimestamp"} {
				unstructured.RemoveNestedField(second.Object, "metadata", field)
			}
			second.SetName("c-md-1")
			p.mustSet(second, int64(0), "spec", "replicas")
			p.mustSet(second, all, "spec", "selector", "matchLabels")
			create(p.t, second)
			p.own(p.id(graph.MachineDeployment, "c-md-1"), by(p.t, admin, p.id(graph.Cluster, "c")))
		}, []string{"OverlappingSelectors MachineDeployment c-md-1"}},
		"will-roll": {func(p patient) {
			p.set(p.id(graph.KubeadmControlPlane, "c-cp"), "registry.example.com", "spec", "kubeadmConfigSpec", "clusterConfiguration", "imageRepository")
		}, []string{"WillRollOut Machine " + cp}},
		"opted-out": {func(p patient) {
			p.annotate(p.id(graph.Cluster, "c"), labels.Adoption, labels.Never)
			p.own(p.id(graph.Machine, cp), by(p.t, admin, p.id(graph.Cluster, "c")))
			p.set(p.id(graph.KubeadmControlPlane, "c-cp"), int64(0), "spec", "replicas")
		}, []string{"AdoptionOptedOut Cluster c"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := ill(t, admin, name)
			c.plant(p)
			if got := p.preflight(); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func (p patient) mustSet(u *unstructured.Unstructured, value any, path ...string) {
	p.t.Helper()
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		p.t.Fatal(err)
	}
}

func ill(t *testing.T, admin *management.Cluster, name string) patient {
	t.Helper()
	p := patient{t, admin, "preflight-" + name}
	builder := stack.Cluster("c").InNamespace(p.ns).ControlPlane(1).Workers("md-0", 1)
	if err := builder.Synthesize(t.Context(), world.Management); err != nil {
		t.Fatal(err)
	}
	if err := stack.Provisioned(t.Context(), world, p.ns); err != nil {
		t.Fatal(err)
	}
	return p
}

// What is in another namespace is only seen by who looks there.
func TestPreflight_AnOwnerInAnotherNamespace(t *testing.T) {
	admin := open(t, nil)
	p, other := ill(t, admin, "elsewhere"), ill(t, admin, "elsewhere-other")
	const worker = "c-md-0-x-0"
	theirs := by(t, admin, other.id(devTemplate, "c-cp"))
	theirs.Name = "theirs"
	p.own(p.id(graph.Secret, worker), by(t, admin, p.id(graph.KubeadmConfig, worker)), theirs)
	r := run(t, "preflight", "--kubeconfig", world.Kubeconfig(), "-A", "-o", "json")
	var result struct{ Findings []finding.Finding }
	if err := json.Unmarshal([]byte(r.stdout), &result); err != nil {
		t.Fatalf("%v\n%s", err, r)
	}
	var got []string
	for _, f := range result.Findings {
		if strings.Contains(f.Object, " "+p.ns+"/") {
			got = append(got, f.ID+" "+f.Object)
		}
	}
	if want := []string{"OwnerElsewhere Secret " + p.ns + "/" + worker}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q\n%s", got, want, r)
	}
}

// Whose pause it is decides what is to be done.
func TestPreflight_SaysWhosePauseItIs(t *testing.T) {
	admin := open(t, nil)
	for name, c := range map[string]struct {
		plant func(patient, graph.ID)
		says  string
	}{
		"user":       {func(patient, graph.ID) {}, "is paused by its user"},
		"clusterctl": {func(p patient, c graph.ID) { p.annotate(c, graph.RecordAnnotation, "checksum") }, "a clusterctl move that was interrupted"},
		"ours":       {func(p patient, c graph.ID) { p.annotate(c, graph.HeldAnnotation, "move-hook 2026-01-02T03:04:05Z") }, "is held by move-hook"},
	} {
		t.Run(name, func(t *testing.T) {
			p := ill(t, admin, "pause-"+name)
			cluster := p.id(graph.Cluster, "c")
			p.set(cluster, true, "spec", "paused")
			c.plant(p, cluster)
			found := p.findings()
			if len(found) != 1 || found[0].ID != "Paused" || !strings.Contains(found[0].Message, c.says) {
				t.Errorf("want %q, got %v", c.says, found)
			}
		})
	}
}

// A rollout that was asked for is judged by the age of Machines, which a move makes anew.
func TestPreflight_ARolloutThatAMoveForgets(t *testing.T) {
	p := ill(t, open(t, nil), "rollout-after")
	made := get(t, p.admin, p.id(graph.Machine, "c-cp-0")).Created
	p.set(p.id(graph.KubeadmControlPlane, "c-cp"), made.Add(time.Second).Format(time.RFC3339), "spec", "rollout", "after")
	eventually(t, p, "found", func() bool {
		return slices.Contains(p.preflight(), "RolloutAfterForgotten KubeadmControlPlane c-cp")
	})
}

// A ClusterClass that Clusters of another namespace use is left on the source, too.
func TestPreflight_AClassThatOthersUse(t *testing.T) {
	p := ill(t, open(t, nil), "class")
	create(t, stack.Class(p.ns, "quick")...)
	use := clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "quick", Namespace: p.ns}, Version: stack.KubernetesVersion,
		ControlPlane: clusterv1.ControlPlaneTopology{Replicas: ptr.To(int32(1))}}
	create(t, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns + "-other", Name: "c9"}, Spec: clusterv1.ClusterSpec{Topology: use}})
	p.set(p.id(graph.Cluster, "c"), map[string]any{"classRef": map[string]any{"name": "quick"}, "version": stack.KubernetesVersion}, "spec", "topology")
	// Here nobody has made the class the owner of its templates.
	got := slices.DeleteFunc(p.preflight(), func(f string) bool { return strings.HasPrefix(f, "LeftBehind ") })
	if want := []string{"StaysOnBothSides ClusterClass quick"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is accepted is counted and does not decide; what clusterctl refuses cannot be accepted.
func TestPreflight_IgnoresWhatItIsToldTo(t *testing.T) {
	p := ill(t, open(t, nil), "ignore")
	p.own(p.id(devTemplate, "c-cp"))
	at := []string{"--kubeconfig", world.Kubeconfig(), "-n", p.ns}
	if r := hook(t, 0, append([]string{"preflight", "--ignore", "LeftBehind"}, at...)...); !strings.Contains(r.stdout, "Ignored: LeftBehind 1") {
		t.Errorf("it does not say what it ignores\n%s", r)
	}
	hook(t, 1, append([]string{"preflight"}, at...)...)
	hook(t, 0, append([]string{"preflight", "--fail-on", "stops"}, at...)...)
	hook(t, 2, append([]string{"preflight", "--ignore", "Nonsense"}, at...)...)
	if r := hook(t, 2, append([]string{"pre", "--ignore", "Paused"}, at...)...); !strings.Contains(r.stderr, "cannot be ignored") {
		t.Errorf("it does not say why\n%s", r)
	}
	p.set(p.id(devMachine, "c-cp-0"), nil, "spec", "providerID")
	hook(t, 1, append([]string{"pre", "--dry-run"}, at...)...)
	hook(t, 0, append([]string{"pre", "--dry-run", "--ignore", "ProviderIDNotInSpec"}, at...)...)
	if r := hook(t, 1, append([]string{"preflight", "-o", "junit"}, at...)...); !strings.Contains(r.stdout, `failures="2"`) {
		t.Errorf("no two failures\n%s", r)
	}
}
