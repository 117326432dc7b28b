package management

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/graph"
)

// Labelled lists, as metadata, the objects of a kind that a label selector
// selects, in all namespaces.
func (c *Cluster) Labelled(ctx context.Context, k Kind, selector string) ([]graph.ID, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := c.metadata.Resource(k.GVR()).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing %s with label %s on %s: %w", k.GroupKind, selector, c.name, err)
	}
	var ids []graph.ID
	for _, o := range list.Items {
		ids = append(ids, graph.ID{Group: k.Group, Kind: k.Kind, Namespace: o.Namespace, Name: o.Name})
	}
	return ids, nil
}
