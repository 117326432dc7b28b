package management

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Room is what a namespace leaves for objects that are to come.
type Room struct {
	Exists, Terminating bool
	Quotas              []Quota
}

// Quota is a ResourceQuota, as far as it counts objects: by "count/machines.cluster.x-k8s.io",
// or "secrets" and the like. It limits nothing that is not in Hard.
type Quota struct {
	Name       string
	Hard, Used map[string]int64
}

// RoomIn looks at a namespace. Warnings say what could not be looked at.
func (c *Cluster) RoomIn(ctx context.Context, namespace string) (Room, []Warning, error) {
	var warnings []Warning
	r := Room{Exists: true}
	ns, err := c.clientset.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Room{}, nil, nil
	case err == nil:
		r.Terminating = ns.DeletionTimestamp != nil
	case Answered(err):
		// What is then done in it says the rest.
		warnings = append(warnings, Warning{What: "Namespace " + namespace, Why: err.Error()})
	default:
		return Room{}, nil, fmt.Errorf("reading namespace %s on %s: %w", namespace, c.name, err)
	}
	list, err := c.clientset.CoreV1().ResourceQuotas(namespace).List(ctx, metav1.ListOptions{})
	switch {
	case err == nil:
	case Answered(err):
		return r, append(warnings, Warning{What: "ResourceQuotas in namespace " + namespace, Why: err.Error()}), nil
	default:
		return Room{}, nil, fmt.Errorf("listing ResourceQuotas in namespace %s on %s: %w", namespace, c.name, err)
	}
	for _, q := range list.Items {
		r.Quotas = append(r.Quotas, Quota{Name: q.Name, Hard: counts(q.Spec.Hard), Used: counts(q.Status.Used)})
	}
	return r, warnings, nil
}

// counts are whole numbers; amounts of memory and the like are no objects, and are
// never asked for.
func counts(list corev1.ResourceList) map[string]int64 {
	out := map[string]int64{}
	for name, quantity := range list {
		out[string(name)] = quantity.Value()
	}
	return out
}
