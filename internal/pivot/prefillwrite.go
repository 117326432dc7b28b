package pivot

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/labels"
)

// hold pauses a control plane that its user made before anything is filled in: its
// controller must not see it half filled.
func (f *filling) hold(ctx context.Context) (end bool, err error) {
	if f.read.controlPlane == nil {
		return false, nil
	}
	change := labels.Hold(metaOf(f.read.controlPlane), f.by)
	end, err = f.change(ctx, f.read.controlPlane, change, "it is filled in before it acts")
	if err != nil || end || change.Empty() || f.o.DryRun {
		return end, err
	}
	// What follows carries the version of what is there now.
	now, err := f.on.Raw(ctx, f.result.ControlPlane)
	if err != nil || now == nil || now.GetUID() != f.read.controlPlane.GetUID() || now.GetGeneration() != f.read.controlPlane.GetGeneration() {
		f.moved = err == nil
		return true, err
	}
	f.read.controlPlane = now
	return false, nil
}

// template creates what the control plane names and what does not exist. The Cluster
// owns it, as its controllers would write (reconcileExternalReference).
func (f *filling) template(ctx context.Context) (end bool, err error) {
	if f.proposal.Template == nil {
		return false, nil
	}
	u := f.proposal.Template.DeepCopy()
	u.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: f.read.cluster.GetAPIVersion(), Kind: f.read.cluster.GetKind(), Name: f.read.cluster.GetName(), UID: f.read.cluster.GetUID(),
	}})
	return f.create(ctx, u)
}

// controlPlane creates the whole of it in one write, held and marked, or adds the
// fields that it lacks in one write.
func (f *filling) controlPlane(ctx context.Context) (end bool, err error) {
	if f.read.controlPlane == nil {
		u, err := f.wanted(f.by)
		if err != nil {
			return true, err
		}
		return f.create(ctx, u)
	}
	if len(f.proposal.Additions) == 0 {
		return false, nil
	}
	return f.set(ctx, f.read.controlPlane, map[string]any{"spec": f.proposal.Additions}, "filled")
}

func (f *filling) label(ctx context.Context) (end bool, err error) {
	for _, m := range f.proposal.Members {
		u := f.read.machines[m.Machine.Name]
		if end, err := f.change(ctx, u, labels.MarkPending(metaOf(u)), "adoption is wanted"); err != nil || end {
			return end, err
		}
	}
	return false, nil
}

// refer is the last write: until now nothing leads from the Cluster to the control plane.
func (f *filling) refer(ctx context.Context) (end bool, err error) {
	if f.in.Cluster.Spec.ControlPlaneRef.IsDefined() {
		return false, nil
	}
	id := f.result.ControlPlane
	return f.set(ctx, f.read.cluster, map[string]any{"spec": map[string]any{"controlPlaneRef": map[string]any{
		"apiGroup": id.Group, "kind": id.Kind, "name": id.Name,
	}}}, "refers to its control plane")
}

func (f *filling) install(ctx context.Context) (end bool, err error) {
	wrote, err := f.guard.install(ctx, f.o.Progress, map[string]bool{})
	for _, w := range wrote {
		f.wrote(w)
	}
	return true, err
}

// wanted is the control plane as it is to be, with hold and label.
func (f *filling) wanted(by labels.Holder) (*unstructured.Unstructured, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(f.proposal.ControlPlane)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: object}
	// What only the server says.
	for _, path := range [][]string{{"status"}, {"metadata", "creationTimestamp"}, {"metadata", "managedFields"}, {"metadata", "uid"},
		{"metadata", "resourceVersion"}, {"metadata", "generation"}} {
		unstructured.RemoveNestedField(u.Object, path...)
	}
	meta := metaOf(u)
	for _, change := range []func(labels.Meta) labels.Change{
		labels.MarkPending, func(m labels.Meta) labels.Change { return labels.Hold(m, by) },
	} {
		meta = change(meta).Apply(meta)
	}
	if v := meta.Annotations[labels.Held]; by.Since.IsZero() && v == by.String() {
		meta.Annotations[labels.Held] = by.Who // the same input prints the same bytes
	}
	u.SetLabels(meta.Labels)
	u.SetAnnotations(meta.Annotations)
	return u, nil
}

func metaOf(u *unstructured.Unstructured) labels.Meta {
	return labels.Meta{Labels: u.GetLabels(), Annotations: u.GetAnnotations()}
}

func (f *filling) change(ctx context.Context, u *unstructured.Unstructured, c labels.Change, why adopt.Reason) (end bool, err error) {
	if c.Empty() {
		return false, nil
	}
	a := adopt.ChangeMeta{On: rawTarget(u), Change: c, Reason: why}
	outcome, err := f.on.Apply(ctx, a, f.o.DryRun)
	return f.came(outcome, flow.WriteOf(a, f.o.DryRun), err)
}

func (f *filling) create(ctx context.Context, u *unstructured.Unstructured) (end bool, err error) {
	outcome, err := f.on.Create(ctx, u, f.o.DryRun)
	if outcome == adopt.AlreadyThere {
		outcome = adopt.Moved // somebody made one since it was looked for: look what it is
	}
	return f.came(outcome, flow.Wrote(rawTarget(u).ID, "created", f.o.DryRun), err)
}

func (f *filling) set(ctx context.Context, u *unstructured.Unstructured, fields map[string]any, participle string) (end bool, err error) {
	outcome, err := f.on.Set(ctx, rawTarget(u), fields, f.o.DryRun)
	return f.came(outcome, flow.Wrote(rawTarget(u).ID, participle, f.o.DryRun), err)
}

// came is what a write led to: a world that has moved ends this run.
func (f *filling) came(outcome adopt.Outcome, w flow.Write, err error) (end bool, _ error) {
	if err != nil {
		return true, err
	}
	if outcome == adopt.Applied {
		f.wrote(w)
	}
	f.moved = outcome == adopt.Moved
	return f.moved, nil
}

func (f *filling) wrote(w flow.Write) {
	f.result.Writes = append(f.result.Writes, w)
	f.o.Progress.Say(flow.Update{Time: time.Now(), Wrote: w})
}
