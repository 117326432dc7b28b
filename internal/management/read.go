package management

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/move-hook/move-hook/pkg/graph"
)

// listers and getters bound how many requests are under way at once.
const (
	listers = 8
	getters = 16
)

// Scope is what to read.
type Scope struct {
	// Namespace, or empty for all.
	Namespace string
	// Status reads bootstrap configs whole, where it is awaited that their status is rebuilt.
	Status bool
}

// Read reads everything that clusterctl would list in the scope, and what its
// specs and owner references name beyond that. A kind that cannot be listed is a
// Warning and unlisted in the graph: what it holds is unknown. An error means
// that the API could not be read at all.
func (c *Cluster) Read(ctx context.Context, scope Scope) (*graph.Graph, []Warning, error) {
	d, err := c.Refresh(ctx)
	if err != nil {
		return nil, nil, err
	}
	r := reader{cluster: c, discovery: d, scope: scope, warnings: slices.Clone(d.Warnings), have: map[graph.ID]*graph.Object{}}
	for _, k := range d.All() {
		r.builder.Kind(k.KindInfo)
	}
	if err := r.list(ctx); err != nil {
		return nil, nil, err
	}
	if err := r.beyond(ctx); err != nil {
		return nil, nil, err
	}
	g, err := r.builder.Build()
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", c.name, err)
	}
	return g, r.warnings, nil
}

type reader struct {
	cluster   *Cluster
	discovery *Discovery
	scope     Scope

	mu       sync.Mutex
	builder  graph.Builder
	have     map[graph.ID]*graph.Object
	listed   []graph.GroupKind
	warnings []Warning
}

func (r *reader) add(objects []graph.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range objects {
		r.builder.Add(objects[i])
		r.have[objects[i].ID] = &objects[i]
	}
}

func (r *reader) warn(what string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warnings = append(r.warnings, Warning{What: what, Why: err.Error()})
}

// list reads every kind that clusterctl lists: Clusters first, because they say
// which kinds are control planes.
func (r *reader) list(ctx context.Context) error {
	controlPlanes := map[graph.GroupKind]bool{}
	if k, ok := r.discovery.Find(graph.Cluster); ok {
		if err := r.listKind(ctx, k, true); err != nil {
			return err
		}
		for _, o := range r.have {
			if id, ok := o.RefTo(graph.FieldControlPlaneRef); ok {
				controlPlanes[id.GroupKind()] = true
			}
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(listers)
	for _, k := range r.discovery.Moved() {
		if k.GroupKind != graph.Cluster {
			group.Go(func() error { return r.listKind(ctx, k, Whole(k.GroupKind, controlPlanes, r.scope.Status)) })
		}
	}
	group.Go(func() error { return r.providerSecrets(ctx) })
	return group.Wait()
}

func (r *reader) listKind(ctx context.Context, k Kind, whole bool) error {
	s := r.cluster.Stream(k, r.scope.Namespace, whole)
	objects, err := s.All(ctx)
	switch {
	case err == nil:
		r.add(objects)
		r.mu.Lock()
		r.builder.Listed(k.GroupKind, s.namespace)
		r.listed = append(r.listed, k.GroupKind)
		r.mu.Unlock()
		return nil
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		// The server answered; of this kind nothing is known.
		r.warn(k.GroupKind.String(), err)
		return nil
	default:
		return fmt.Errorf("listing %s on %s: %w", k.GroupKind, r.cluster.name, err)
	}
}

// providerSecrets adds what clusterctl adds when it reads one namespace: the
// Secrets of the infrastructure providers' namespaces (objectgraph.go, Discovery).
func (r *reader) providerSecrets(ctx context.Context) error {
	if r.scope.Namespace == "" {
		return nil
	}
	k, ok := r.discovery.Find(graph.GroupKind{Group: "clusterctl.cluster.x-k8s.io", Kind: "Provider"})
	if !ok {
		return nil
	}
	providers, err := r.cluster.dynamic.Resource(k.GVR()).List(ctx, metav1.ListOptions{})
	if err != nil {
		r.warn("Providers of clusterctl's inventory", err)
		return nil
	}
	secrets, ok := r.discovery.Find(graph.Secret)
	for _, p := range providers.Items {
		if t, _, _ := unstructured.NestedString(p.Object, "type"); !ok || t != "InfrastructureProvider" || p.GetNamespace() == r.scope.Namespace {
			continue
		}
		objects, err := r.cluster.Stream(secrets, p.GetNamespace(), false).All(ctx)
		if err != nil {
			r.warn("Secrets of provider namespace "+p.GetNamespace(), err)
			continue
		}
		r.add(objects)
	}
	return nil
}

// beyond fetches what the listed objects name and no list held: a ClusterClass in
// another namespace with its templates, kinds that clusterctl does not list,
// cluster-scoped identities. A few rounds, because these name others again.
func (r *reader) beyond(ctx context.Context) error {
	asked := map[graph.ID]bool{}
	for range 4 {
		var wanted []Kind
		var ids []graph.ID
		for _, o := range r.have {
			for _, id := range r.named(o) {
				k, served := r.discovery.Find(id.GroupKind())
				if served && !asked[id] && !r.wasListed(id) {
					asked[id] = true
					wanted, ids = append(wanted, k), append(ids, id)
				}
			}
		}
		if len(ids) == 0 {
			return nil
		}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(getters)
		for i, id := range ids {
			group.Go(func() error {
				o, err := r.cluster.get(ctx, wanted[i], id, id.GroupKind() == graph.ClusterClass)
				switch {
				case err != nil:
					r.warn(id.String(), err)
				case o != nil:
					r.add([]graph.Object{*o})
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// named are the identities that an object names and that may lie outside of the
// lists. Secrets and ConfigMaps of others (a Certificate's, a chart's) would lead
// all over the cluster: of them only those that say they are a Cluster's count.
func (r *reader) named(o *graph.Object) []graph.ID {
	var ids []graph.ID
	for _, ref := range o.Refs {
		id := ref.To
		if k, ok := r.discovery.Find(id.GroupKind()); ok && !k.Namespaced {
			id.Namespace = ""
		}
		ids = append(ids, id)
	}
	if _, labelled := o.Labels[graph.ClusterNameLabel]; !labelled && (o.GroupKind() == graph.Secret || o.GroupKind() == graph.ConfigMap) {
		return ids
	}
	for _, ref := range o.Owners {
		id := graph.ID{Group: graph.GroupOf(ref.APIVersion), Kind: ref.Kind, Namespace: o.Namespace, Name: ref.Name}
		if k, ok := r.discovery.Find(id.GroupKind()); ok && !k.Namespaced {
			id.Namespace = ""
		}
		ids = append(ids, id)
	}
	return ids
}

func (r *reader) wasListed(id graph.ID) bool {
	if _, ok := r.have[id]; ok {
		return true
	}
	inScope := r.scope.Namespace == "" || id.Namespace == "" || id.Namespace == r.scope.Namespace
	return inScope && slices.Contains(r.listed, id.GroupKind())
}

// Get reads one object live, as metadata or whole; nil if it does not exist or
// its kind is not served.
func (c *Cluster) Get(ctx context.Context, id graph.ID, whole bool) (*graph.Object, error) {
	d, err := c.Discover(ctx)
	if err != nil {
		return nil, err
	}
	k, ok := d.Find(id.GroupKind())
	if !ok {
		return nil, nil
	}
	return c.get(ctx, k, id, whole)
}

func (c *Cluster) get(ctx context.Context, k Kind, id graph.ID, whole bool) (*graph.Object, error) {
	var o graph.Object
	if whole && id.GroupKind() != graph.Secret {
		u, err := c.dynamic.Resource(k.GVR()).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
		if err != nil {
			return nil, ignoreNotFound(c, id, err)
		}
		if o, err = graph.Extract(u.Object); err != nil {
			return nil, err
		}
		return &o, nil
	}
	m, err := c.metadata.Resource(k.GVR()).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
	if err != nil {
		return nil, ignoreNotFound(c, id, err)
	}
	o = fromMetadata(k.KindInfo, &m.ObjectMeta)
	return &o, nil
}

func ignoreNotFound(c *Cluster, id graph.ID, err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("reading %s on %s: %w", id, c.name, err)
}

// Clusters reads the Clusters of a namespace, or (empty) of all, whole and sorted by ID.
func (c *Cluster) Clusters(ctx context.Context, namespace string) ([]graph.Object, error) {
	d, err := c.Discover(ctx)
	if err != nil {
		return nil, err
	}
	k, ok := d.Find(graph.Cluster)
	if !ok {
		return nil, fmt.Errorf("%s does not serve %s: Cluster API is not installed there (clusterctl init)", c.name, graph.Cluster)
	}
	objects, err := c.Stream(k, namespace, true).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing Clusters on %s: %w", c.name, err)
	}
	slices.SortFunc(objects, func(a, b graph.Object) int { return a.ID.Compare(b.ID) })
	return objects, nil
}

// resourceOf finds where an object's kind is served.
func (c *Cluster) resourceOf(ctx context.Context, id graph.ID) (schema.GroupVersionResource, error) {
	d, err := c.Discover(ctx)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	k, ok := d.Find(id.GroupKind())
	if !ok {
		return schema.GroupVersionResource{}, fmt.Errorf("%s: %s does not serve its kind: install its provider there", id, c.name)
	}
	return k.GVR(), nil
}
