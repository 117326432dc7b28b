package pivot

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/pkg/graph"
)

// objects builds the objects of test clusters. Each has the UID "<side>-<n>".
type objects struct {
	side  string
	kinds []graph.KindInfo
	all   map[graph.ID]graph.Object
	next  int
}

const infraGroup = "infrastructure.cluster.x-k8s.io"

var (
	infraCluster  = graph.GroupKind{Group: infraGroup, Kind: "DevCluster"}
	infraMachine  = graph.GroupKind{Group: infraGroup, Kind: "DevMachine"}
	infraTemplate = graph.GroupKind{Group: infraGroup, Kind: "DevMachineTemplate"}
)

func newObjects(side string) *objects {
	o := &objects{side: side, all: map[graph.ID]graph.Object{}}
	for _, kind := range []graph.GroupKind{graph.Cluster, graph.ClusterClass, graph.Machine, graph.MachineSet, graph.MachineDeployment,
		graph.MachineHealthCheck, graph.KubeadmConfig, graph.KubeadmControlPlane, infraCluster, infraMachine, infraTemplate, graph.Secret, graph.ConfigMap} {
		version := "v1beta2"
		if kind.Group == "" {
			version = "v1"
		}
		info := graph.KindInfo{GroupKind: kind, APIVersion: version, Namespaced: true, Discovered: true, ForceMove: graph.ForceMoves(kind), ForceMoveHierarchy: graph.ForceMoves(kind)}
		if kind.Group != "" {
			info.APIVersion = kind.Group + "/" + version
		}
		o.kinds = append(o.kinds, info)
	}
	return o
}

type edit func(*graph.Object)

// add puts an object into namespace fleet, owned by the given owners (the first controls).
func (o *objects) add(kind graph.GroupKind, name string, owners []graph.ID, edits ...edit) graph.ID {
	id := graph.ID{Group: kind.Group, Kind: kind.Kind, Namespace: "fleet", Name: name}
	o.next++
	made := graph.Object{ID: id, UID: types.UID(o.side + "-" + strconv.Itoa(o.next)), ResourceVersion: strconv.Itoa(o.next)}
	for _, k := range o.kinds {
		if k.GroupKind == kind {
			made.APIVersion = k.APIVersion
		}
	}
	for i, owner := range owners {
		above := o.all[owner]
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
	o.all[id] = made
	return id
}

// change edits an object that is there.
func (o *objects) change(id graph.ID, edits ...edit) {
	made, ok := o.all[id]
	if !ok {
		panic(id.String())
	}
	for _, e := range edits {
		e(&made)
	}
	o.next++
	made.ResourceVersion = strconv.Itoa(o.next)
	o.all[id] = made
}

func refersTo(field string, to graph.ID) edit {
	return func(o *graph.Object) { o.Refs = append(o.Refs, graph.Ref{Field: field, To: to}) }
}

func replicas(n int64) edit { return func(o *graph.Object) { o.Facts.Replicas = &n } }

func labelled(pairs ...string) edit {
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

func annotated(key, value string) edit {
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

func idOf(kind graph.GroupKind, name string) graph.ID {
	return graph.ID{Group: kind.Group, Kind: kind.Kind, Namespace: "fleet", Name: name}
}

// cluster adds a Cluster with a control plane and one MachineDeployment.
func (o *objects) cluster(name string, controlPlanes, workers int) graph.ID {
	infra, cp := idOf(infraCluster, name), idOf(graph.KubeadmControlPlane, name+"-cp")
	cluster := o.add(graph.Cluster, name, nil,
		refersTo(graph.FieldInfrastructureRef, infra), refersTo(graph.FieldControlPlaneRef, cp),
		func(c *graph.Object) { c.Facts.InfrastructureProvisioned, c.Facts.Endpoint = true, "10.0.0.1:6443" })
	mine := labelled(graph.ClusterNameLabel, name)
	o.add(infraCluster, name, []graph.ID{cluster}, mine)
	template := o.add(infraTemplate, name, []graph.ID{cluster})
	o.add(graph.KubeadmControlPlane, name+"-cp", []graph.ID{cluster}, mine, replicas(int64(controlPlanes)), refersTo("spec.machineTemplate.infrastructureRef", template))
	for _, purpose := range []string{"ca", "etcd", "sa", "proxy", "kubeconfig"} {
		o.add(graph.Secret, name+"-"+purpose, []graph.ID{cp}, mine)
	}
	md := o.add(graph.MachineDeployment, name+"-md", []graph.ID{cluster}, mine, replicas(int64(workers)), refersTo(graph.FieldClusterName, cluster))
	ms := o.add(graph.MachineSet, name+"-md-1", []graph.ID{md}, mine, replicas(int64(workers)))
	o.add(graph.MachineHealthCheck, name, []graph.ID{cluster}, mine, refersTo(graph.FieldClusterName, cluster))
	for i := range controlPlanes {
		o.machine(cluster, cp, fmt.Sprintf("%s-cp-%d", name, i), labelled(graph.ControlPlaneLabel, ""))
	}
	for i := range workers {
		o.machine(cluster, ms, fmt.Sprintf("%s-md-%d", name, i))
	}
	return cluster
}

func (o *objects) machine(cluster, owner graph.ID, name string, edits ...edit) graph.ID {
	mine := labelled(graph.ClusterNameLabel, cluster.Name)
	m := o.add(graph.Machine, name, []graph.ID{owner}, append([]edit{mine,
		refersTo(graph.FieldBootstrapConfigRef, idOf(graph.KubeadmConfig, name)),
		refersTo(graph.FieldInfrastructureRef, idOf(infraMachine, name)),
		func(m *graph.Object) { m.Facts.NodeName, m.Facts.ProviderID = name, "dev:///"+name },
	}, edits...)...)
	config := o.add(graph.KubeadmConfig, name, []graph.ID{m}, mine)
	o.add(infraMachine, name, []graph.ID{m}, mine)
	o.add(graph.Secret, name, []graph.ID{config}, mine)
	return m
}

// graph is what a complete read of namespace fleet gives.
func (o *objects) graph() *graph.Graph {
	var b graph.Builder
	for _, k := range o.kinds {
		b.Kind(k)
		b.Listed(k.GroupKind, "fleet")
	}
	for _, object := range o.all {
		b.Add(object)
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}
