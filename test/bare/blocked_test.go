package bare_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/pkg/graph"
)

var (
	smallControlPlane = graph.GroupKind{Group: "controlplane.example.com", Kind: "SmallControlPlane"}
	otherConfig       = graph.GroupKind{Group: "bootstrap.example.com", Kind: "OtherConfig"}
)

// install makes a kind that keeps all fields, and waits until it is served.
func install(t *testing.T, kind graph.GroupKind, plural string) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + kind.Group, Labels: map[string]string{graph.ClusterctlLabel: "", "cluster.x-k8s.io/v1beta2": "v1beta2"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind.Kind, Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1beta2", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true)}},
			}},
		},
	}
	create(t, crd)
	t.Cleanup(func() { _ = world.Client().Delete(context.WithoutCancel(t.Context()), crd) })
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: kind.Group, Version: "v1beta2", Kind: kind.Kind + "List"})
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		return world.Client().List(ctx, list) == nil, nil
	})
	if err != nil {
		t.Fatalf("%s is not served: %v", crd.Name, err)
	}
}

// makeSmallControlPlane installs a control plane provider that follows the contract.
func makeSmallControlPlane(t *testing.T) { install(t, smallControlPlane, "smallcontrolplanes") }

// TestBlocked_NothingIsChangedAndAllIsSaid runs the program against what must not be
// adopted: exit code 4, no object written, and an Event on the control plane that
// names the object, the field, both values and the way out, as the output does.
func TestBlocked_NothingIsChangedAndAllIsSaid(t *testing.T) {
	install(t, otherConfig, "otherconfigs")
	spec := func(change map[string]any) map[string]any { return map[string]any{"spec": change} }
	for name, c := range map[string]struct {
		change func(t *testing.T, a alone)
		args   []string
		// words of the refusal; NS stands for the namespace.
		words []string
	}{
		"version-one-minor": {func(t *testing.T, a alone) { a.patch(t, kcpKind, "c1-cp", spec(map[string]any{"version": "v1.35.0"})) }, nil,
			[]string{"Machine NS/c1-cp-0", "spec.version: have v1.36.0, want v1.35.0", "--max-version-skew=1", "[VersionSkew]"}},
		"version-two-minors": {func(t *testing.T, a alone) { a.patch(t, kcpKind, "c1-cp", spec(map[string]any{"version": "v1.34.0"})) },
			[]string{"--max-version-skew", "1", "--allow-rollout"},
			[]string{"Machine NS/c1-cp-0", "spec.version: have v1.36.0, want v1.34.0", "set the control plane's spec.version", "[VersionSkew]"}},
		"bootstrap-kind": {func(t *testing.T, a alone) {
			create(t, a.object(schema.GroupVersionKind{Group: otherConfig.Group, Version: "v1beta2", Kind: otherConfig.Kind}, "other"))
			a.patch(t, machineKind, "c1-cp-2", spec(map[string]any{"bootstrap": map[string]any{
				"configRef": map[string]any{"apiGroup": otherConfig.Group, "kind": otherConfig.Kind, "name": "other"}}}))
		}, nil, []string{"Machine NS/c1-cp-2", "spec.bootstrap.configRef: have OtherConfig.bootstrap.example.com, want KubeadmConfig.bootstrap.cluster.x-k8s.io", "correct spec.bootstrap.configRef", "[BootstrapNotKubeadm]"}},
		"replicas": {func(t *testing.T, a alone) { a.patch(t, kcpKind, "c1-cp", spec(map[string]any{"replicas": 1})) }, nil,
			[]string{"KubeadmControlPlane NS/c1-cp", "spec.replicas: have 1, want 3", "--allow-scale", "[ReplicasDiffer]"}},
		"two-control-planes": {func(t *testing.T, a alone) {
			second := a.object(kcpKind, "c1-cp")
			if err := world.Client().Get(t.Context(), client.ObjectKeyFromObject(second), second); err != nil {
				t.Fatal(err)
			}
			second.SetName("c1-second")
			second.SetResourceVersion("")
			second.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c1"})
			create(t, second)
		}, nil, []string{"KubeadmControlPlane NS/c1-second", "a second control plane beside KubeadmControlPlane NS/c1-cp", "spec.controlPlaneRef does not name", "[TwoControlPlanes]"}},
		"controlled-elsewhere": {func(t *testing.T, a alone) {
			set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "other", Labels: map[string]string{clusterv1.ClusterNameLabel: "c1"}}}
			set.Spec.ClusterName, set.Spec.Replicas = "c1", ptr.To[int32](0)
			set.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"none": "such"}}
			set.Spec.Template.Labels = map[string]string{"none": "such"}
			set.Spec.Template.Spec = clusterv1.MachineSpec{ClusterName: "c1",
				Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To("c1-cp-0")},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "DevMachineTemplate", Name: "c1-cp"}}
			create(t, set)
			own(t, a.Cluster, id(graph.Machine, a.namespace, "c1-cp-1"), controlledBy(t, a.Cluster, id(graph.MachineSet, a.namespace, "other")))
		}, nil, []string{"Machine NS/c1-cp-1", "metadata.ownerReferences: have *MachineSet/other", "want KubeadmControlPlane/c1-cp", "remove the wrong controller's owner reference", "[ForeignController]"}},
		"machine-deleting": {func(t *testing.T, a alone) { a.delete(t, machineKind, "c1-cp-1") }, nil,
			[]string{"Machine NS/c1-cp-1", "it is being deleted", "[BeingDeleted]"}},
		"control-plane-deleting": {func(t *testing.T, a alone) { a.delete(t, kcpKind, "c1-cp") }, nil,
			[]string{"KubeadmControlPlane NS/c1-cp", "it is being deleted", "[BeingDeleted]"}},
		"join-configuration": {func(t *testing.T, a alone) {
			a.patch(t, configKind, "c1-cp-1", spec(map[string]any{"joinConfiguration": map[string]any{"nodeRegistration": map[string]any{"criSocket": "unix:///run/other.sock"}}}))
		}, nil, []string{"Machine NS/c1-cp-1", `spec.kubeadmConfigSpec.joinConfiguration.nodeRegistration.criSocket: have "unix:///run/other.sock", want "unix:///var/run/containerd/containerd.sock"`,
			"as Cluster API v1.14.2 judges", "--allow-rollout", "[WouldRollOut]"}},
		"template-name": {func(t *testing.T, a alone) {
			a.patch(t, devKind, "c1-cp-2", map[string]any{"metadata": map[string]any{"annotations": map[string]string{
				clusterv1.TemplateClonedFromNameAnnotation: "old", clusterv1.TemplateClonedFromGroupKindAnnotation: "DevMachineTemplate." + infrav1.GroupVersion.Group}}})
		}, nil, []string{"Machine NS/c1-cp-2", "spec.machineTemplate.spec.infrastructureRef: have DevMachineTemplate.infrastructure.cluster.x-k8s.io old, want DevMachineTemplate.infrastructure.cluster.x-k8s.io c1-cp", "--allow-rollout", "[WouldRollOut]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := standAlone(t, "blocked-"+name)
			c.change(t, a)
			before := a.versions(t)
			r := a.post(t, 4, c.args...)
			a.unchanged(t, before)
			event := a.event(t)
			for _, word := range c.words {
				word = strings.ReplaceAll(word, "NS", a.namespace)
				if !strings.Contains(event, word) {
					t.Errorf("the Event does not say %q: %s", word, event)
				}
				if id, isID := strings.CutPrefix(word, "["); !strings.Contains(r.stdout+r.stderr, strings.TrimSuffix(id, "]")) && isID {
					t.Errorf("the output does not say %q\n%s", word, r)
				}
			}
		})
	}
}

// event is the message of the AdoptionBlocked Event on the control plane.
func (a alone) event(t *testing.T) string {
	t.Helper()
	var events corev1.EventList
	if err := world.Client().List(t.Context(), &events, client.InNamespace(a.namespace)); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range events.Items {
		if e.Reason == "AdoptionBlocked" && e.Type == corev1.EventTypeWarning && e.InvolvedObject.Kind == "KubeadmControlPlane" && e.InvolvedObject.Name == "c1-cp" {
			all = append(all, e.Message)
		}
	}
	if len(all) == 0 {
		t.Fatalf("there is no such Event among %d", len(events.Items))
	}
	return strings.Join(all, "\n")
}
