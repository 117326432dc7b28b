package stack

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readyTimeout is for one workload cluster on two busy cores.
const readyTimeout = 5 * time.Minute

// WaitReady waits until the Cluster is Available, control plane and workers
// have the replicas that they want, and every Machine is Ready. A Cluster
// without a control plane object must have its control plane initialised
// instead. The error of a time-out names what is missing.
func WaitReady(ctx context.Context, m API, cluster client.ObjectKey) error {
	var missing []string
	err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		now, err := Unready(ctx, m, cluster)
		if ctx.Err() != nil {
			return false, nil //nolint:nilerr // Keep what was known before the time was up.
		}
		if missing = now; err != nil {
			missing = []string{err.Error()}
		}
		return len(missing) == 0, nil
	})
	if err == nil {
		return nil
	}
	return fmt.Errorf("cluster %s on %s is not ready%s: %w; missing:\n  %s",
		cluster, m.Name(), keptLogs(m), err, strings.Join(missing, "\n  "))
}

// keptLogs has the stack keep its logs, and says where they are.
func keptLogs(m API) string {
	if own, ok := m.(*Management); ok {
		own.KeepLogs()
		return fmt.Sprintf(" (logs: %s)", own.LogDir())
	}
	return ""
}

// waitInitialized waits until the first control-plane Machine serves.
func waitInitialized(ctx context.Context, m API, key client.ObjectKey) error {
	cluster := &clusterv1.Cluster{}
	err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		err := m.Client().Get(ctx, key, cluster)
		// status.initialization says it only where there is a control plane object.
		return conditions.IsTrue(cluster, clusterv1.ClusterControlPlaneInitializedCondition), err
	})
	if err != nil {
		return fmt.Errorf("the control plane of %s on %s is not initialised%s: %w", key, m.Name(), keptLogs(m), err)
	}
	return nil
}

// Unready names what keeps the Cluster from being ready: nothing, if it is.
func Unready(ctx context.Context, m API, key client.ObjectKey) ([]string, error) {
	cluster := &clusterv1.Cluster{}
	if err := m.Client().Get(ctx, key, cluster); err != nil {
		return nil, err
	}
	machines := &clusterv1.MachineList{}
	err := m.Client().List(ctx, machines, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: key.Name})
	if err != nil {
		return nil, err
	}
	var missing []string
	if standAlone := !cluster.Spec.ControlPlaneRef.IsDefined() && !cluster.Spec.Topology.IsDefined(); standAlone {
		// Upstream leaves Available unknown for these (core/reconcilers/cluster/cluster_controller_status.go,
		// setControlPlaneAvailableCondition), and does not look at their Machines again once initialised.
		missing = notTrue("Cluster", cluster, clusterv1.ClusterControlPlaneInitializedCondition)
		cluster.Status.ControlPlane = nil
	} else {
		missing = notTrue("Cluster", cluster, clusterv1.AvailableCondition)
	}
	if cp := cluster.Status.ControlPlane; cp != nil && ptr.Deref(cp.DesiredReplicas, 0) != ptr.Deref(cp.ReadyReplicas, 0) {
		missing = append(missing, fmt.Sprintf("control plane: %d of %d replicas ready", ptr.Deref(cp.ReadyReplicas, 0), ptr.Deref(cp.DesiredReplicas, 0)))
	}
	if w := cluster.Status.Workers; w != nil && ptr.Deref(w.DesiredReplicas, 0) != ptr.Deref(w.ReadyReplicas, 0) {
		missing = append(missing, fmt.Sprintf("workers: %d of %d replicas ready", ptr.Deref(w.ReadyReplicas, 0), ptr.Deref(w.DesiredReplicas, 0)))
	}
	if len(machines.Items) == 0 {
		missing = append(missing, "no Machine yet")
	}
	for i := range machines.Items {
		machine := &machines.Items[i]
		missing = append(missing, notTrue("Machine "+machine.Name, machine, clusterv1.ReadyCondition)...)
	}
	return missing, nil
}

func notTrue(what string, object conditions.Getter, kind string) []string {
	condition := conditions.Get(object, kind)
	switch {
	case condition == nil:
		return []string{fmt.Sprintf("%s: no condition %s yet", what, kind)}
	case condition.Status == metav1.ConditionTrue:
		return nil
	default:
		return []string{fmt.Sprintf("%s: not %s: %s", what, kind, strings.ReplaceAll(condition.Message, "\n", " "))}
	}
}
