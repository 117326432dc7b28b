package rollout

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/pkg/adopt"
)

const infraGroup = "infrastructure.cluster.x-k8s.io"

// lab is a stand-alone control-plane Machine and a control plane that fits it.
type lab struct {
	cluster  *clusterv1.Cluster
	kcp      *controlplanev1.KubeadmControlPlane
	machine  *clusterv1.Machine
	config   *bootstrapv1.KubeadmConfig
	infra    *unstructured.Unstructured
	template *unstructured.Unstructured
	// contract is the CRDs' label value; "" for CRDs without it.
	contract string
	// denied is answered instead of an object of that name.
	denied map[string]error
	reads  map[string]int
}

func newLab() *lab {
	l := &lab{contract: "v1beta1", denied: map[string]error{}, reads: map[string]int{}}
	l.cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c1"}}
	l.kcp = &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp"}}
	l.kcp.Spec.Version = "v1.30.2"
	l.kcp.Spec.Replicas = ptr.To[int32](1)
	l.kcp.Spec.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infraGroup, Kind: "TestMachineTemplate", Name: "t"}
	spec := &l.kcp.Spec.KubeadmConfigSpec
	spec.ClusterConfiguration.ImageRepository = "registry.k8s.io"
	spec.ClusterConfiguration.APIServer.CertSANs = []string{"c1.example.com"}
	spec.InitConfiguration.NodeRegistration.Name = "node"
	spec.JoinConfiguration.NodeRegistration.Name = "node"
	spec.Files = []bootstrapv1.File{{Path: "/etc/secret", Content: "swordfish"}}

	l.machine = &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour))}}
	l.machine.Spec.Version = "v1.30.2"
	l.machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubeadmConfig", Name: "b"}
	l.machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infraGroup, Kind: "TestMachine", Name: "i"}

	l.config = &bootstrapv1.KubeadmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}}
	l.config.Spec = *spec.DeepCopy()
	l.config.Spec.InitConfiguration = bootstrapv1.InitConfiguration{}
	l.config.Spec.JoinConfiguration.ControlPlane = &bootstrapv1.JoinControlPlane{}
	l.gate(&l.config.Spec)

	l.infra = object("TestMachine", "i")
	l.template = object("TestMachineTemplate", "t")
	l.template.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"size": "big"}}}
	return l
}

func object(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(infraGroup + "/v1beta1")
	u.SetKind(kind)
	u.SetNamespace("ns")
	u.SetName(name)
	return u
}

// gate sets what the control plane sets for this Kubernetes version by itself: nothing before v1.31.
func (l *lab) gate(spec *bootstrapv1.KubeadmConfigSpec) {
	if l.kcp.Spec.Version >= "v1.31" {
		spec.ClusterConfiguration.FeatureGates = map[string]bool{"ControlPlaneKubeletLocalMode": true}
	}
}

// init makes the Machine the one that ran kubeadm init.
func (l *lab) init() {
	l.config.Spec.InitConfiguration = *l.kcp.Spec.KubeadmConfigSpec.InitConfiguration.DeepCopy()
	l.config.Spec.JoinConfiguration = bootstrapv1.JoinConfiguration{}
}

func (l *lab) cloned(kind, name string) {
	l.infra.SetAnnotations(map[string]string{
		clusterv1.TemplateClonedFromNameAnnotation:      name,
		clusterv1.TemplateClonedFromGroupKindAnnotation: kind + "." + infraGroup,
	})
}

// Get serves what Predict may read, and nothing else.
func (l *lab) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	l.reads[key.Name]++
	if err := l.denied[key.Name]; err != nil {
		return err
	}
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, key.Name)
	switch o := o.(type) {
	case *bootstrapv1.KubeadmConfig:
		if l.config == nil || key.Name != l.config.Name {
			return notFound
		}
		l.config.DeepCopyInto(o)
		return nil
	case *metav1.PartialObjectMetadata:
		if l.contract != "" {
			o.SetLabels(map[string]string{"cluster.x-k8s.io/" + l.contract: "v1beta1"})
		}
		return nil
	case *unstructured.Unstructured:
		for _, have := range []*unstructured.Unstructured{l.infra, l.template} {
			if have != nil && have.GetName() == key.Name && have.GetKind() == o.GetKind() {
				o.Object = have.DeepCopy().Object
				return nil
			}
		}
		return notFound
	}
	return errors.New("nobody may read this")
}

// List is never called.
func (l *lab) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nobody lists")
}

func (l *lab) predict(t *testing.T) adopt.Rollout {
	t.Helper()
	got, err := Predict(t.Context(), l, l.cluster, l.kcp, []*clusterv1.Machine{l.machine})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[machineID(l.machine)].Version != ClusterAPIVersion {
		t.Fatalf("verdicts %v", got)
	}
	return got[machineID(l.machine)]
}

// TestPredict_BothSidesOfEachRow has upstream's rules, one change each: fields is
// why the Machine would be replaced, empty where it stays.
func TestPredict_BothSidesOfEachRow(t *testing.T) {
	config := func(f func(*bootstrapv1.KubeadmConfigSpec)) func(*lab) {
		return func(l *lab) { f(&l.config.Spec) }
	}
	for name, c := range map[string]struct {
		change func(*lab)
		fields []string
	}{
		"equal":            {func(*lab) {}, nil},
		"equal, as init":   {(*lab).init, nil},
		"no config":        {func(l *lab) { l.config = nil }, nil},
		"no config named":  {func(l *lab) { l.machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{} }, nil},
		"no infra machine": {func(l *lab) { l.infra = nil }, nil},

		"version":    {func(l *lab) { l.machine.Spec.Version = "v1.30.1" }, []string{"spec.version: have v1.30.1, want v1.30.2"}},
		"no version": {func(l *lab) { l.machine.Spec.Version = "" }, []string{"spec.version: have none, want v1.30.2"}},

		"certificates expire": {func(l *lab) {
			l.kcp.Spec.Rollout.Before.CertificatesExpiryDays = 30
			l.machine.Status.CertificatesExpiryDate = metav1.NewTime(time.Now().Add(24 * time.Hour))
		}, []string{"spec.rollout.before.certificatesExpiryDays: have certificates until"}},
		"certificates expire by the Machine's annotation": {func(l *lab) {
			l.kcp.Spec.Rollout.Before.CertificatesExpiryDays = 30
			l.machine.Annotations = map[string]string{clusterv1.MachineCertificatesExpiryDateAnnotation: time.Now().Add(24 * time.Hour).Format(time.RFC3339)}
		}, []string{"spec.rollout.before.certificatesExpiryDays"}},
		"certificates expire by the config's annotation": {func(l *lab) {
			l.kcp.Spec.Rollout.Before.CertificatesExpiryDays = 30
			l.config.Annotations = map[string]string{clusterv1.MachineCertificatesExpiryDateAnnotation: time.Now().Add(24 * time.Hour).Format(time.RFC3339)}
		}, []string{"spec.rollout.before.certificatesExpiryDays"}},
		"certificates last": {func(l *lab) {
			l.kcp.Spec.Rollout.Before.CertificatesExpiryDays = 30
			l.machine.Status.CertificatesExpiryDate = metav1.NewTime(time.Now().Add(300 * 24 * time.Hour))
		}, nil},
		"certificates unknown": {func(l *lab) { l.kcp.Spec.Rollout.Before.CertificatesExpiryDays = 30 }, nil},

		"rollout after, older":   {func(l *lab) { l.kcp.Spec.Rollout.After = metav1.NewTime(time.Now().Add(-time.Minute)) }, []string{"spec.rollout.after: have created"}},
		"rollout after, younger": {func(l *lab) { l.kcp.Spec.Rollout.After = metav1.NewTime(time.Now().Add(-2 * time.Hour)) }, nil},
		"rollout after, ahead":   {func(l *lab) { l.kcp.Spec.Rollout.After = metav1.NewTime(time.Now().Add(time.Hour)) }, nil},

		"cloned from it":           {func(l *lab) { l.cloned("TestMachineTemplate", "t") }, nil},
		"cloned from another name": {func(l *lab) { l.cloned("TestMachineTemplate", "old") }, []string{"spec.machineTemplate.spec.infrastructureRef: have TestMachineTemplate.infrastructure.cluster.x-k8s.io old, want TestMachineTemplate.infrastructure.cluster.x-k8s.io t"}},
		"cloned from another kind": {func(l *lab) { l.cloned("OtherMachineTemplate", "t") }, []string{"spec.machineTemplate.spec.infrastructureRef"}},
		"cloned, one annotation": {func(l *lab) {
			l.infra.SetAnnotations(map[string]string{clusterv1.TemplateClonedFromNameAnnotation: "old"})
		}, nil},
		"infra spec differs": {func(l *lab) {
			l.cloned("TestMachineTemplate", "t")
			l.infra.Object["spec"] = map[string]any{"size": "small"}
		}, nil},
		"template gone, not cloned":    {func(l *lab) { l.template = nil }, nil},
		"template gone, cloned":        {func(l *lab) { l.cloned("TestMachineTemplate", "t"); l.template = nil }, []string{"spec.machineTemplate.spec.infrastructureRef: have none, want TestMachineTemplate/t"}},
		"template gone, other reasons": {func(l *lab) { l.cloned("TestMachineTemplate", "t"); l.template = nil; l.machine.Spec.Version = "" }, []string{"spec.version", "spec.machineTemplate.spec.infrastructureRef"}},
		"CRD without the contract":     {func(l *lab) { l.contract = "" }, []string{"spec.infrastructureRef"}},
		"control plane's version":      {func(l *lab) { l.kcp.Spec.Version = "latest" }, []string{"the control plane's reconcile fails"}},

		"endpoint": {config(func(s *bootstrapv1.KubeadmConfigSpec) { s.ClusterConfiguration.ControlPlaneEndpoint = "1.2.3.4:6443" }), nil},
		"DNS":      {config(func(s *bootstrapv1.KubeadmConfigSpec) { s.ClusterConfiguration.DNS.ImageTag = "v1" }), nil},
		"discovery": {config(func(s *bootstrapv1.KubeadmConfigSpec) {
			s.JoinConfiguration.Discovery.TLSBootstrapToken = "abcdef.0123456789abcdef"
		}), nil},
		"health check seconds": {config(func(s *bootstrapv1.KubeadmConfigSpec) {
			s.JoinConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds = ptr.To[int32](9)
		}), nil},
		"labels":         {func(l *lab) { l.config.Labels = map[string]string{"a": "b"} }, nil},
		"empty list":     {config(func(s *bootstrapv1.KubeadmConfigSpec) { s.PreKubeadmCommands = []string{} }), nil},
		"default format": {config(func(s *bootstrapv1.KubeadmConfigSpec) { s.Format = bootstrapv1.CloudConfig }), nil},
		"empty taints": {config(func(s *bootstrapv1.KubeadmConfigSpec) {
			s.JoinConfiguration.NodeRegistration.Taints = &[]corev1.Taint{}
		}),
			[]string{"spec.kubeadmConfigSpec.joinConfiguration.nodeRegistration.taints: have [], want none"}},
		"etcd": {config(func(s *bootstrapv1.KubeadmConfigSpec) { s.ClusterConfiguration.Etcd.Local.DataDir = "/data" }),
			[]string{`spec.kubeadmConfigSpec.clusterConfiguration.etcd.local.dataDir: have "/data", want ""`}},
		"API server": {config(func(s *bootstrapv1.KubeadmConfigSpec) { s.ClusterConfiguration.APIServer.CertSANs = []string{"other"} }),
			[]string{`spec.kubeadmConfigSpec.clusterConfiguration.apiServer.certSANs[0]: have "other", want "c1.example.com"`}},
		"image repository": {config(func(s *bootstrapv1.KubeadmConfigSpec) { s.ClusterConfiguration.ImageRepository = "example.com" }),
			[]string{`spec.kubeadmConfigSpec.clusterConfiguration.imageRepository: have "example.com", want "registry.k8s.io"`}},
		"feature gate": {config(func(s *bootstrapv1.KubeadmConfigSpec) {
			s.ClusterConfiguration.FeatureGates = map[string]bool{"A": true}
		}),
			[]string{"spec.kubeadmConfigSpec.clusterConfiguration.featureGates"}},
		"files": {config(func(s *bootstrapv1.KubeadmConfigSpec) { s.Files[0].Content = "hunter2" }),
			[]string{"spec.kubeadmConfigSpec.files[0].content: have "}},
		"join without cluster configuration": {config(func(s *bootstrapv1.KubeadmConfigSpec) { s.ClusterConfiguration = bootstrapv1.ClusterConfiguration{} }),
			[]string{"spec.kubeadmConfigSpec.clusterConfiguration.apiServer.certSANs", "spec.kubeadmConfigSpec.clusterConfiguration.imageRepository"}},
		"init, differently": {func(l *lab) { l.init(); l.config.Spec.InitConfiguration.NodeRegistration.Name = "other" },
			[]string{`spec.kubeadmConfigSpec.initConfiguration.nodeRegistration.name: have "other", want "node"`}},
		"init tokens": {func(l *lab) {
			l.init()
			l.config.Spec.InitConfiguration.BootstrapTokens = []bootstrapv1.BootstrapToken{{Token: bootstrapv1.BootstrapTokenString{ID: "abcdef", Secret: "0123456789abcdef"}}}
		}, nil},
		"init and join sections with kubelet arguments": {func(l *lab) {
			args := []bootstrapv1.Arg{{Name: "cloud-provider", Value: ptr.To("external")}}
			l.kcp.Spec.KubeadmConfigSpec.InitConfiguration.NodeRegistration.KubeletExtraArgs = args
			l.kcp.Spec.KubeadmConfigSpec.JoinConfiguration.NodeRegistration.KubeletExtraArgs = args
			l.config.Spec = *l.kcp.Spec.KubeadmConfigSpec.DeepCopy()
		}, []string{"spec.kubeadmConfigSpec.initConfiguration.nodeRegistration.name", "spec.kubeadmConfigSpec.initConfiguration.nodeRegistration.kubeletExtraArgs"}},
		"the gate of v1.31 is set": {func(l *lab) {
			l.kcp.Spec.Version, l.machine.Spec.Version = "v1.31.0", "v1.31.0"
			l.gate(&l.config.Spec)
		}, nil},
		"the gate of v1.31 is not set": {func(l *lab) { l.kcp.Spec.Version, l.machine.Spec.Version = "v1.31.0", "v1.31.0" },
			[]string{"spec.kubeadmConfigSpec.clusterConfiguration.featureGates"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			c.change(l)
			got := l.predict(t)
			if got.UpToDate != (len(c.fields) == 0) || len(got.Reasons) != len(c.fields) {
				t.Fatalf("up to date: %t, reasons %q, want %q\n%s", got.UpToDate, got.Reasons, c.fields, got.Diff)
			}
			for i, r := range got.Reasons {
				if !strings.HasPrefix(r.String(), c.fields[i]) {
					t.Errorf("reason %q, want %q", r, c.fields[i])
				}
				if r.Message == "" || strings.Contains(r.String(), "\n") {
					t.Errorf("a reason is one line with a message: %q", r)
				}
			}
			if config := slices.ContainsFunc(c.fields, func(f string) bool { return strings.HasPrefix(f, fieldConfigSpec) }); config != (got.Diff != "") {
				t.Errorf("diff: %q", got.Diff)
			}
		})
	}
}

func TestPredict_ConfidentialValuesAreNotPrinted(t *testing.T) {
	l := newLab()
	l.kcp.Spec.KubeadmConfigSpec.Users = []bootstrapv1.User{{Name: "root", Passwd: "correct horse"}}
	l.config.Spec.Users = []bootstrapv1.User{{Name: "root", Passwd: "battery staple"}}
	l.config.Spec.Files[0].Content = "hunter2"
	got := l.predict(t)
	all := got.Diff
	for _, r := range got.Reasons {
		all += r.String()
	}
	for _, word := range []string{"swordfish", "hunter2", "correct horse", "battery staple"} {
		if strings.Contains(all, word) {
			t.Errorf("printed %q: %s", word, all)
		}
	}
	if l.kcp.Spec.KubeadmConfigSpec.Files[0].Content != "swordfish" {
		t.Error("the caller's control plane was changed")
	}
}

func TestPredict_WhatCannotBeReadIsAnError(t *testing.T) {
	for _, name := range []string{"b", "i", "t"} {
		l := newLab()
		l.cloned("TestMachineTemplate", "t")
		l.denied[name] = apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, name, errors.New("no"))
		got, err := Predict(t.Context(), l, l.cluster, l.kcp, []*clusterv1.Machine{l.machine})
		if !apierrors.IsForbidden(err) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestPredict_TheTemplateIsReadOnce(t *testing.T) {
	l := newLab()
	l.cloned("TestMachineTemplate", "t")
	machines := []*clusterv1.Machine{l.machine}
	for _, name := range []string{"m2", "m3"} {
		m := l.machine.DeepCopy()
		m.Name = name
		machines = append(machines, m)
	}
	got, err := Predict(t.Context(), &serial{Reader: l}, l.cluster, l.kcp, machines)
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	if l.reads["t"] != 1 {
		t.Errorf("read %d times", l.reads["t"])
	}
}

// TestClusterAPIVersion_IsThatOfTheModule keeps the constant true.
func TestClusterAPIVersion_IsThatOfTheModule(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "\tsigs.k8s.io/cluster-api "+ClusterAPIVersion+"\n") {
		t.Errorf("go.mod requires another version than %s", ClusterAPIVersion)
	}
}

// serial makes a lab safe for several readers.
type serial struct {
	mu sync.Mutex
	client.Reader
}

// Get reads one object at a time.
func (s *serial) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Reader.Get(ctx, key, o, opts...)
}
