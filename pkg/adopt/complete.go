package adopt

import (
	"fmt"
	"slices"
	"time"

	"github.com/move-hook/move-hook/pkg/graph"
)

// stampGrain is the precision of creationTimestamps: an object stamped 10:00:00
// may have arrived as late as the end of that second.
const stampGrain = time.Second

// incomplete names what has to exist before anything may be changed. With a
// record that is every object that moves with the Cluster; without one it is
// inferred from specs and labels.
func (v *view) incomplete() []Missing {
	if v.cluster == nil {
		return []Missing{v.missing(v.Cluster, byMove)}
	}
	if v.record != nil {
		return v.incompleteByRecord()
	}
	return v.incompleteByRules()
}

func (v *view) incompleteByRecord() []Missing {
	var out []Missing
	for i := range v.record.Nodes {
		n := &v.record.Nodes[i]
		if _, ok := v.Graph.Object(n.ID); !ok && n.Moves {
			out = append(out, v.missing(n.ID, byMove))
		}
	}
	return out
}

func (v *view) incompleteByRules() []Missing {
	out := v.unlisted()
	out = append(out, v.missingRefs(v.cluster, graph.FieldInfrastructureRef, graph.FieldControlPlaneRef)...)
	out = append(out, v.missingTemplates()...)
	for _, m := range v.machines {
		out = append(out, v.missingRefs(m, graph.FieldBootstrapConfigRef, graph.FieldInfrastructureRef, graph.FieldDataSecret)...)
	}
	for _, p := range v.pools {
		out = append(out, v.missingRefs(p, graph.FieldTemplateBootstrapConfigRef, graph.FieldTemplateInfrastructureRef, graph.FieldTemplateDataSecret)...)
	}
	out = append(out, v.missingTopologyWorkers()...)
	out = append(out, v.missingControlPlaneMachines()...)
	out = append(out, v.missingCertificates()...)
	return append(out, v.missingReplicas()...)
}

// unlisted names the kinds that are counted and of which absence cannot be claimed.
func (v *view) unlisted() []Missing {
	var out []Missing
	for _, gk := range []graph.GroupKind{graph.Secret, graph.Machine, graph.MachineSet, graph.MachineDeployment, graph.MachinePool} {
		_, served := v.Graph.KindInfo(gk)
		if v.Graph.Listed(gk, v.Cluster.Namespace) || (gk == graph.MachinePool && !served) {
			continue
		}
		out = append(out, Missing{Object: v.Cluster, What: fmt.Sprintf("may have objects of kind %s, which could not be listed", gk), unlisted: true})
	}
	return out
}

func (v *view) missingRefs(o *graph.Object, fields ...string) []Missing {
	var out []Missing
	for _, field := range fields {
		if to, ok := o.RefTo(field); ok {
			if _, ok := v.Graph.Object(to); !ok {
				out = append(out, v.missing(to, byMove))
			}
		}
	}
	return out
}

// missingTemplates looks at what new Machines would be made from.
func (v *view) missingTemplates() []Missing {
	var out []Missing
	for _, o := range v.own {
		if !v.isScaler(o) {
			continue
		}
		for _, e := range v.Graph.SpecRefs(o.ID) {
			if _, ok := v.Graph.Object(e.To); !ok && isTemplate(e.To) {
				out = append(out, v.missing(e.To, byMove))
			}
		}
	}
	return out
}

// missingTopologyWorkers looks for what the topology controller would make again as
// soon as the Cluster is free: it knows its MachineDeployments and MachinePools by a
// label (core/reconcilers/topology/cluster/current_state.go).
func (v *view) missingTopologyWorkers() []Missing {
	var out []Missing
	for _, of := range []struct {
		kind, label string
		names       []string
		have        []*graph.Object
	}{
		{graph.MachineDeployment.Kind, graph.TopologyDeploymentNameLabel, v.cluster.Facts.TopologyDeployments, v.deployments},
		{graph.MachinePool.Kind, graph.TopologyPoolNameLabel, v.cluster.Facts.TopologyPools, v.pools},
	} {
		for _, name := range of.names {
			if !slices.ContainsFunc(of.have, func(o *graph.Object) bool { return o.Labels[of.label] == name }) {
				out = append(out, Missing{Object: v.Cluster, What: fmt.Sprintf("has no %s %s of its topology", of.kind, name), Maker: byMove})
			}
		}
	}
	return out
}

// isScaler says that an object makes or deletes Machines by its replicas.
func (v *view) isScaler(o *graph.Object) bool {
	switch o.GroupKind() {
	case graph.MachineSet, graph.MachineDeployment, graph.MachinePool:
		return true
	}
	ref, ok := v.controlPlaneRef()
	return ok && o.ID == ref
}

// missingControlPlaneMachines counts the Machines against the control plane's
// replicas. Fewer are awaited whatever --allow-scale says: a Machine that has not
// arrived yet looks exactly like one that is to be made.
func (v *view) missingControlPlaneMachines() []Missing {
	cp := v.controlPlane
	if cp == nil || cp.Facts.Replicas == nil || !makesMachines(v.Graph, cp) {
		return nil
	}
	return fewer(cp.ID, len(v.controlPlaneMachines), *cp.Facts.Replicas, "control-plane Machines")
}

func fewer(id graph.ID, have int, want int64, what string) []Missing {
	if int64(have) >= want {
		return nil
	}
	return []Missing{{Object: id, What: fmt.Sprintf("has %d of %d %s", have, want, what), Maker: byMove}}
}

// missingCertificates looks for the Secrets that hold the cluster's certificates,
// whoever provided them: without them a KubeadmControlPlane silently makes new ones
// that do not match, or, of an external etcd, fails (util/secret,
// NewCertificatesForInitialControlPlane and LookupCached: there the Secret etcd
// holds the CA, and apiserver-etcd-client what the API server shows to it). Other
// control planes keep theirs in their own ways.
func (v *view) missingCertificates() []Missing {
	if !v.isKubeadm() && !v.standAloneKubeadm() {
		return nil
	}
	purposes := []string{"ca", "sa", "proxy", "etcd"}
	if v.controlPlane != nil && v.controlPlane.Facts.ExternalEtcd {
		purposes = append(purposes, "apiserver-etcd-client")
	}
	var out []Missing
	for _, p := range purposes {
		id := graph.ID{Kind: graph.Secret.Kind, Namespace: v.Cluster.Namespace, Name: v.Cluster.Name + "-" + p}
		if _, ok := v.Graph.Object(id); !ok {
			out = append(out, v.missing(id, byMove))
		}
	}
	return out
}

// standAloneKubeadm says that control-plane Machines without a control plane are made by kubeadm.
func (v *view) standAloneKubeadm() bool {
	if _, ok := v.controlPlaneRef(); ok {
		return false
	}
	for _, m := range v.controlPlaneMachines {
		if to, ok := m.RefTo(graph.FieldBootstrapConfigRef); ok && to.GroupKind() == graph.KubeadmConfig {
			return true
		}
	}
	return false
}

// missingReplicas counts Machines against MachineSets, and MachineSets against
// MachineDeployments. One that fits several owners counts for each of them: that
// it is ambiguous is a refusal and not a reason to wait.
func (v *view) missingReplicas() []Missing {
	count := v.dependents()
	var out []Missing
	for _, set := range v.sets {
		if r := set.Facts.Replicas; r != nil {
			out = append(out, fewer(set.ID, count[set.ID], *r, "Machines")...)
		}
	}
	for _, d := range v.deployments {
		if r := d.Facts.Replicas; r != nil && *r > 0 {
			out = append(out, fewer(d.ID, count[d.ID], 1, "MachineSets")...)
		}
	}
	return out
}

// dependents counts for each MachineSet the Machines, and for each
// MachineDeployment the MachineSets, that it owns or should own.
func (v *view) dependents() map[graph.ID]int {
	count := map[graph.ID]int{}
	for _, of := range [][]*graph.Object{v.machines, v.sets} {
		for _, o := range of {
			x := v.expect(o)
			for _, w := range x.wants {
				count[w.ID]++
			}
			for _, c := range x.candidates {
				count[c]++
			}
		}
	}
	return count
}

// settled is when the newest of the Cluster's own objects will have been there
// for --settle, and which object that is.
func (v *view) settled() (time.Time, *graph.Object) {
	var newest *graph.Object
	for _, o := range v.own {
		if newest == nil || o.Created.After(newest.Created) {
			newest = o
		}
	}
	if newest == nil || newest.Created.IsZero() {
		return time.Time{}, newest
	}
	return newest.Created.Add(stampGrain + v.Policy.Settle), newest
}
