// Package fleet builds the objects of clusters in memory, for the tests of the packages
// that judge graphs: a Cluster as upstream's controllers leave it, and edits that plant
// what is wrong with it.
package fleet

import (
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/pkg/graph"
)

// Objects are those of one management cluster, in namespace fleet. Each has the UID "<side>-<n>".
type Objects struct {
	side  string
	Kinds []graph.KindInfo
	All   map[graph.ID]graph.Object
	next  int
}

// InfraGroup is the group of the infrastructure kinds.
const InfraGroup = "infrastructure.cluster.x-k8s.io"

// The infrastructure kinds.
var (
	InfraCluster  = graph.GroupKind{Group: InfraGroup, Kind: "DevCluster"}
	InfraMachine  = graph.GroupKind{Group: InfraGroup, Kind: "DevMachine"}
	InfraTemplate = graph.GroupKind{Group: InfraGroup, Kind: "DevMachineTemplate"}
)

// New gives an empty management cluster that has the usual kinds.
func New(side string) *Objects {
	o := &Objects{side: side, All: map[graph.ID]graph.Object{}}
	for _, kind := range []graph.GroupKind{graph.Cluster, graph.ClusterClass, graph.Machine, graph.MachineSet, graph.MachineDeployment,
		graph.MachineHealthCheck, graph.KubeadmConfig, graph.KubeadmControlPlane, InfraCluster, InfraMachine, InfraTemplate, graph.Secret, graph.ConfigMap} {
		version := "v1beta2"
		if kind.Group == "" {
			version = "v1"
		}
		info := graph.KindInfo{GroupKind: kind, APIVersion: version, Namespaced: true, Discovered: true, ForceMove: graph.ForceMoves(kind), ForceMoveHierarchy: graph.ForceMoves(kind)}
		if kind.Group != "" {
			info.APIVersion = kind.Group + "/" + version
		}
		o.Kinds = append(o.Kinds, info)
	}
	return o
}

// Edit changes an object before it is there.
type Edit func(*graph.Object)

// Add puts an object there, owned by the given owners (the first controls).
func (o *Objects) Add(kind graph.GroupKind, name string, owners []graph.ID, edits ...Edit) graph.ID {
	id := graph.ID{Group: kind.Group, Kind: kind.Kind, Namespace: "fleet", Name: name}
	o.next++
	made := graph.Object{ID: id, UID: types.UID(o.side + "-" + strconv.Itoa(o.next)), ResourceVersion: strconv.Itoa(o.next)}
	for _, k := range o.Kinds {
		if k.GroupKind == kind {
			made.APIVersion = k.APIVersion
		}
	}
	for i, owner := range owners {
		above := o.All[owner]
		controls := i == 0 && owner.GroupKind() != graph.Cluster
		ref := metav1.OwnerReference{APIVersion: above.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: above.UID}
		if controls {
			ref.Controller = &controls
		}
		made.Owners = append(made.Owners, ref)
	}
	for _, e := range edits {
		e(&made)
	}
	o.All[id] = made
	return id
}

// Change edits an object that is there.
func (o *Objects) Change(id graph.ID, edits ...Edit) {
	made, ok := o.All[id]
	if !ok {
		panic(id.String())
	}
	made.Owners = slices.Clone(made.Owners)
	for _, e := range edits {
		e(&made)
	}
	o.Keep(made)
}

// Rename gives an object another identity: one in another namespace, or in none.
func (o *Objects) Rename(id, to graph.ID) {
	made := o.All[id]
	delete(o.All, id)
	made.ID = to
	o.Keep(made)
}

// Keep stores an object as a server does, in a new version.
func (o *Objects) Keep(made graph.Object) {
	o.next++
	made.ResourceVersion = strconv.Itoa(o.next)
	o.All[made.ID] = made
}

// RefersTo adds a reference to a spec.
func RefersTo(field string, to graph.ID) Edit {
	return func(o *graph.Object) { o.Refs = append(o.Refs, graph.Ref{Field: field, To: to}) }
}

// Replicas sets spec.replicas.
func Replicas(n int64) Edit { return func(o *graph.Object) { o.Facts.Replicas = &n } }

// Labelled sets labels, given as pairs.
func Labelled(pairs ...string) Edit {
	return func(o *graph.Object) {
		set := map[string]string{}
		for k, v := range o.Labels {
			set[k] = v
		}
		for i := 0; i < len(pairs); i += 2 {
			set[pairs[i]] = pairs[i+1]
		}
		o.Labels = set
	}
}

// Annotated sets an annotation.
func Annotated(key, value string) Edit {
	return func(o *graph.Object) {
		set := map[string]string{key: value}
		for k, v := range o.Annotations {
			if k != key {
				set[k] = v
			}
		}
		o.Annotations = set
	}
}

// ID is an object in namespace fleet.
func ID(kind graph.GroupKind, name string) graph.ID {
	return graph.ID{Group: kind.Group, Kind: kind.Kind, Namespace: "fleet", Name: name}
}

// Cluster adds a Cluster with a control plane and one MachineDeployment.
func (o *Objects) Cluster(name string, controlPlanes, workers int) graph.ID {
	infra, cp := ID(InfraCluster, name), ID(graph.KubeadmControlPlane, name+"-cp")
	cluster := o.Add(graph.Cluster, name, nil,
		RefersTo(graph.FieldInfrastructureRef, infra), RefersTo(graph.FieldControlPlaneRef, cp),
		func(c *graph.Object) { c.Facts.InfrastructureProvisioned, c.Facts.Endpoint = true, "10.0.0.1:6443" })
	mine := Labelled(graph.ClusterNameLabel, name)
	o.Add(InfraCluster, name, []graph.ID{cluster}, mine)
	template := o.Add(InfraTemplate, name, []graph.ID{cluster})
	o.Add(graph.KubeadmControlPlane, name+"-cp", []graph.ID{cluster}, mine, Replicas(int64(controlPlanes)), RefersTo("spec.machineTemplate.infrastructureRef", template))
	for _, purpose := range []string{"ca", "etcd", "sa", "proxy", "kubeconfig"} {
		o.Add(graph.Secret, name+"-"+purpose, []graph.ID{cp}, mine)
	}
	md := o.Add(graph.MachineDeployment, name+"-md", []graph.ID{cluster}, mine, Replicas(int64(workers)), RefersTo(graph.FieldClusterName, cluster))
	ms := o.Add(graph.MachineSet, name+"-md-1", []graph.ID{md}, mine, Replicas(int64(workers)))
	o.Add(graph.MachineHealthCheck, name, []graph.ID{cluster}, mine, RefersTo(graph.FieldClusterName, cluster))
	for i := range controlPlanes {
		o.Machine(cluster, cp, fmt.Sprintf("%s-cp-%d", name, i), Labelled(graph.ControlPlaneLabel, ""))
	}
	for i := range workers {
		o.Machine(cluster, ms, fmt.Sprintf("%s-md-%d", name, i))
	}
	return cluster
}

// Machine adds a Machine with its bootstrap config, infrastructure and bootstrap Secret.
func (o *Objects) Machine(cluster, owner graph.ID, name string, edits ...Edit) graph.ID {
	mine := Labelled(graph.ClusterNameLabel, cluster.Name)
	m := o.Add(graph.Machine, name, []graph.ID{owner}, append([]Edit{mine,
		RefersTo(graph.FieldBootstrapConfigRef, ID(graph.KubeadmConfig, name)),
		RefersTo(graph.FieldInfrastructureRef, ID(InfraMachine, name)),
		func(m *graph.Object) { m.Facts.NodeName, m.Facts.ProviderID = name, "dev:///"+name },
	}, edits...)...)
	config := o.Add(graph.KubeadmConfig, name, []graph.ID{m}, mine)
	o.Add(InfraMachine, name, []graph.ID{m}, mine, func(i *graph.Object) { i.Facts.ProviderID = "dev:///" + name })
	o.Add(graph.Secret, name, []graph.ID{config}, mine)
	return m
}

// Graph is what a complete read of namespace fleet gives.
func (o *Objects) Graph() *graph.Graph {
	var b graph.Builder
	for _, k := range o.Kinds {
		b.Kind(k)
		b.Listed(k.GroupKind, "fleet")
		if !k.Namespaced {
			b.Listed(k.GroupKind, "")
		}
	}
	for _, object := range o.All {
		b.Add(object)
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}
