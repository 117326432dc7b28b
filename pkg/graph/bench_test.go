package graph_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/pkg/graph"
)

// fleet adds clusters of 45 objects each, shaped as a kubeadm cluster with 3+5 Machines.
func fleet(b *graph.Builder, clusters int) {
	for _, gk := range []graph.GroupKind{
		graph.Cluster, graph.Machine, graph.MachineSet, graph.MachineDeployment, graph.KubeadmConfig, graph.KubeadmConfigTemplate,
		graph.KubeadmControlPlane, graph.Secret, graph.ConfigMap, {Group: "infra", Kind: "InfraMachine"}, {Group: "infra", Kind: "InfraCluster"}, {Group: "infra", Kind: "InfraTemplate"},
	} {
		b.Kind(graph.KindInfo{
			GroupKind: gk, APIVersion: gk.Group + "/v1", Namespaced: true, Discovered: true,
			ForceMove: graph.ForceMoves(gk), ForceMoveHierarchy: graph.ForceMoves(gk),
		})
		b.Listed(gk, "")
	}
	for c := range clusters {
		name := fmt.Sprintf("c%d", c)
		add := func(gk graph.GroupKind, n string, owner *graph.Object, refs ...graph.Ref) *graph.Object {
			o := graph.Object{
				ID: graph.ID{Group: gk.Group, Kind: gk.Kind, Namespace: "fleet", Name: n}, UID: types.UID("uid-" + gk.Kind + n),
				APIVersion: gk.Group + "/v1", Refs: refs, Labels: map[string]string{graph.ClusterNameLabel: name},
			}
			if owner != nil {
				o.Owners = []metav1.OwnerReference{{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID}}
			}
			b.Add(o)
			return &o
		}
		infra := func(kind string) graph.GroupKind { return graph.GroupKind{Group: "infra", Kind: kind} }
		cluster := add(graph.Cluster, name, nil)
		add(infra("InfraCluster"), name, cluster)
		kcp := add(graph.KubeadmControlPlane, name, cluster)
		for _, s := range []string{"ca", "etcd", "sa", "proxy", "kubeconfig"} {
			add(graph.Secret, name+"-"+s, kcp)
		}
		md := add(graph.MachineDeployment, name, cluster)
		ms := add(graph.MachineSet, name, md)
		add(infra("InfraTemplate"), name+"-cp", cluster)
		add(infra("InfraTemplate"), name+"-md", cluster)
		add(graph.KubeadmConfigTemplate, name, cluster)
		for m := range 8 {
			owner := kcp
			if m >= 3 {
				owner = ms
			}
			mn := fmt.Sprintf("%s-%d", name, m)
			ref := func(gk graph.GroupKind) graph.ID {
				return graph.ID{Group: gk.Group, Kind: gk.Kind, Namespace: "fleet", Name: mn}
			}
			machine := add(graph.Machine, mn, owner, graph.Ref{Field: graph.FieldInfrastructureRef, To: ref(infra("InfraMachine"))},
				graph.Ref{Field: graph.FieldBootstrapConfigRef, To: ref(graph.KubeadmConfig)})
			kc := add(graph.KubeadmConfig, mn, machine)
			add(infra("InfraMachine"), mn, machine)
			add(graph.Secret, mn, kc)
		}
	}
}

// built makes the graph of a fleet of so many clusters.
func built(b *testing.B, clusters int) *graph.Graph {
	b.Helper()
	var builder graph.Builder
	fleet(&builder, clusters)
	g, err := builder.Build()
	if err != nil {
		b.Fatal(err)
	}
	return g
}

func benchmarkBuild(b *testing.B, clusters int) {
	var builder graph.Builder
	fleet(&builder, clusters)
	b.ReportAllocs()
	for b.Loop() {
		g, err := builder.Build()
		if err != nil {
			b.Fatal(err)
		}
		if g.Len() != 45*clusters {
			b.Fatalf("%d objects, want %d", g.Len(), 45*clusters)
		}
	}
}

// Beside each other the two show that growth is linear.
func BenchmarkBuild4500(b *testing.B) { benchmarkBuild(b, 100) }
func BenchmarkBuild45k(b *testing.B)  { benchmarkBuild(b, 1000) }

func benchmarkMoveSet(b *testing.B, clusters int) {
	g := built(b, clusters)
	b.ReportAllocs()
	for b.Loop() {
		if n := len(g.MoveSet().In()); n != g.Len() {
			b.Fatalf("%d of %d objects move", n, g.Len())
		}
	}
}

func BenchmarkMoveSet4500(b *testing.B) { benchmarkMoveSet(b, 100) }
func BenchmarkMoveSet45k(b *testing.B)  { benchmarkMoveSet(b, 1000) }

// BenchmarkSnapshots45k takes the records of all 1,000 Clusters, as `pre -A` does.
func BenchmarkSnapshots45k(b *testing.B) {
	g := built(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		set := g.MoveSet()
		moves := func(id graph.ID) bool {
			m, _ := set.Of(id)
			return m.In
		}
		nodes := 0
		for _, c := range g.OfKind(graph.Cluster) {
			s := g.SnapshotOf(c.ID, moves)
			nodes += len(s.Nodes)
		}
		if nodes != g.Len() {
			b.Fatalf("%d nodes of %d objects", nodes, g.Len())
		}
	}
}
