package stack

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Provisioned writes, where no controllers run, the status without which
// clusterctl moves no Cluster (checkProvisioningCompleted of its objectMover), and
// what only controllers would put into specs: the provider IDs and the endpoint.
func Provisioned(ctx context.Context, m API, namespace string) error {
	if err := specified(ctx, m.Client(), namespace); err != nil {
		return err
	}
	clusters, machines := &clusterv1.ClusterList{}, &clusterv1.MachineList{}
	for _, list := range []client.ObjectList{clusters, machines} {
		if err := m.Client().List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
	}
	var objects []client.Object
	for i := range clusters.Items {
		status := &clusters.Items[i].Status
		status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true), ControlPlaneInitialized: ptr.To(true)}
		status.Conditions = []metav1.Condition{{
			Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue,
			Reason: clusterv1.ClusterControlPlaneInitializedReason, LastTransitionTime: metav1.Time{Time: time.Unix(0, 0)},
		}}
		objects = append(objects, &clusters.Items[i])
	}
	for i := range machines.Items {
		machines.Items[i].Status.NodeRef.Name = machines.Items[i].Name
		objects = append(objects, &machines.Items[i])
	}
	for _, o := range objects {
		if err := m.Client().Status().Update(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// specified fills in what is empty of the specs that infrastructure decides.
func specified(ctx context.Context, c client.Client, namespace string) error {
	clusters, machines, infra := &infrav1.DevClusterList{}, &clusterv1.MachineList{}, &infrav1.DevMachineList{}
	for _, list := range []client.ObjectList{clusters, machines, infra} {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
	}
	var objects []client.Object
	for i := range clusters.Items {
		if endpoint := &clusters.Items[i].Spec.ControlPlaneEndpoint; endpoint.Host == "" {
			*endpoint = infrav1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
			objects = append(objects, &clusters.Items[i])
		}
	}
	for i := range machines.Items {
		if m := &machines.Items[i]; m.Spec.ProviderID == "" {
			m.Spec.ProviderID = "dev:////" + m.Name
			objects = append(objects, m)
		}
	}
	for i := range infra.Items {
		if m := &infra.Items[i]; m.Spec.ProviderID == "" {
			m.Spec.ProviderID = "dev:////" + m.Name
			objects = append(objects, m)
		}
	}
	for _, o := range objects {
		if err := c.Update(ctx, o); err != nil {
			return err
		}
	}
	return nil
}
