package management

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

// Get reads one object live, as metadata or whole; nil if it does not exist or
// its kind is not served. Where nobody can say whether the kind is served, that is
// an error.
func (c *Cluster) Get(ctx context.Context, id graph.ID, whole bool) (*graph.Object, error) {
	d, err := c.Discover(ctx)
	if err != nil {
		return nil, err
	}
	k, ok := d.Find(id.GroupKind())
	switch {
	case ok:
		return c.get(ctx, k, id, whole)
	case len(d.Warnings) > 0:
		return nil, fmt.Errorf("reading %s on %s: nobody can say whether its kind is served: %s", id, c.name, d.Warnings[0])
	}
	return nil, nil
}

func (c *Cluster) get(ctx context.Context, k Kind, id graph.ID, whole bool) (*graph.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if whole && id.GroupKind() != graph.Secret {
		u, err := c.dynamic.Resource(k.GVR()).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
		if err != nil {
			return nil, c.unlessNotFound(id, err)
		}
		o, err := graph.Extract(u.Object)
		if err != nil {
			return nil, fmt.Errorf("reading %s on %s: %w", id, c.name, err)
		}
		c.settle(&o)
		return &o, nil
	}
	m, err := c.metadata.Resource(k.GVR()).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
	if err != nil {
		return nil, c.unlessNotFound(id, err)
	}
	o := fromMetadata(k.KindInfo, &m.ObjectMeta)
	return &o, nil
}

func (c *Cluster) unlessNotFound(id graph.ID, err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("reading %s on %s: %w", id, c.name, err)
}

// OtherSide says how a Cluster stands here, for whoever looks at it from the other
// management cluster. Only spec.paused stops all of its controllers: the paused
// annotation stops no more than the object that carries it (util/annotations,
// IsPaused). An answer that cannot be had is unknown, never absent.
func (c *Cluster) OtherSide(ctx context.Context, cluster graph.ID) adopt.OtherSide {
	o, err := c.Get(ctx, cluster, true)
	switch {
	case err != nil:
		return adopt.OtherUnknown
	case o == nil:
		return adopt.OtherAbsent
	case o.Facts.Paused:
		return adopt.OtherPaused
	}
	return adopt.OtherUnpaused
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

// AnnotatedBy is the field manager that wrote an annotation last; empty where nobody
// owns it, or the object is not there.
func (c *Cluster) AnnotatedBy(ctx context.Context, id graph.ID, annotation string) (string, error) {
	gvr, err := c.resourceOf(ctx, id)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m, err := c.metadata.Resource(gvr).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
	if err != nil {
		return "", c.unlessNotFound(id, err)
	}
	for _, f := range m.ManagedFields {
		if f.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata struct {
				Annotations map[string]any `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if err := json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields); err != nil {
			return "", fmt.Errorf("reading the managed fields of %s on %s: %w", id, c.name, err)
		}
		if _, ok := fields.Metadata.Annotations["f:"+annotation]; ok {
			return f.Manager, nil
		}
	}
	return "", nil
}
