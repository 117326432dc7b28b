package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/move-hook/move-hook/pkg/graph"
)

func extract(t *testing.T, text string) graph.Object {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	o, err := graph.Extract(m)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestExtract_ReadsBothShapesOfReferences(t *testing.T) {
	v1beta1 := extract(t, `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: c, namespace: ns}
spec:
  paused: true
  controlPlaneEndpoint: {host: h, port: 6443}
  topology: {class: quick, version: v1.36.0, workers: {machineDeployments: [{name: md}], machinePools: [{name: mp}, {}]}}
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlane, name: cp, namespace: ns}
  infrastructureRef: {apiVersion: infra.example.com/v1, kind: InfraCluster, name: c}
status: {infrastructureReady: true}`)
	v1beta2 := extract(t, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c, namespace: ns}
spec:
  paused: true
  controlPlaneEndpoint: {host: h, port: 6443}
  topology: {classRef: {name: quick}, version: v1.36.0, workers: {machineDeployments: [{name: md, class: a}, 7], machinePools: [{name: mp}]}}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: cp}
  infrastructureRef: {apiGroup: infra.example.com, kind: InfraCluster, name: c}
status: {initialization: {infrastructureProvisioned: true}}`)
	v1beta2.APIVersion = v1beta1.APIVersion
	if diff := cmp.Diff(v1beta1, v1beta2); diff != "" {
		t.Errorf("the two versions differ:\n%s", diff)
	}
	want := []graph.Ref{
		{Field: graph.FieldControlPlaneRef, To: in(graph.KubeadmControlPlane, "cp")},
		{Field: graph.FieldInfrastructureRef, To: graph.ID{Group: "infra.example.com", Kind: "InfraCluster", Namespace: "ns", Name: "c"}},
		{Field: graph.FieldClassRef, To: in(graph.ClusterClass, "quick")},
	}
	if diff := cmp.Diff(want, v1beta2.Refs); diff != "" {
		t.Error(diff)
	}
	facts := graph.Facts{Paused: true, Topology: true, TopologyDeployments: []string{"md"}, TopologyPools: []string{"mp"}, InfrastructureProvisioned: true, Endpoint: "h:6443"}
	if diff := cmp.Diff(facts, v1beta2.Facts); diff != "" {
		t.Error(diff)
	}
}

func TestExtract_Machine(t *testing.T) {
	o := extract(t, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata:
  name: m
  namespace: ns
  uid: u
  creationTimestamp: "2026-01-02T03:04:05Z"
  deletionTimestamp: "2026-01-02T03:04:05Z"
  ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: MachineSet, name: ms, uid: x, controller: true}]
spec:
  clusterName: c
  version: v1.36.0
  providerID: dev://m
  bootstrap:
    dataSecretName: data
    configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfig, name: m}
  infrastructureRef: {apiGroup: infra.example.com, kind: InfraMachine, name: m}
status: {nodeRef: {name: node}}`)
	want := []graph.Ref{
		{Field: graph.FieldBootstrapConfigRef, To: in(graph.KubeadmConfig, "m")},
		{Field: graph.FieldDataSecret, To: in(graph.Secret, "data")},
		{Field: graph.FieldClusterName, To: in(graph.Cluster, "c")},
		{Field: graph.FieldInfrastructureRef, To: graph.ID{Group: "infra.example.com", Kind: "InfraMachine", Namespace: "ns", Name: "m"}},
	}
	if diff := cmp.Diff(want, o.Refs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(graph.Facts{Version: "v1.36.0", ProviderID: "dev://m", NodeName: "node"}, o.Facts); diff != "" {
		t.Error(diff)
	}
	if !o.Deleting || o.Created.IsZero() || o.Owners[0].Controller == nil || !*o.Owners[0].Controller {
		t.Errorf("metadata is wrong: %+v", o)
	}
}

func TestExtract_NeverKeepsSecretData(t *testing.T) {
	o := extract(t, `
apiVersion: v1
kind: Secret
metadata:
  name: c-ca
  namespace: ns
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data":{"tls.key":"aHVzaA=="}}', theirs: x}
data: {tls.key: aHVzaA==}
spec: {aHVzaA==: {apiVersion: v1, kind: aHVzaA==, name: x}}`)
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "aHVzaA==") {
		t.Errorf("Secret data was kept: %s", text)
	}
}

func TestExtract_NamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "no Kubernetes object",
		`{apiVersion: v1, kind: Secret, metadata: {}}`:                                                       "Secret without metadata.name",
		`{apiVersion: v1, kind: Secret, metadata: {name: s, ownerReferences: [{}]}}`:                         "Secret s: metadata.ownerReferences: [0] has no kind",
		`{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {a: 1}}}`:                                `Secret s: metadata.labels: "a" is not a string`,
		`{apiVersion: v1, kind: Secret, metadata: {name: s, creationTimestamp: yesterday}}`:                  `"yesterday" is no RFC 3339 time`,
		`{apiVersion: v1, kind: Secret, metadata: []}`:                                                       "no Kubernetes object",
		`{apiVersion: 1, kind: Secret, metadata: {name: s}}`:                                                 "no Kubernetes object",
		`{apiVersion: v1, kind: Secret, metadata: {name: 1}}`:                                                "Secret without metadata.name",
		`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: 1}}`:                                  "metadata.namespace is not a string",
		`{apiVersion: v1, kind: Secret, metadata: {name: s, uid: {}}}`:                                       "metadata.uid is not a string",
		`{apiVersion: v1, kind: Secret, metadata: {name: s, deletionTimestamp: 1}}`:                          "metadata.deletionTimestamp is not a string",
		`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns, annotations: []}}`:                "Secret ns/s: metadata.annotations: not a map",
		`{apiVersion: v1, kind: Secret, metadata: {name: s, finalizers: f}}`:                                 "metadata.finalizers: not a list",
		`{apiVersion: v1, kind: Secret, metadata: {name: s, finalizers: [f, 1]}}`:                            "metadata.finalizers: [1] is not a string",
		`{apiVersion: v1, kind: Secret, metadata: {name: s, ownerReferences: {}}}`:                           "metadata.ownerReferences: not a list",
		`{apiVersion: v1, kind: Secret, metadata: {name: s, ownerReferences: [1]}}`:                          "metadata.ownerReferences: [0] is not an object",
		`{apiVersion: v1, kind: Secret, metadata: {name: s, ownerReferences: [{kind: K, name: x, uid: 1}]}}`: "metadata.ownerReferences: [0].uid is not a string",
	} {
		var m map[string]any
		if err := yaml.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		if _, err := graph.Extract(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", text, err, want)
		}
	}
}

// Every place in which a reference can stand, with the path that names it.
func TestExtract_FindsReferences(t *testing.T) {
	infra := func(kind, name string) graph.ID {
		return graph.ID{Group: "infra", Kind: kind, Namespace: "ns", Name: name}
	}
	for _, tc := range []struct {
		name, kind, spec string
		want             []graph.Ref
	}{
		{"the control plane's template, v1beta1", "controlplane.cluster.x-k8s.io/v1beta1 KubeadmControlPlane",
			`{machineTemplate: {infrastructureRef: {apiVersion: infra/v1, kind: T, name: t, namespace: ns}}}`,
			[]graph.Ref{{Field: "spec.machineTemplate.infrastructureRef", To: infra("T", "t")}}},
		{"the control plane's template, v1beta2", "controlplane.cluster.x-k8s.io/v1beta2 KubeadmControlPlane",
			`{machineTemplate: {spec: {infrastructureRef: {apiGroup: infra, kind: T, name: t}}}}`,
			[]graph.Ref{{Field: "spec.machineTemplate.spec.infrastructureRef", To: infra("T", "t")}}},
		{"a MachineDeployment's templates", "cluster.x-k8s.io/v1beta2 MachineDeployment",
			`{clusterName: c, template: {spec: {clusterName: c, bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate, name: b}}, infrastructureRef: {apiGroup: infra, kind: T, name: t}}}}`,
			[]graph.Ref{
				{Field: graph.FieldClusterName, To: in(graph.Cluster, "c")},
				{Field: "spec.template.spec.bootstrap.configRef", To: in(graph.KubeadmConfigTemplate, "b")},
				{Field: "spec.template.spec.infrastructureRef", To: infra("T", "t")},
			}},
		{"a MachinePool's data Secret", "cluster.x-k8s.io/v1beta2 MachinePool",
			`{template: {spec: {bootstrap: {dataSecretName: d}}}}`,
			[]graph.Ref{{Field: graph.FieldTemplateDataSecret, To: in(graph.Secret, "d")}}},
		{"a ClusterClass' templates, v1beta1", "cluster.x-k8s.io/v1beta1 ClusterClass",
			`{infrastructure: {ref: {apiVersion: infra/v1, kind: T, name: t}}, workers: {machineDeployments: [{template: {bootstrap: {ref: {apiVersion: infra/v1, kind: T, name: b}}}}]}}`,
			[]graph.Ref{
				{Field: "spec.infrastructure.ref", To: infra("T", "t")},
				{Field: "spec.workers.machineDeployments[0].template.bootstrap.ref", To: infra("T", "b")},
			}},
		{"a ClusterClass' templates, v1beta2", "cluster.x-k8s.io/v1beta2 ClusterClass",
			`{infrastructure: {templateRef: {apiVersion: infra/v1, kind: T, name: t}}, controlPlane: {machineInfrastructure: {templateRef: {apiVersion: infra/v1, kind: T, name: m}}}}`,
			[]graph.Ref{
				{Field: "spec.controlPlane.machineInfrastructure.templateRef", To: infra("T", "m")},
				{Field: "spec.infrastructure.templateRef", To: infra("T", "t")},
			}},
		{"a class of another namespace, v1beta1", "cluster.x-k8s.io/v1beta1 Cluster",
			`{topology: {class: k, classNamespace: other}}`,
			[]graph.Ref{{Field: graph.FieldClassRef, To: graph.ID{Group: graph.CoreGroup, Kind: "ClusterClass", Namespace: "other", Name: "k"}}}},
		{"a class of another namespace, v1beta2", "cluster.x-k8s.io/v1beta2 Cluster",
			`{topology: {classRef: {name: k, namespace: other}}}`,
			[]graph.Ref{{Field: graph.FieldClassRef, To: graph.ID{Group: graph.CoreGroup, Kind: "ClusterClass", Namespace: "other", Name: "k"}}}},
		{"a ClusterResourceSet's payload", "addons.cluster.x-k8s.io/v1beta2 ClusterResourceSet",
			`{resources: [{kind: Secret, name: s}, {kind: ConfigMap, name: m}, {kind: Pod, name: p}, {kind: Secret}, 7]}`,
			[]graph.Ref{{Field: "spec.resources[0]", To: in(graph.Secret, "s")}, {Field: "spec.resources[1]", To: in(graph.ConfigMap, "m")}}},
		{"a binding", "addons.cluster.x-k8s.io/v1beta2 ClusterResourceSetBinding",
			`{clusterName: c, bindings: [{clusterResourceSetName: r}, {}]}`,
			[]graph.Ref{
				{Field: "spec.bindings[0].clusterResourceSetName", To: in(graph.ClusterResourceSet, "r")},
				{Field: graph.FieldClusterName, To: in(graph.Cluster, "c")},
			}},
		{"a provider's own references, in lists and to the core group", "infra/v1 M",
			`{pools: [{from: {apiGroup: ipam, kind: Pool, name: p}}], key: {apiVersion: v1, kind: Secret, name: k, namespace: keys}}`,
			[]graph.Ref{
				{Field: "spec.key", To: graph.ID{Kind: "Secret", Namespace: "keys", Name: "k"}},
				{Field: "spec.pools[0].from", To: graph.ID{Group: "ipam", Kind: "Pool", Namespace: "ns", Name: "p"}},
			}},
		{"what only looks like one", "infra/v1 M",
			`{a: {kind: K, name: x}, b: {apiGroup: g, name: x}, c: {apiVersion: v1, kind: K}, d: {apiVersion: v1, kind: 1, name: x}, replicas: []}`, nil},
		{"the wrong types everywhere", "cluster.x-k8s.io/v1beta2 Cluster",
			`{topology: [], controlPlaneRef: 1, infrastructureRef: [1], bootstrap: x, clusterName: c}`, nil},
		{"no map at all", "infra/v1 M", `7`, nil},
	} {
		apiVersion, kind, _ := strings.Cut(tc.kind, " ")
		o := extract(t, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: x, namespace: ns}, spec: %s}", apiVersion, kind, tc.spec))
		if diff := cmp.Diff(tc.want, o.Refs); diff != "" {
			t.Errorf("%s:\n%s", tc.name, diff)
		}
	}
}

func TestExtract_ReadsFacts(t *testing.T) {
	three := int64(3)
	for _, tc := range []struct {
		name, kind, rest string
		want             graph.Facts
	}{
		{"a control plane", "controlplane.cluster.x-k8s.io/v1beta2 KubeadmControlPlane",
			`spec: {replicas: 3, version: v1.36.0, kubeadmConfigSpec: {clusterConfiguration: {etcd: {external: {endpoints: [e]}}}}}`,
			graph.Facts{Replicas: &three, Version: "v1.36.0", ExternalEtcd: true}},
		{"local etcd", "controlplane.cluster.x-k8s.io/v1beta2 KubeadmControlPlane",
			`spec: {kubeadmConfigSpec: {clusterConfiguration: {etcd: {local: {}}}}}`, graph.Facts{}},
		{"a MachineDeployment", "cluster.x-k8s.io/v1beta2 MachineDeployment",
			`spec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {spec: {version: v1.36.0}}}`,
			graph.Facts{Replicas: &three, Version: "v1.36.0", Selector: map[string]string{"a": "b"}}},
		{"a bootstrap config", "bootstrap.cluster.x-k8s.io/v1beta2 KubeadmConfig", `status: {dataSecretName: d}`, graph.Facts{DataSecretName: "d"}},
		{"a Machine in v1beta1", "cluster.x-k8s.io/v1beta1 Machine",
			`status: {nodeRef: {apiVersion: v1, kind: Node, name: node, uid: u}}`, graph.Facts{NodeName: "node"}},
		{"an endpoint that is not set yet", "cluster.x-k8s.io/v1beta2 Cluster", `spec: {controlPlaneEndpoint: {host: h, port: 0}}`, graph.Facts{}},
		{"an IPv6 endpoint", "cluster.x-k8s.io/v1beta2 Cluster", `spec: {controlPlaneEndpoint: {host: "fd00::1", port: 6443}}`, graph.Facts{Endpoint: "[fd00::1]:6443"}},
		{"an empty topology", "cluster.x-k8s.io/v1beta2 Cluster", `spec: {topology: {}}`, graph.Facts{}},
		{"infrastructure that is not ready", "cluster.x-k8s.io/v1beta1 Cluster", `status: {infrastructureReady: false}`, graph.Facts{}},
		{"values of the wrong type", "cluster.x-k8s.io/v1beta2 Cluster",
			`spec: {paused: "true", replicas: 1.5, version: 1, selector: {matchLabels: {a: 1}}, controlPlaneEndpoint: x, topology: x}
status: {initialization: {infrastructureProvisioned: "yes"}, nodeRef: []}`, graph.Facts{}},
		{"more replicas than a number holds", "cluster.x-k8s.io/v1beta2 MachineSet", `spec: {replicas: 1e300}`, graph.Facts{}},
	} {
		apiVersion, kind, _ := strings.Cut(tc.kind, " ")
		o := extract(t, fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: x, namespace: ns}\n%s", apiVersion, kind, tc.rest))
		if diff := cmp.Diff(tc.want, o.Facts); diff != "" {
			t.Errorf("%s:\n%s", tc.name, diff)
		}
	}
}

// What Extract gives shares nothing with what it was given.
func TestExtract_CopiesWhatItKeeps(t *testing.T) {
	labels, annotations := map[string]any{"a": "b"}, map[string]any{graph.LastAppliedAnnotation: "data"}
	content := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "labels": labels, "annotations": annotations}}
	o, err := graph.Extract(content)
	if err != nil {
		t.Fatal(err)
	}
	labels["a"] = "c"
	if o.Labels["a"] != "b" {
		t.Error("the object's labels are the content's")
	}
	if len(o.Annotations) != 0 || annotations[graph.LastAppliedAnnotation] != "data" {
		t.Errorf("annotations are %v, the content's %v", o.Annotations, annotations)
	}
}

// A spec as deep as a decoder allows is read without harm.
func TestExtract_StopsAtADepthThatNoTypeHas(t *testing.T) {
	var deep any = map[string]any{"apiGroup": "g", "kind": "K", "name": "n"}
	for range 100_000 {
		deep = []any{deep}
	}
	o, err := graph.Extract(map[string]any{
		"apiVersion": "infra/v1", "kind": "M", "metadata": map[string]any{"name": "m"}, "spec": map[string]any{"x": deep},
	})
	if err != nil || len(o.Refs) != 0 {
		t.Errorf("%d references, error %v", len(o.Refs), err)
	}
}
