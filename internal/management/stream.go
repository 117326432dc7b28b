package management

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/move-hook/move-hook/pkg/graph"
)

// pageSize bounds one answer of the server, in objects. It is large because only
// the first page of a list is sure to come from the API server's cache: those that
// follow it reads from etcd where nothing was written lately, and decodes anew, at
// ten times the cost.
const pageSize = 10_000

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
	// selector narrows the stream on the server; what it shows has the fact.
	selector   string
	userSecret bool
}

// Stream opens a kind; whole reads spec and status too.
func (c *Cluster) Stream(k Kind, namespace string, whole bool) Stream {
	if !k.Namespaced {
		namespace = ""
	}
	return Stream{kind: k, namespace: namespace, whole: whole && k.GroupKind != graph.Secret, cluster: c}
}

// Parts are the streams that together hold a kind. Secrets come in two, those of
// Cluster API's own type and all others: the type of a Secret is not in its
// metadata, and this way the server tells it without sending any data.
func (c *Cluster) Parts(k Kind, namespace string, whole bool) []Stream {
	s := c.Stream(k, namespace, whole)
	if k.GroupKind != graph.Secret {
		return []Stream{s}
	}
	own, users := s, s
	own.selector = fields.OneTermEqualSelector("type", graph.ClusterSecretType).String()
	users.selector = fields.OneTermNotEqualSelector("type", graph.ClusterSecretType).String()
	users.userSecret = true
	return []Stream{own, users}
}

// UserSecrets says that the stream is the part of Secrets that are not of Cluster API's type.
func (s Stream) UserSecrets() bool { return s.userSecret }

// String is the kind, and the namespace unless it is all.
func (s Stream) String() string {
	if s.namespace == "" {
		return s.kind.GroupKind.String()
	}
	return s.kind.GroupKind.String() + " in namespace " + s.namespace
}

// List asks for one page.
func (s Stream) List(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	o.FieldSelector = s.selector
	if s.whole {
		return s.cluster.dynamic.Resource(s.kind.GVR()).Namespace(s.namespace).List(ctx, o)
	}
	return s.cluster.metadata.Resource(s.kind.GVR()).Namespace(s.namespace).List(ctx, o)
}

// Watch opens a watch.
func (s Stream) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.FieldSelector = s.selector
	if s.whole {
		return s.cluster.dynamic.Resource(s.kind.GVR()).Namespace(s.namespace).Watch(ctx, o)
	}
	return s.cluster.metadata.Resource(s.kind.GVR()).Namespace(s.namespace).Watch(ctx, o)
}

// Convert reduces what List and Watch deliver to what decisions read.
func (s Stream) Convert(o runtime.Object) (graph.Object, error) {
	switch o := o.(type) {
	case *unstructured.Unstructured:
		out, err := graph.Extract(o.Object)
		s.cluster.settle(&out)
		return out, err
	case *metav1.PartialObjectMetadata:
		return s.fromMetadata(&o.ObjectMeta), nil
	default:
		return graph.Object{}, fmt.Errorf("%s: the server sent a %T", s.kind.GroupKind, o)
	}
}

func (s Stream) fromMetadata(m *metav1.ObjectMeta) graph.Object {
	o := fromMetadata(s.kind.KindInfo, m)
	o.Facts.UserSecret = s.userSecret
	return o
}

// fromMetadata does for metadata what graph.Extract does for whole objects.
func fromMetadata(k graph.KindInfo, m *metav1.ObjectMeta) graph.Object {
	o := graph.Object{
		ID:  graph.ID{Group: k.Group, Kind: k.Kind, Namespace: m.Namespace, Name: m.Name},
		UID: m.UID, ResourceVersion: m.ResourceVersion, APIVersion: k.APIVersion,
		Created: m.CreationTimestamp.UTC(), Owners: m.OwnerReferences,
		Labels: m.Labels, Annotations: m.Annotations,
		Deleting: m.DeletionTimestamp != nil, Finalizers: m.Finalizers,
	}
	if k.GroupKind == graph.Secret {
		delete(o.Annotations, graph.LastAppliedAnnotation)
	}
	return o
}

// settle takes the namespace from references to cluster-scoped kinds: a spec does
// not tell, so graph.Extract assumes the referrer's.
func (c *Cluster) settle(o *graph.Object) {
	c.mu.Lock()
	d := c.kinds
	c.mu.Unlock()
	if d == nil {
		return
	}
	for i, ref := range o.Refs {
		o.Refs[i].To = d.settled(ref.To)
	}
	for i, ref := range o.Hints {
		o.Hints[i].To = d.settled(ref.To)
	}
}

// settled is an identity without a namespace if its kind has none.
func (d *Discovery) settled(id graph.ID) graph.ID {
	if k, ok := d.Find(id.GroupKind()); ok && !k.Namespaced {
		id.Namespace = ""
	}
	return id
}

// All gives every object of one consistent list.
func (s Stream) All(ctx context.Context) ([]graph.Object, error) {
	pages, _, err := s.upTo(ctx, math.MaxInt)
	return slices.Concat(pages...), err
}

// upTo is All page by page, for a kind of which only some objects may be worth
// reading: where there are more than most it stops, and then is not complete.
//
// Where the server has forgotten the list before its last page (410 Gone), it is
// read anew and in one answer: what two lists say together was never so.
func (s Stream) upTo(ctx context.Context, most int) (out [][]graph.Object, complete bool, err error) {
	out, complete, err = s.pages(ctx, int64(min(pageSize, most)), most)
	if apierrors.IsResourceExpired(err) {
		out, complete, err = s.pages(ctx, 0, most)
	}
	return out, complete, err
}

func (s Stream) pages(ctx context.Context, limit int64, most int) (out [][]graph.Object, complete bool, err error) {
	o := metav1.ListOptions{Limit: limit}
	for have := 0; ; {
		var page []graph.Object
		page, o.Continue, err = s.page(ctx, o)
		out, have = append(out, page), have+len(page)
		switch {
		case err != nil:
			return nil, false, err
		case o.Continue == "":
			return out, true, nil
		case have >= most:
			return out, false, nil
		}
	}
}

// page gives the objects of one page and the token of the next.
func (s Stream) page(ctx context.Context, o metav1.ListOptions) (objects []graph.Object, more string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if s.whole {
		return s.wholePage(ctx, o)
	}
	o.FieldSelector = s.selector
	page, err := s.cluster.metadata.Resource(s.kind.GVR()).Namespace(s.namespace).List(ctx, o)
	if err != nil {
		return nil, "", err
	}
	objects = make([]graph.Object, 0, len(page.Items))
	for i := range page.Items {
		objects = append(objects, s.fromMetadata(&page.Items[i].ObjectMeta))
	}
	return objects, page.GetContinue(), nil
}

// wholePage decodes a page while it arrives, one object at a time: a page of
// whole objects never is in memory as a whole.
func (s Stream) wholePage(ctx context.Context, o metav1.ListOptions) (objects []graph.Object, more string, err error) {
	gvr := s.kind.GVR()
	path := []string{"/apis", gvr.Group, gvr.Version}
	if gvr.Group == "" {
		path = []string{"/api", gvr.Version}
	}
	if s.namespace != "" {
		path = append(path, "namespaces", s.namespace)
	}
	request := s.cluster.raw.Get().AbsPath(append(path, gvr.Resource)...).SetHeader("Accept", "application/json")
	if o.Limit > 0 {
		request.Param("limit", strconv.FormatInt(o.Limit, 10))
	}
	if o.Continue != "" {
		request.Param("continue", o.Continue)
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, "", err
	}
	defer body.Close() //nolint:errcheck // It was only read.
	more, err = decodeList(body, func(w *wireObject) error {
		obj, err := w.object(s.kind.KindInfo)
		if err != nil {
			return err
		}
		s.cluster.settle(&obj)
		objects = append(objects, obj)
		return nil
	})
	return objects, more, err
}
