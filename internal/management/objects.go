package management

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

// Whole objects are for the one flow that writes specs, `move-hook prefill`; all
// others see graph.Object and change metadata.

// Raw reads one object as the server gives it; nil if it or its kind does not exist.
// Secrets are refused: their data is never read.
func (c *Cluster) Raw(ctx context.Context, id graph.ID) (*unstructured.Unstructured, error) {
	api, err := c.raws(ctx, id)
	if err != nil || api == nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	u, err := api.Get(ctx, id.Name, metav1.GetOptions{})
	if err != nil {
		return nil, c.unlessNotFound(id, err)
	}
	return u, nil
}

// Raws lists a kind in a namespace by a label selector (empty: all), sorted by name.
func (c *Cluster) Raws(ctx context.Context, gk graph.GroupKind, namespace, selector string) ([]unstructured.Unstructured, error) {
	api, err := c.raws(ctx, graph.ID{Group: gk.Group, Kind: gk.Kind, Namespace: namespace})
	if err != nil || api == nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := api.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing %s in namespace %s on %s: %w", gk, namespace, c.name, err)
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list.Items, nil
}

// Served is the version in which the server serves a kind, "group/version"; empty if
// it does not.
func (c *Cluster) Served(ctx context.Context, gk graph.GroupKind) (string, error) {
	d, err := c.Discover(ctx)
	if err != nil {
		return "", err
	}
	k, ok := d.Find(gk)
	if !ok && len(d.Warnings) > 0 {
		return "", fmt.Errorf("%s: nobody can say whether %s serves it: %s", gk, c.name, d.Warnings[0])
	}
	return k.APIVersion, nil
}

// Create makes an object. AlreadyThere: there is one of that name.
func (c *Cluster) Create(ctx context.Context, u *unstructured.Unstructured, dryRun bool) (adopt.Outcome, error) {
	id := IDOf(u)
	gvr, err := c.resourceOf(ctx, id)
	if err != nil {
		return adopt.Moved, err
	}
	options := metav1.CreateOptions{FieldManager: FieldManager}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err = c.dynamic.Resource(gvr).Namespace(id.Namespace).Create(ctx, u, options)
	if apierrors.IsAlreadyExists(err) {
		return adopt.AlreadyThere, nil
	}
	return outcomeOf(id, err)
}

// Ensure makes an object what u says, by server-side apply: fields that u does not name
// stay as they are. One that somebody else has set to something else is a conflict,
// and then nothing is changed.
func (c *Cluster) Ensure(ctx context.Context, u *unstructured.Unstructured, dryRun bool) error {
	id := IDOf(u)
	gvr, err := c.resourceOf(ctx, id)
	if err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: FieldManager}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := c.dynamic.Resource(gvr).Namespace(id.Namespace).Apply(ctx, id.Name, u, options); err != nil {
		return fmt.Errorf("applying %s on %s: %w", id, c.name, err)
	}
	return nil
}

// Set merges fields into an object, given as a JSON merge patch. It holds for the
// copy in that version only: Moved where that is not what is there now.
func (c *Cluster) Set(ctx context.Context, on adopt.Target, fields map[string]any, dryRun bool) (adopt.Outcome, error) {
	gvr, err := c.resourceOf(ctx, on.ID)
	if err != nil {
		return adopt.Moved, err
	}
	patch := map[string]any{"metadata": map[string]any{"uid": on.UID, "resourceVersion": on.ResourceVersion}}
	for k, v := range fields {
		patch[k] = v
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return adopt.Moved, fmt.Errorf("writing %s: %w", on.ID, err)
	}
	options := metav1.PatchOptions{FieldManager: FieldManager}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	got, err := c.dynamic.Resource(gvr).Namespace(on.Namespace).Patch(ctx, on.Name, types.MergePatchType, body, options)
	switch {
	case err == nil && !dryRun && got.GetResourceVersion() == on.ResourceVersion:
		return adopt.AlreadyThere, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), isOtherCopy(err):
		return adopt.Moved, nil
	}
	return outcomeOf(on.ID, err)
}

// outcomeOf tells a refusal from a write of which nobody knows whether it took effect.
func outcomeOf(id graph.ID, err error) (adopt.Outcome, error) {
	switch {
	case err == nil:
		return adopt.Applied, nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsUnauthorized(err),
		apierrors.IsMethodNotSupported(err), apierrors.IsNotFound(err):
		return adopt.Moved, &WriteError{Object: id, Err: err}
	}
	return adopt.Moved, &WriteError{Object: id, Unknown: true, Err: err}
}

// raws opens a kind; nil if it is not served.
func (c *Cluster) raws(ctx context.Context, id graph.ID) (dynamic.ResourceInterface, error) {
	if id.GroupKind() == graph.Secret {
		return nil, fmt.Errorf("reading %s: the data of Secrets is never read", id)
	}
	version, err := c.Served(ctx, id.GroupKind())
	if err != nil || version == "" {
		return nil, err
	}
	gvr, err := c.resourceOf(ctx, id)
	if err != nil {
		return nil, err
	}
	return c.dynamic.Resource(gvr).Namespace(id.Namespace), nil
}

// IDOf is the identity of an object.
func IDOf(u *unstructured.Unstructured) graph.ID {
	return graph.ID{Group: graph.GroupOf(u.GetAPIVersion()), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}
