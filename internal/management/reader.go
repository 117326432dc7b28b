package management

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/move-hook/move-hook/pkg/graph"
)

// Reader reads single objects live, in the version that the caller's type or object
// has, for what only upstream's own functions can judge. Objects may be typed (of the
// scheme), unstructured or PartialObjectMetadata. A version that the server does not
// serve is a meta.NoKindMatchError and never "not found". Secrets and lists are refused.
func (c *Cluster) Reader(scheme *runtime.Scheme) client.Reader { return single{c, scheme} }

type single struct {
	*Cluster
	scheme *runtime.Scheme
}

var errOnlyGet = errors.New("only single objects are read this way")

// Get reads one object.
func (r single) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(into, r.scheme)
	if err != nil {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	gk := graph.GroupKind{Group: gvk.Group, Kind: gvk.Kind}
	if gk == graph.Secret {
		return fmt.Errorf("reading Secret %s: the data of Secrets is never read", key)
	}
	d, err := r.Discover(ctx)
	if err != nil {
		return err
	}
	k, ok := d.Find(gk)
	if !ok {
		return unserved(gvk)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	gvr := gvk.GroupVersion().WithResource(k.Resource)
	if m, ok := into.(*metav1.PartialObjectMetadata); ok {
		got, err := r.metadata.Resource(gvr).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if err != nil {
			return orUnserved(gvk, err)
		}
		got.DeepCopyInto(m)
		m.SetGroupVersionKind(gvk)
		return nil
	}
	got, err := r.dynamic.Resource(gvr).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return orUnserved(gvk, err)
	}
	if u, ok := into.(*unstructured.Unstructured); ok {
		u.Object = got.Object
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, into); err != nil {
		return fmt.Errorf("reading %s %s: %w", gvk.Kind, key, err)
	}
	return nil
}

// List is refused.
func (r single) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errOnlyGet
}

func unserved(gvk schema.GroupVersionKind) error {
	return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

// orUnserved tells the 404 of a path that the server does not know from that of an object.
func orUnserved(gvk schema.GroupVersionKind, err error) error {
	if apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return unserved(gvk)
	}
	return err
}
