package scaledown

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/graph"
)

// tries is how often a write is decided anew after a conflict: a Deployment's
// controller writes its status meanwhile.
const tries = 5

// writer makes the writes of one run and keeps what it made.
type writer struct {
	Providers
	dryRun bool
	writes []flow.Write
}

func (w *writer) options() metav1.PatchOptions {
	o := metav1.PatchOptions{FieldManager: management.FieldManager}
	if w.dryRun {
		o.DryRun = []string{metav1.DryRunAll}
	}
	return o
}

func (w *writer) made(kind graph.GroupKind, o metav1.Object, what string) {
	line := flow.Wrote(graph.ID{Group: kind.Group, Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}, what, w.dryRun)
	w.writes = append(w.writes, line)
	w.Progress.Say(flow.Update{Time: time.Now(), Wrote: line})
}

// deployment writes what decide says; after a conflict it is asked again about
// what is there then.
func (w *writer) deployment(ctx context.Context, d *appsv1.Deployment, decide func(*appsv1.Deployment) (map[string]any, string, error)) error {
	api := w.Cluster.Clientset().AppsV1().Deployments(d.Namespace)
	for try := 1; ; try++ {
		change, what, err := decide(d)
		if err != nil || change == nil {
			return err
		}
		body, err := json.Marshal(change)
		if err != nil {
			return fmt.Errorf("writing Deployment %s/%s: %w", d.Namespace, d.Name, err)
		}
		_, err = api.Patch(ctx, d.Name, types.MergePatchType, body, w.options())
		switch {
		case err == nil:
			w.made(graph.GroupKind{Group: "apps", Kind: "Deployment"}, d, what)
			return nil
		case apierrors.IsNotFound(err):
			return nil
		case apierrors.IsConflict(err) && try < tries:
			if d, err = api.Get(ctx, d.Name, metav1.GetOptions{}); err == nil {
				continue
			}
			if apierrors.IsNotFound(err) {
				return nil
			}
		}
		return fmt.Errorf("scaling the providers on %s: %w", w.Cluster.Name(), err)
	}
}

// hook is one webhook of a configuration, as far as this package goes.
type hook struct {
	name   string
	policy *admissionv1.FailurePolicyType
}

// webhooks writes what decide says about each webhook configuration of a provider.
func (w *writer) webhooks(ctx context.Context, decide func(metav1.Object, []hook) (map[string]any, string, error)) error {
	registry := w.Cluster.Clientset().AdmissionregistrationV1()
	labelled := metav1.ListOptions{LabelSelector: providerLabel}
	mutating, err := registry.MutatingWebhookConfigurations().List(ctx, labelled)
	if err != nil {
		return fmt.Errorf("listing the providers' webhooks on %s: %w", w.Cluster.Name(), err)
	}
	for i := range mutating.Items {
		m := &mutating.Items[i]
		var hooks []hook
		for _, h := range m.Webhooks {
			hooks = append(hooks, hook{h.Name, h.FailurePolicy})
		}
		err := w.webhook(m, "MutatingWebhookConfiguration", hooks, decide, func(body []byte) error {
			_, err := registry.MutatingWebhookConfigurations().Patch(ctx, m.Name, types.StrategicMergePatchType, body, w.options())
			return err
		})
		if err != nil {
			return err
		}
	}
	validating, err := registry.ValidatingWebhookConfigurations().List(ctx, labelled)
	if err != nil {
		return fmt.Errorf("listing the providers' webhooks on %s: %w", w.Cluster.Name(), err)
	}
	for i := range validating.Items {
		v := &validating.Items[i]
		var hooks []hook
		for _, h := range v.Webhooks {
			hooks = append(hooks, hook{h.Name, h.FailurePolicy})
		}
		err := w.webhook(v, "ValidatingWebhookConfiguration", hooks, decide, func(body []byte) error {
			_, err := registry.ValidatingWebhookConfigurations().Patch(ctx, v.Name, types.StrategicMergePatchType, body, w.options())
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) webhook(o metav1.Object, kind string, hooks []hook, decide func(metav1.Object, []hook) (map[string]any, string, error), send func([]byte) error) error {
	change, what, err := decide(o, hooks)
	if err != nil || change == nil {
		return err
	}
	body, err := json.Marshal(change)
	if err == nil {
		err = send(body)
	}
	switch {
	case err == nil:
		w.made(graph.GroupKind{Group: admissionv1.GroupName, Kind: kind}, o, what)
		return nil
	case apierrors.IsNotFound(err):
		return nil
	}
	return fmt.Errorf("changing the providers' webhooks on %s, run this again: %w", w.Cluster.Name(), err)
}

// ignore lets a webhook that nobody serves pass what it would refuse; its name is
// remembered in the same write.
func ignore(o metav1.Object, hooks []hook) (map[string]any, string, error) {
	failing := []string{}
	if mark, ours := o.GetAnnotations()[graph.WebhooksAnnotation]; ours {
		if err := json.Unmarshal([]byte(mark), &failing); err != nil {
			return nil, "", malformed(o, mark)
		}
	}
	var entries []map[string]any
	for _, h := range hooks {
		if h.policy == nil || *h.policy == admissionv1.Fail {
			failing = append(failing, h.name)
			entries = append(entries, map[string]any{"name": h.name, "failurePolicy": admissionv1.Ignore})
		}
	}
	if len(entries) == 0 {
		return nil, "", nil
	}
	mark, err := json.Marshal(failing)
	if err != nil {
		return nil, "", err
	}
	change := patch(o, map[string]any{graph.WebhooksAnnotation: string(mark)}, nil)
	change["webhooks"] = entries
	return change, "ignored where it fails", nil
}

// fail makes those that ignore has changed fail again; what is not there any more
// is left out.
func fail(o metav1.Object, hooks []hook) (map[string]any, string, error) {
	mark, ours := o.GetAnnotations()[graph.WebhooksAnnotation]
	if !ours {
		return nil, "", nil
	}
	var failing []string
	if err := json.Unmarshal([]byte(mark), &failing); err != nil {
		return nil, "", malformed(o, mark)
	}
	change := patch(o, map[string]any{graph.WebhooksAnnotation: nil}, nil)
	var entries []map[string]any
	for _, h := range hooks {
		for _, name := range failing {
			if name == h.name {
				entries = append(entries, map[string]any{"name": name, "failurePolicy": admissionv1.Fail})
				break
			}
		}
	}
	if len(entries) > 0 {
		change["webhooks"] = entries
	}
	return change, "in force again", nil
}

func malformed(o metav1.Object, mark string) error {
	return fmt.Errorf("%s: annotation %s is %q and not a list of webhooks: set failurePolicy by hand, remove the annotation, then run this again",
		o.GetName(), graph.WebhooksAnnotation, mark)
}
