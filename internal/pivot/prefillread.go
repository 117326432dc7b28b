package pivot

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/prefill"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// readObjects are those that are written: as the server gave them.
type readObjects struct {
	cluster, controlPlane *unstructured.Unstructured
	machines              map[string]*unstructured.Unstructured
}

// look reads the Cluster and everything that its control plane is worked out from.
func (f *filling) look(ctx context.Context) (end bool, err error) {
	if err := f.versions(ctx); err != nil {
		return true, err
	}
	f.read.machines = map[string]*unstructured.Unstructured{}
	if f.read.cluster, err = f.on.Raw(ctx, f.result.Cluster); err != nil {
		return true, err
	}
	if f.read.cluster == nil {
		f.result.Outcome = flow.Findings
		f.result.Findings = []finding.Finding{{ID: "ClusterNotFound", Severity: finding.Stops, Object: f.result.Cluster.String(),
			Message: "does not exist on " + f.on.Name(), Remedy: "check its name and namespace"}}
		return true, nil
	}
	f.in.Cluster = &clusterv1.Cluster{}
	if err := typed(f.read.cluster, f.in.Cluster); err != nil {
		return true, err
	}
	for _, read := range []func(context.Context) error{f.lookControlPlane, f.lookMachines, f.lookTemplates, f.lookEtcd} {
		if err := read(ctx); err != nil {
			return true, err
		}
	}
	return false, nil
}

// versions: the fields that are filled in have their places in v1beta2 only.
func (f *filling) versions(ctx context.Context) error {
	for gk, want := range map[graph.GroupKind]string{
		graph.Cluster:             clusterv1.GroupVersion.String(),
		graph.KubeadmConfig:       bootstrapv1.GroupVersion.String(),
		graph.KubeadmControlPlane: controlplanev1.GroupVersion.String(),
	} {
		have, err := f.on.Served(ctx, gk)
		switch {
		case err != nil:
			return err
		case have == "":
			return fmt.Errorf("%s does not serve %s: install Cluster API's kubeadm providers there (clusterctl init)", f.on.Name(), gk)
		case have != want:
			return fmt.Errorf("%s serves %s as %s and prefill needs %s: upgrade Cluster API there to v1.11 or newer", f.on.Name(), gk, have, want)
		}
	}
	return nil
}

func (f *filling) lookControlPlane(ctx context.Context) (err error) {
	ref := f.in.Cluster.Spec.ControlPlaneRef
	f.in.Name = cmp.Or(f.o.ControlPlane, ref.Name, f.o.Cluster.Name+"-control-plane")
	id := graph.ID{Group: graph.ControlPlaneGroup, Kind: graph.KubeadmControlPlane.Kind, Namespace: f.o.Cluster.Namespace, Name: f.in.Name}
	f.result.ControlPlane = id
	if f.read.controlPlane, err = f.on.Raw(ctx, id); err != nil || f.read.controlPlane == nil {
		return err
	}
	f.in.Existing = &controlplanev1.KubeadmControlPlane{}
	return typed(f.read.controlPlane, f.in.Existing)
}

func (f *filling) lookMachines(ctx context.Context) error {
	ns := f.o.Cluster.Namespace
	selector := graph.ClusterNameLabel + "=" + f.o.Cluster.Name + "," + graph.ControlPlaneLabel
	machines, err := f.on.Raws(ctx, graph.Machine, ns, selector)
	if err != nil {
		return err
	}
	for i := range machines {
		m := prefill.Member{Machine: &clusterv1.Machine{}}
		f.read.machines[machines[i].GetName()] = &machines[i]
		if err := typed(&machines[i], m.Machine); err != nil {
			return err
		}
		if ref := m.Machine.Spec.Bootstrap.ConfigRef; ref.Kind == graph.KubeadmConfig.Kind {
			u, err := f.on.Raw(ctx, graph.ID{Group: ref.APIGroup, Kind: ref.Kind, Namespace: ns, Name: ref.Name})
			if err != nil {
				return err
			}
			if u != nil {
				m.Config = &bootstrapv1.KubeadmConfig{}
				if err := typed(u, m.Config); err != nil {
					return err
				}
			}
		}
		ref := m.Machine.Spec.InfrastructureRef
		if m.Infra, err = f.on.Raw(ctx, graph.ID{Group: ref.APIGroup, Kind: ref.Kind, Namespace: ns, Name: ref.Name}); err != nil {
			return err
		}
		f.in.Members = append(f.in.Members, m)
	}
	return nil
}

func (f *filling) lookTemplates(ctx context.Context) (err error) {
	infra, ok := prefill.InfraKind(f.in.Members)
	if !ok {
		return nil
	}
	kind := prefill.TemplateKind(infra)
	if f.in.TemplateAPIVersion, err = f.on.Served(ctx, kind); err != nil {
		return err
	}
	f.in.Templates, err = f.on.Raws(ctx, kind, f.o.Cluster.Namespace, "")
	return err
}

// lookEtcd: who has an external etcd must have a Secret of this name (util/secret,
// APIServerEtcdClient).
func (f *filling) lookEtcd(ctx context.Context) error {
	secret, err := f.on.Get(ctx, graph.ID{Kind: graph.Secret.Kind, Namespace: f.o.Cluster.Namespace, Name: f.o.Cluster.Name + "-apiserver-etcd-client"}, false)
	f.in.ExternalEtcd = secret != nil
	return err
}

func typed(u *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return fmt.Errorf("reading %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	return nil
}

func rawTarget(u *unstructured.Unstructured) adopt.Target {
	return adopt.Target{
		ID:  graph.ID{Group: graph.GroupOf(u.GetAPIVersion()), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()},
		UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), APIVersion: u.GetAPIVersion(),
	}
}
