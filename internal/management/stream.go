package management

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/move-hook/move-hook/pkg/graph"
)

// pageSize bounds one answer of the server, in objects.
const pageSize = 500

// wholeKinds are read with spec and status, because decisions need them.
var wholeKinds = map[graph.GroupKind]bool{
	graph.Cluster: true, graph.ClusterClass: true, graph.Machine: true, graph.MachineSet: true, graph.MachineDeployment: true,
	graph.MachinePool: true, graph.MachineHealthCheck: true, graph.KubeadmControlPlane: true,
	graph.ClusterResourceSet: true, graph.ClusterResourceSetBinding: true,
}

// Whole says whether a kind is read with spec and status: the kinds with facts,
// control plane kinds (those that some Cluster refers to) and, where status is
// awaited, bootstrap configs. Secrets never are.
func Whole(gk graph.GroupKind, controlPlanes map[graph.GroupKind]bool, status bool) bool {
	if gk == graph.Secret || gk == graph.ConfigMap {
		return false
	}
	return wholeKinds[gk] || controlPlanes[gk] || (status && gk == graph.KubeadmConfig)
}

// Stream is one kind in one namespace (or, when empty, in all), as lists and watches want it.
type Stream struct {
	kind      Kind
	namespace string
	whole     bool
	cluster   *Cluster
}

// Stream opens a kind; whole reads spec and status too.
func (c *Cluster) Stream(k Kind, namespace string, whole bool) Stream {
	if !k.Namespaced {
		namespace = ""
	}
	return Stream{kind: k, namespace: namespace, whole: whole && k.GroupKind != graph.Secret, cluster: c}
}

// List asks for one page.
func (s Stream) List(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if s.whole {
		return s.cluster.dynamic.Resource(s.kind.GVR()).Namespace(s.namespace).List(ctx, o)
	}
	return s.cluster.metadata.Resource(s.kind.GVR()).Namespace(s.namespace).List(ctx, o)
}

// Watch opens a watch.
func (s Stream) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if s.whole {
		return s.cluster.dynamic.Resource(s.kind.GVR()).Namespace(s.namespace).Watch(ctx, o)
	}
	return s.cluster.metadata.Resource(s.kind.GVR()).Namespace(s.namespace).Watch(ctx, o)
}

// Convert reduces what List and Watch deliver to what decisions read.
func (s Stream) Convert(o runtime.Object) (graph.Object, error) {
	switch o := o.(type) {
	case *unstructured.Unstructured:
		return graph.Extract(o.Object)
	case *metav1.PartialObjectMetadata:
		return fromMetadata(s.kind.KindInfo, &o.ObjectMeta), nil
	default:
		return graph.Object{}, fmt.Errorf("%s: the server sent a %T", s.kind.GroupKind, o)
	}
}

// fromMetadata does for metadata what graph.Extract does for whole objects.
func fromMetadata(k graph.KindInfo, m *metav1.ObjectMeta) graph.Object {
	o := graph.Object{
		ID:  graph.ID{Group: k.Group, Kind: k.Kind, Namespace: m.Namespace, Name: m.Name},
		UID: m.UID, ResourceVersion: m.ResourceVersion, APIVersion: k.APIVersion,
		Created: m.CreationTimestamp.Time, Owners: m.OwnerReferences,
		Labels: m.Labels, Annotations: m.Annotations,
		Deleting: m.DeletionTimestamp != nil, Finalizers: m.Finalizers,
	}
	if k.GroupKind == graph.Secret {
		delete(o.Annotations, graph.LastAppliedAnnotation)
	}
	return o
}

// All lists page by page. A continue token that expired on the way starts the
// list anew, so that what comes back is one consistent set per attempt.
func (s Stream) All(ctx context.Context) ([]graph.Object, error) {
	var out []graph.Object
	o := metav1.ListOptions{Limit: pageSize}
	for restarts := 0; ; {
		page, err := s.List(ctx, o)
		if apierrors.IsResourceExpired(err) && o.Continue != "" && restarts < 3 {
			restarts++
			o.Continue, out = "", out[:0]
			continue
		}
		if err != nil {
			return nil, err
		}
		switch page := page.(type) {
		case *unstructured.UnstructuredList:
			for i := range page.Items {
				obj, err := graph.Extract(page.Items[i].Object)
				if err != nil {
					return nil, err
				}
				out = append(out, obj)
			}
			o.Continue = page.GetContinue()
		case *metav1.PartialObjectMetadataList:
			for i := range page.Items {
				out = append(out, fromMetadata(s.kind.KindInfo, &page.Items[i].ObjectMeta))
			}
			o.Continue = page.GetContinue()
		}
		if o.Continue == "" {
			return out, nil
		}
	}
}
