package management

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/retry"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

// Copy says how an object comes from one management cluster to another.
type Copy struct {
	ID graph.ID
	// Owners and Annotations are those of the copy; everything else is as it is read.
	Owners      []metav1.OwnerReference
	Annotations map[string]string
}

// Copy creates an object here as it is on from, in the version that from prefers,
// and returns its UID. It does what clusterctl does (mover.go, createTargetObject):
// resourceVersion and UID are the server's, managed fields are kept, status does not
// come along. A Cluster is created paused, whatever it was. An object that is there
// already is left alone. The content, which may be a Secret's, is held in memory for
// the length of the call and nowhere else.
func (c *Cluster) Copy(ctx context.Context, from *Cluster, o Copy) (types.UID, error) {
	gvr, err := from.resourceOf(ctx, o.ID)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	u, err := from.dynamic.Resource(gvr).Namespace(o.ID.Namespace).Get(ctx, o.ID.Name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading %s on %s: %w", o.ID, from.name, err)
	}
	fields := u.GetManagedFields()
	if err := creatable(u); err != nil {
		return "", fmt.Errorf("copying %s: %w", o.ID, err)
	}
	u.SetOwnerReferences(o.Owners)
	u.SetAnnotations(o.Annotations)
	var made metav1.Object
	made, err = c.dynamic.Resource(gvr).Namespace(o.ID.Namespace).Create(ctx, u, metav1.CreateOptions{FieldManager: FieldManager})
	api := c.metadata.Resource(gvr).Namespace(o.ID.Namespace)
	if apierrors.IsAlreadyExists(err) {
		made, err = api.Get(ctx, o.ID.Name, metav1.GetOptions{})
		if err == nil && !isUnfinished(made) {
			return made.GetUID(), nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("creating %s on %s: %w", o.ID, c.name, err)
	}
	// Who owned which field is kept, or server-side apply could not drop fields later
	// (mover.go, patchTopologyManagedFields).
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": made.GetUID(), "managedFields": fields}})
	if err != nil {
		return "", fmt.Errorf("copying %s: %w", o.ID, err)
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		_, err := patch(ctx, api, o.ID.Name, body, metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return "", &WriteError{Object: o.ID, Unknown: true, Err: err}
	}
	return made.GetUID(), nil
}

// isUnfinished: a copy of ours whose managed fields are not yet the original's,
// because the answer to its creation was lost or we were killed.
func isUnfinished(made metav1.Object) bool {
	fields := made.GetManagedFields()
	return len(fields) > 0 && !slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager != FieldManager })
}

// creatable takes from an object what another server would not take or gives itself,
// its status and its owners. A Cluster becomes paused, as clusterctl has made it by
// the time it creates it.
func creatable(u *unstructured.Unstructured) error {
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
		"generation", "generateName", "selfLink", "ownerReferences"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "status")
	if IDOf(u).GroupKind() != graph.Cluster {
		return nil
	}
	return unstructured.SetNestedField(u.Object, true, "spec", "paused")
}

// Remove takes one copy of an object off this management cluster and leaves what it
// stands for alone, as clusterctl does after a move (mover.go, deleteSourceObject):
// announced by an annotation, deleted, its finalizers dropped. The Cluster has to be
// paused, or controllers would see the deletion. Another copy of the same name is
// left alone. Unlike clusterctl's, the announcement leaves other annotations there.
func (c *Cluster) Remove(ctx context.Context, t adopt.Target) error {
	gvr, err := c.resourceOf(ctx, t.ID)
	if err != nil {
		return err
	}
	api := c.metadata.Resource(gvr).Namespace(t.Namespace)
	change := func(meta map[string]any) error {
		meta["uid"] = t.UID
		body, err := json.Marshal(map[string]any{"metadata": meta})
		if err != nil {
			return err
		}
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			_, err := patch(ctx, api, t.Name, body, metav1.PatchOptions{FieldManager: FieldManager})
			return err
		})
	}
	gone := func(err error) bool { return apierrors.IsNotFound(err) || isOtherCopy(err) }
	err = change(map[string]any{"annotations": map[string]any{graph.DeleteForMoveAnnotation: ""}})
	if err == nil {
		err = c.delete(ctx, api, t)
	}
	if err != nil {
		if gone(err) {
			return nil
		}
		return &WriteError{Object: t.ID, Unknown: true, Err: err}
	}
	left, err := c.Get(ctx, t.ID, false)
	if err != nil || left == nil || left.UID != t.UID || len(left.Finalizers) == 0 {
		return err
	}
	if err := change(map[string]any{"finalizers": nil}); err != nil && !gone(err) {
		return &WriteError{Object: t.ID, Unknown: true, Err: err}
	}
	return nil
}

// delete deletes one copy. A conflict is about another copy, which is left alone, or
// passes.
func (c *Cluster) delete(ctx context.Context, api metadata.ResourceInterface, t adopt.Target) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		err := api.Delete(ctx, t.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &t.UID}})
		if !apierrors.IsConflict(err) {
			return err
		}
		now, readErr := c.Get(ctx, t.ID, false)
		if readErr != nil {
			return readErr
		}
		if now == nil || now.UID != t.UID {
			return nil
		}
		return err
	})
}

// Pause sets spec.paused of one copy of a Cluster, or drops it, as clusterctl does
// (mover.go, setClusterPause). It writes whatever is there now.
func (c *Cluster) Pause(ctx context.Context, t adopt.Target, paused bool) error {
	gvr, err := c.resourceOf(ctx, t.ID)
	if err != nil {
		return err
	}
	var value any
	if paused {
		value = true
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": t.UID}, "spec": map[string]any{"paused": value}})
	if err != nil {
		return fmt.Errorf("writing %s: %w", t.ID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		_, err := c.dynamic.Resource(gvr).Namespace(t.Namespace).Patch(ctx, t.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager})
		return err
	})
	if err != nil {
		return &WriteError{Object: t.ID, Unknown: true, Err: err}
	}
	return nil
}

// EnsureNamespace creates a namespace that is missing (mover.go, ensureNamespace).
func (c *Cluster) EnsureNamespace(ctx context.Context, name string) error {
	if exists, err := c.NamespaceExists(ctx, name); err != nil || exists {
		return err
	}
	_, err := c.clientset.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s on %s: %w", name, c.name, err)
	}
	return nil
}

// NamespaceExists says whether there is such a namespace. Who may not read it is
// told that it exists: what is then done in it says the rest.
func (c *Cluster) NamespaceExists(ctx context.Context, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := c.metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil, apierrors.IsForbidden(err):
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil
	}
	return false, fmt.Errorf("reading namespace %s on %s: %w", name, c.name, err)
}
