package stack

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deploymentsTick is how often the stand-in looks.
const deploymentsTick = 300 * time.Millisecond

// RunDeployments gives each provider the Deployment that `clusterctl init` would,
// and stands in for what runs Deployments: when all of them are scaled to zero it
// stops the managers, when one is scaled up again it starts them, and it writes
// status when that is so. A bare management cluster has no managers: there only the
// Deployments are played. stop ends the stand-in and returns its first failure;
// it may be called twice.
func (m *Management) RunDeployments(ctx context.Context) (stop func() error, err error) {
	for _, p := range m.providers {
		if err := m.client.Create(ctx, p.deployment()); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("creating the Deployment of %s: %w", p.label(), err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	var failure error
	running.Go(func() {
		_ = wait.PollUntilContextCancel(ctx, deploymentsTick, true, func(ctx context.Context) (bool, error) {
			if err := m.followDeployments(ctx); err != nil && ctx.Err() == nil && failure == nil {
				failure = err
			}
			return false, nil
		})
	})
	return func() error {
		cancel()
		running.Wait()
		return failure
	}, nil
}

// deployment has the label by which clusterctl's users find it. Its Pods would
// need a scheduler and a kubelet, which nothing here is.
func (p installed) deployment() *appsv1.Deployment {
	labels := map[string]string{"cluster.x-k8s.io/provider": p.label(), clusterctlv1.ClusterctlLabel: ""}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.label(), Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "manager"}}},
			},
		},
	}
}

// Webhook is a provider's, for MachinePools that are created. Nobody serves it.
func Webhook(name string, policy admissionv1.FailurePolicyType) admissionv1.ValidatingWebhook {
	return admissionv1.ValidatingWebhook{
		Name: name, FailurePolicy: &policy, SideEffects: ptr.To(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/" + name)},
		Rules: []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{"cluster.x-k8s.io"}, APIVersions: []string{"*"}, Resources: []string{"machinepools"}},
		}},
	}
}

func (m *Management) followDeployments(ctx context.Context) error {
	list := &appsv1.DeploymentList{}
	if err := m.client.List(ctx, list, client.HasLabels{"cluster.x-k8s.io/provider"}); err != nil {
		return err
	}
	list.Items = slices.DeleteFunc(list.Items, func(d appsv1.Deployment) bool {
		return !slices.ContainsFunc(m.providers, func(p installed) bool { return p.namespace == d.Namespace })
	})
	wanted := false
	for _, d := range list.Items {
		wanted = wanted || ptr.Deref(d.Spec.Replicas, 1) > 0
	}
	if running := m.managersRun(); !m.options.Bare && wanted != running {
		follow := m.StopManagers
		if wanted {
			follow = m.StartManagers
		}
		if err := follow(ctx); err != nil {
			return err
		}
	}
	for i := range list.Items {
		d := &list.Items[i]
		replicas := ptr.Deref(d.Spec.Replicas, 1)
		if wanted && replicas == 0 {
			continue // its manager runs as long as any does
		}
		if d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == replicas {
			continue
		}
		d.Status.ObservedGeneration = d.Generation
		d.Status.Replicas, d.Status.UpdatedReplicas = replicas, replicas
		d.Status.ReadyReplicas, d.Status.AvailableReplicas = replicas, replicas
		if err := m.client.Status().Update(ctx, d); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func (m *Management) managersRun() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.managers) > 0 || m.inCloud
}
