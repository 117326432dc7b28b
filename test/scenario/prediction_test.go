package scenario_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/rollout"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/test/stack"
)

// variation is a control plane that differs in one thing from the one that adopts a
// Machine without a rollout.
type variation struct {
	name string
	// rolls is what the test was written with, so that a prediction that always says
	// the same, and an upstream that changes, are noticed.
	rolls  bool
	change func(*controlplanev1.KubeadmControlPlaneSpec)
	// machine changes the annotations of the infrastructure machine.
	machine map[string]string
}

func config(change func(*bootstrapv1.KubeadmConfigSpec)) func(*controlplanev1.KubeadmControlPlaneSpec) {
	return func(s *controlplanev1.KubeadmControlPlaneSpec) { change(&s.KubeadmConfigSpec) }
}

var variations = []variation{
	{name: "the same"},
	{name: "version", rolls: true, change: func(s *controlplanev1.KubeadmControlPlaneSpec) { s.Version = "v1.36.1" }},
	{name: "rollout after, passed", rolls: true, change: func(s *controlplanev1.KubeadmControlPlaneSpec) {
		s.Rollout.After = metav1.NewTime(time.Now().Add(-time.Second))
	}},
	{name: "rollout after, to come", change: func(s *controlplanev1.KubeadmControlPlaneSpec) {
		s.Rollout.After = metav1.NewTime(time.Now().Add(time.Hour))
	}},
	{name: "DNS", change: config(func(c *bootstrapv1.KubeadmConfigSpec) { c.ClusterConfiguration.DNS.ImageTag = "v1.2.3" })},
	{name: "API server's arguments", rolls: true, change: config(func(c *bootstrapv1.KubeadmConfigSpec) {
		c.ClusterConfiguration.APIServer.ExtraArgs = []bootstrapv1.Arg{{Name: "profiling", Value: ptr.To("false")}}
	})},
	{name: "etcd's arguments", rolls: true, change: config(func(c *bootstrapv1.KubeadmConfigSpec) {
		c.ClusterConfiguration.Etcd.Local.ExtraArgs = []bootstrapv1.Arg{{Name: "quota-backend-bytes", Value: ptr.To("1")}}
	})},
	{name: "image repository", rolls: true, change: config(func(c *bootstrapv1.KubeadmConfigSpec) {
		c.ClusterConfiguration.ImageRepository = "registry.example.com/k8s"
	})},
	{name: "feature gates", rolls: true, change: config(func(c *bootstrapv1.KubeadmConfigSpec) {
		c.ClusterConfiguration.FeatureGates = map[string]bool{"RootlessControlPlane": true}
	})},
	{name: "files", rolls: true, change: config(func(c *bootstrapv1.KubeadmConfigSpec) {
		c.Files = []bootstrapv1.File{{Path: "/etc/motd", Content: "hello"}}
	})},
	{name: "commands", rolls: true, change: config(func(c *bootstrapv1.KubeadmConfigSpec) { c.PreKubeadmCommands = []string{"true"} })},
	{name: "verbosity", rolls: true, change: config(func(c *bootstrapv1.KubeadmConfigSpec) { c.Verbosity = ptr.To[int32](5) })},
	{name: "no taints instead of the default", rolls: true, change: config(func(c *bootstrapv1.KubeadmConfigSpec) {
		c.InitConfiguration.NodeRegistration.Taints = &[]corev1.Taint{}
		c.JoinConfiguration.NodeRegistration.Taints = &[]corev1.Taint{}
	})},
	{name: "kubelet's arguments", rolls: true, change: config(func(c *bootstrapv1.KubeadmConfigSpec) {
		more := bootstrapv1.Arg{Name: "v", Value: ptr.To("2")}
		c.InitConfiguration.NodeRegistration.KubeletExtraArgs = append(slices.Clone(c.InitConfiguration.NodeRegistration.KubeletExtraArgs), more)
		c.JoinConfiguration.NodeRegistration.KubeletExtraArgs = append(slices.Clone(c.JoinConfiguration.NodeRegistration.KubeletExtraArgs), more)
	})},
	{name: "format said", change: config(func(c *bootstrapv1.KubeadmConfigSpec) { c.Format = bootstrapv1.CloudConfig })},
	{name: "how long components may take", change: config(func(c *bootstrapv1.KubeadmConfigSpec) {
		c.InitConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds = ptr.To[int32](300)
		c.JoinConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds = ptr.To[int32](300)
	})},
	{name: "labels of Machines", change: func(s *controlplanev1.KubeadmControlPlaneSpec) {
		s.MachineTemplate.ObjectMeta.Labels = map[string]string{"tier": "gold"}
	}},
	{name: "cloned from another template", rolls: true, machine: map[string]string{
		clusterv1.TemplateClonedFromNameAnnotation: "other", clusterv1.TemplateClonedFromGroupKindAnnotation: "DevMachineTemplate.infrastructure.cluster.x-k8s.io",
	}},
	{name: "half of where it was cloned from", machine: map[string]string{clusterv1.TemplateClonedFromNameAnnotation: "other"}},
	{name: "certificates' life", rolls: true, change: config(func(c *bootstrapv1.KubeadmConfigSpec) {
		c.ClusterConfiguration.CertificateValidityPeriodDays = 100
	})},
}

// TestPrediction_EqualsWhatUpstreamDoes adopts a Machine by each variation, though
// it be replaced, and compares what KubeadmControlPlane does with what was predicted.
func TestPrediction_EqualsWhatUpstreamDoes(t *testing.T) {
	const namespace = "variations"
	chosen := variations
	if !soak() {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		chosen = slices.Clone(variations)
		random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		chosen = chosen[:4]
	}
	builders := make([]*stack.ClusterBuilder, len(chosen))
	for i := range chosen {
		builders[i] = stack.Cluster(fmt.Sprintf("v%d", i)).InNamespace(namespace).StandAloneControlPlane(1)
		stack.Must(builders[i].Create(t.Context(), world.source))(t)
	}
	for i, v := range chosen {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			v.play(t, builders[i].Key())
		})
	}
}

func (v variation) play(t *testing.T, key client.ObjectKey) {
	ctx, m := t.Context(), world.source
	if err := stack.WaitReady(ctx, m, key); err != nil {
		t.Fatal(err)
	}
	machine := &clusterv1.Machine{}
	if err := m.Client().Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name + "-cp-0"}, machine); err != nil {
		t.Fatal(err)
	}
	cp := v.controlPlane(t, key)
	for k, value := range v.machine { // after prefill, which would name its template so that it fits
		merge(t, m, "DevMachine/"+machine.Spec.InfrastructureRef.Name, key.Namespace, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, k, value))
	}

	cluster := &clusterv1.Cluster{}
	if err := m.Client().Get(ctx, key, cluster); err != nil {
		t.Fatal(err)
	}
	predicted, err := rollout.Predict(ctx, m.Client(), cluster, cp, []*clusterv1.Machine{machine})
	if err != nil {
		t.Fatal(err)
	}
	verdict, ok := predicted[graph.ID{Group: graph.CoreGroup, Kind: "Machine", Namespace: key.Namespace, Name: machine.Name}]
	if !ok || verdict.UpToDate == v.rolls {
		t.Fatalf("predicted %+v, want a rollout: %t", verdict, v.rolls)
	}
	for range verdict.Reasons {
		t.Logf("predicted: %v", verdict.Reasons)
		break
	}

	post := []string{"post", key.Name, "-n", key.Namespace, "--kubeconfig", m.Kubeconfig(), "--watch-after", "0s", "--timeout", "2m"}
	if v.rolls {
		refused := hook(t, 4, post...)
		if !strings.Contains(refused.Stdout, machine.Name) {
			t.Errorf("the Machine is not named\n%s", refused)
		}
		post = append(post, "--allow-rollout", "--max-version-skew", "1")
	}
	hook(t, 0, post...)
	waitFor(t, 3*time.Minute, fmt.Sprintf("the control plane to replace %s: %t", machine.Name, v.rolls), func() bool {
		others := 0
		for name := range identities(t, m, key.Namespace) {
			if strings.HasPrefix(name, cp.Name+"-") && name != machine.Name {
				others++
			}
		}
		if err := m.Client().Get(ctx, client.ObjectKeyFromObject(cp), cp); err != nil {
			t.Fatal(err)
		}
		if v.rolls {
			return others > 0
		}
		if others > 0 {
			t.Fatalf("the control plane has made %d Machines, which nobody predicted: %+v", others, cp.Status.Conditions)
		}
		return ptr.Deref(cp.Status.UpToDateReplicas, 0) == 1 && conditions.IsTrue(cp, controlplanev1.KubeadmControlPlaneAvailableCondition)
	})
	// One that does nothing is of no further interest, and one that rolls need not end.
	merge(t, m, "Cluster/"+key.Name, key.Namespace, `{"spec":{"paused":true}}`)
}

// controlPlane applies what prefill prints, varied, held so that it does not act yet.
func (v variation) controlPlane(t *testing.T, key client.ObjectKey) *controlplanev1.KubeadmControlPlane {
	t.Helper()
	m := world.source
	// With a finding where the Machine would be replaced whatever the control plane is.
	printed, err := world.env.Hook(t.Context(), "prefill", key.Name, "-n", key.Namespace, "--kubeconfig", m.Kubeconfig(), "-o", "yaml", "--control-plane", key.Name)
	if err != nil || printed.Code > 1 {
		t.Fatal(err, printed)
	}
	cp := &controlplanev1.KubeadmControlPlane{}
	for _, o := range manifests(t, printed.Stdout) {
		if o.GetKind() != "KubeadmControlPlane" {
			if err := m.Client().Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, cp); err != nil {
			t.Fatal(err)
		}
	}
	if v.change != nil {
		v.change(&cp.Spec)
	}
	cp.Annotations = map[string]string{graph.PausedAnnotation: "", graph.HeldAnnotation: "the test"}
	if err := m.Client().Create(t.Context(), cp); err != nil {
		t.Fatal(err)
	}
	merge(t, m, "Cluster/"+key.Name, key.Namespace, fmt.Sprintf(
		`{"spec":{"controlPlaneRef":{"apiGroup":%q,"kind":"KubeadmControlPlane","name":%q}}}`, controlplanev1.GroupVersion.Group, cp.Name))
	return cp
}
