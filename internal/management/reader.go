package management

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/move-hook/move-hook/pkg/graph"
)

// Reader reads single objects live, for upstream's code that wants a client.Reader:
// Cluster API's types, unstructured objects and metadata, never the data of Secrets.
// It does not list.
func (c *Cluster) Reader() client.Reader { return live{c, clusterAPI()} }

type live struct {
	cluster *Cluster
	scheme  *runtime.Scheme
}

func clusterAPI() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme} {
		utilruntime.Must(add(s))
	}
	return s
}

// Get reads an object in the version that it names.
func (l live) Get(ctx context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(o, l.scheme)
	if err != nil {
		return err
	}
	gvr, err := l.resource(ctx, gvk)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		got, err := l.cluster.metadata.Resource(gvr).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if err == nil {
			*m = *got
			m.SetGroupVersionKind(gvk)
		}
		return err
	}
	if gvk.GroupKind() == (schema.GroupKind{Kind: graph.Secret.Kind}) {
		return fmt.Errorf("reading Secret %s: the data of Secrets is never read", key)
	}
	got, err := l.cluster.dynamic.Resource(gvr).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if u, ok := o.(*unstructured.Unstructured); ok {
		u.Object = got.Object
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, o)
}

// List is not needed, and refused.
func (l live) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return fmt.Errorf("listing on %s: this reader reads single objects", l.cluster.name)
}

// resource finds a kind; as a client with a REST mapper would, it answers that a kind
// is not served with a NoKindMatchError.
func (l live) resource(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	d, err := l.cluster.Discover(ctx)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	k, ok := d.Find(graph.GroupKind{Group: gvk.Group, Kind: gvk.Kind})
	if !ok {
		return schema.GroupVersionResource{}, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return gvk.GroupVersion().WithResource(k.Resource), nil
}
