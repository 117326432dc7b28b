package graph_test

import (
	"encoding/json"
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
  topology: {class: quick, version: v1.36.0}
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
  topology: {classRef: {name: quick}, version: v1.36.0}
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
	facts := graph.Facts{Paused: true, Topology: true, InfrastructureProvisioned: true, Endpoint: "h:6443"}
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
		`{apiVersion: v1, kind: Secret, metadata: {}}`:                                      "Secret without metadata.name",
		`{apiVersion: v1, kind: Secret, metadata: {name: s, ownerReferences: [{}]}}`:        "Secret s: metadata.ownerReferences: [0] has no kind",
		`{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {a: 1}}}`:               `Secret s: metadata.labels: "a" is not a string`,
		`{apiVersion: v1, kind: Secret, metadata: {name: s, creationTimestamp: yesterday}}`: `"yesterday" is no RFC 3339 time`,
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

func FuzzExtract(f *testing.F) {
	f.Add(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m","ownerReferences":[{"kind":"A","name":"b"}]},"spec":{"replicas":1e300,"bootstrap":{"dataSecretName":7}}}`)
	f.Add(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","labels":[]}}`)
	f.Add(`{"apiVersion":"addons.cluster.x-k8s.io/v1beta2","kind":"ClusterResourceSet","metadata":{"name":"s"},"spec":{"resources":[null,{"kind":"Secret"}]}}`)
	f.Add(strings.Repeat(`{"spec":`, 200) + `1` + strings.Repeat(`}`, 200))
	f.Fuzz(func(t *testing.T, text string) {
		var m map[string]any
		if json.Unmarshal([]byte(text), &m) != nil {
			return
		}
		o, err := graph.Extract(m)
		if err != nil {
			return
		}
		var b graph.Builder
		b.Add(o)
		g, err := b.Build()
		if err != nil {
			t.Fatalf("what Extract took, Build refuses: %v", err)
		}
		if g.MoveSet()[0].ID != o.ID {
			t.Fatal("the object fell out of the move set")
		}
	})
}
