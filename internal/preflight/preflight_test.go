package preflight

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/internal/fleet"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

func TestChecks_EachFaultIsFoundAndNothingElse(t *testing.T) {
	widget := graph.GroupKind{Group: "example.com", Kind: "Widget"}
	each(t, map[string]planted{
		"nothing": {func(*fleet.Objects) {}, nil},
		"paused by spec": {func(o *fleet.Objects) {
			o.Change(c1, func(c *graph.Object) { c.Facts.Paused = true })
		}, []string{"Paused Cluster fleet/c1 stops"}},
		"paused by annotation": {func(o *fleet.Objects) {
			o.Change(c1, fleet.Annotated(labels.Paused, "true"))
		}, []string{"Paused Cluster fleet/c1 stops"}},
		"a paused scaler is no fault": {func(o *fleet.Objects) {
			o.Change(fleet.ID(graph.MachineDeployment, "c1-md"), fleet.Annotated(labels.Paused, ""))
		}, nil},
		"a paused class": {func(o *fleet.Objects) {
			class := o.Add(graph.ClusterClass, "quick", nil, fleet.Annotated(labels.Paused, ""))
			o.Change(c1, fleet.RefersTo(graph.FieldClassRef, class), func(c *graph.Object) { c.Facts.Topology = true })
		}, []string{"Paused ClusterClass fleet/quick stops"}},
		"infrastructure is not there yet": {func(o *fleet.Objects) {
			o.Change(c1, func(c *graph.Object) { c.Facts.InfrastructureProvisioned = false })
		}, []string{"InfrastructureNotProvisioned Cluster fleet/c1 stops"}},
		"a Machine has not joined": {func(o *fleet.Objects) {
			o.Change(fleet.ID(graph.Machine, "c1-md-0"), func(m *graph.Object) { m.Facts.NodeName = "" })
		}, []string{"MachineWithoutNode Machine fleet/c1-md-0 stops"}},
		"no control plane has joined": {func(o *fleet.Objects) {
			o.Change(fleet.ID(graph.Machine, "c1-cp-0"), func(m *graph.Object) { m.Facts.NodeName = "" })
		}, []string{"ControlPlaneNotInitialized KubeadmControlPlane fleet/c1-cp stops", "MachineWithoutNode Machine fleet/c1-cp-0 stops"}},
		"a control plane that a provider hosts": {func(o *fleet.Objects) {
			o.Change(fleet.ID(graph.Machine, "c1-cp-0"), fleet.Labelled(graph.ControlPlaneLabel, ""), func(m *graph.Object) { delete(m.Labels, graph.ControlPlaneLabel) })
			o.Change(fleet.ID(graph.KubeadmControlPlane, "c1-cp"), func(k *graph.Object) { k.Facts.Replicas = nil })
		}, nil},
		"something is being deleted": {func(o *fleet.Objects) {
			o.Change(fleet.ID(graph.KubeadmConfig, "c1-md-0"), func(k *graph.Object) { k.Deleting = true })
		}, []string{"BeingDeleted KubeadmConfig fleet/c1-md-0 stops"}},
		"a template that nothing owns": {func(o *fleet.Objects) {
			o.Change(fleet.ID(fleet.InfraTemplate, "c1"), func(t *graph.Object) { t.Owners = nil })
		}, []string{"LeftBehind DevMachineTemplate fleet/c1 harms"}},
		"an owner that clusterctl does not see": {func(o *fleet.Objects) {
			o.Kinds = append(o.Kinds, graph.KindInfo{GroupKind: widget, APIVersion: "example.com/v1", Namespaced: true})
			w := o.Add(widget, "w", nil)
			m := o.All[fleet.ID(graph.Machine, "c1-md-0")]
			o.Add(graph.Machine, "c1-md-0", []graph.ID{fleet.ID(graph.MachineSet, "c1-md-1"), w}, func(again *graph.Object) {
				owners, uid := again.Owners, m.UID
				*again = m
				again.Owners, again.UID = owners, uid
			})
		}, []string{
			"LeftBehind DevMachine fleet/c1-md-0 harms",
			"LeftBehind KubeadmConfig fleet/c1-md-0 harms",
			"LeftBehind Machine fleet/c1-md-0 harms",
			"LeftBehind Secret fleet/c1-md-0 harms",
			"LeftBehind Widget fleet/w harms",
		}},
		"a reference to a kind that clusterctl does not discover": {func(o *fleet.Objects) {
			o.Change(fleet.ID(fleet.InfraCluster, "c1"), fleet.RefersTo("spec.identityRef", graph.ID{Group: "example.com", Kind: "Identity", Name: "shared"}))
		}, []string{"LeftBehind Identity shared harms"}},
		"owners that clusterctl fails to read": {func(o *fleet.Objects) {
			owner := func(kind graph.GroupKind, name string) fleet.Edit {
				return func(x *graph.Object) {
					x.Owners = []metav1.OwnerReference{{APIVersion: graph.CoreGroup + "/v1beta2", Kind: kind.Kind, Name: name, UID: "elsewhere"}}
				}
			}
			o.Add(graph.ConfigMap, "stray", nil, owner(graph.Cluster, "gone"))
			o.Add(graph.ConfigMap, "stray-class", nil, owner(graph.ClusterClass, "gone"))
			o.Add(graph.Secret, "stale", nil, owner(graph.Machine, "c1-md-0"))
			o.Add(graph.Secret, "harmless", nil, owner(graph.MachineSet, "gone"))
		}, []string{"UnseenOwner ConfigMap fleet/stray stops", "UnseenOwner ConfigMap fleet/stray-class stops", "UnseenOwner Secret fleet/stale stops"}},
		"a reference to nothing": {func(o *fleet.Objects) {
			o.Change(fleet.ID(fleet.InfraCluster, "c1"), fleet.RefersTo("spec.credentials", fleet.ID(graph.Secret, "gone")))
		}, []string{"DanglingReference Secret fleet/gone notes"}},
	})
}

// planted is a Cluster c1 with something wrong, and what is found.
type planted struct {
	plant func(*fleet.Objects)
	want  []string
}

func each(t *testing.T, all map[string]planted) {
	t.Helper()
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			o := fleet.New("source")
			o.Cluster("c1", 1, 2)
			c.plant(o)
			same(t, c.want, Run(Input{Namespace: "fleet", Source: NewScope(o.Graph(), []graph.ID{c1}), Now: now}))
		})
	}
}

func same(t *testing.T, want []string, found []finding.Finding) {
	t.Helper()
	var got []string
	for _, f := range found {
		got = append(got, f.ID+" "+f.Object+" "+string(f.Severity))
		if f.Message == "" || f.Severity != finding.Notes && f.Remedy == "" {
			t.Errorf("%s says too little", f)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFlying_WhatScalersHaveBegunIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(*fleet.Objects)
		want  []string
	}{
		"nothing": {func(*fleet.Objects) {}, nil},
		"a Machine is missing from its set": {func(o *fleet.Objects) {
			o.Change(fleet.ID(graph.MachineSet, "c1-md-1"), fleet.Replicas(3))
		}, []string{"MachineSet fleet/c1-md-1 has 2 Machines and wants 3 (its controller) needs c1-md-1 c1-md"}},
		"a control-plane Machine too many": {func(o *fleet.Objects) {
			o.Machine(c1, fleet.ID(graph.KubeadmControlPlane, "c1-cp"), "c1-cp-9", fleet.Labelled(graph.ControlPlaneLabel, ""))
		}, []string{"KubeadmControlPlane fleet/c1-cp has 2 Machines and wants 1 (its controller) needs c1-cp"}},
		"a remediation": {func(o *fleet.Objects) {
			o.Change(kcp, fleet.Annotated(remediationAnnotation, "{}"))
		}, []string{"KubeadmControlPlane fleet/c1-cp is remediating a Machine (its controller) needs c1-cp"}},
		"an update in place": {func(o *fleet.Objects) {
			o.Change(worker, fleet.Annotated(updateAnnotation, ""))
		}, []string{"Machine fleet/c1-md-0 is being updated in place (its controller) needs c1-md-1 c1-md"}},
		"joining and leaving": {func(o *fleet.Objects) {
			o.Change(fleet.ID(graph.Machine, "c1-md-0"), func(m *graph.Object) { m.Facts.NodeName = "" })
			o.Change(fleet.ID(graph.Machine, "c1-md-1"), func(m *graph.Object) { m.Deleting = true })
		}, []string{"Machine fleet/c1-md-0 has not joined its cluster needs", "Machine fleet/c1-md-1 is being deleted needs"}},
		"a rollout": {func(o *fleet.Objects) {
			ms := o.Add(graph.MachineSet, "c1-md-2", []graph.ID{fleet.ID(graph.MachineDeployment, "c1-md")}, fleet.Labelled(graph.ClusterNameLabel, "c1"), fleet.Replicas(1))
			o.Machine(c1, ms, "c1-md-9")
		}, []string{"MachineDeployment fleet/c1-md is rolling out: 2 of its MachineSets have replicas (its controller) needs c1-md c1-md-1 c1-md-2"}},
		"an old set without replicas": {func(o *fleet.Objects) {
			o.Add(graph.MachineSet, "c1-md-0", []graph.ID{fleet.ID(graph.MachineDeployment, "c1-md")}, fleet.Labelled(graph.ClusterNameLabel, "c1"), fleet.Replicas(0))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := fleet.New("source")
			o.Cluster("c1", 1, 2)
			c.plant(o)
			var got []string
			for _, f := range Flying(NewScope(o.Graph(), []graph.ID{c1})) {
				line := f.String() + " needs"
				for _, s := range f.Scalers {
					line += " " + s.Name
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
