package management

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/move-hook/move-hook/pkg/graph"
)

// Kind is a kind that the server serves, in its preferred version.
type Kind struct {
	graph.KindInfo
	// Resource is the plural, "machines".
	Resource string
}

// GVR is the resource in the preferred version.
func (k Kind) GVR() schema.GroupVersionResource {
	gv, _ := schema.ParseGroupVersion(k.APIVersion) // the server's own
	return gv.WithResource(k.Resource)
}

// Warning is something that could not be read; what it names is unknown, not absent.
type Warning struct {
	// What could not be read: a kind, an API group.
	What string `json:"what"`
	Why  string `json:"why"`
}

// String is "What: why".
func (w Warning) String() string { return w.What + ": " + w.Why }

// Discovery is what a management cluster serves.
type Discovery struct {
	kinds    map[graph.GroupKind]Kind
	Warnings []Warning
}

// Find looks a kind up; false means that the server does not serve it (or, where
// there are Warnings, that nobody can say).
func (d *Discovery) Find(gk graph.GroupKind) (Kind, bool) {
	k, ok := d.kinds[gk]
	return k, ok
}

// Moved gives the kinds that clusterctl lists, sorted.
func (d *Discovery) Moved() []Kind {
	var out []Kind
	for _, k := range d.kinds {
		if k.Discovered {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b Kind) int { return a.Compare(b.GroupKind) })
	return out
}

// Listed gives the kinds that are read whole or as metadata: those that clusterctl
// lists, and Cluster API's other kinds, for a management cluster that somebody
// else than clusterctl installed. Sorted.
func (d *Discovery) Listed() []Kind {
	var out []Kind
	for _, k := range d.All() {
		if k.Discovered || isClusterAPI(k.Group) {
			out = append(out, k)
		}
	}
	return out
}

func isClusterAPI(group string) bool {
	return group == graph.CoreGroup || strings.HasSuffix(group, "."+graph.CoreGroup)
}

// All gives every kind that the server serves, sorted.
func (d *Discovery) All() []Kind {
	return slices.SortedFunc(maps.Values(d.kinds), func(a, b Kind) int { return a.Compare(b.GroupKind) })
}

// Discover asks what the server serves and which kinds clusterctl would list:
// those whose CRD carries the label clusterctl.cluster.x-k8s.io, and Secrets and
// ConfigMaps (clusterctl's objectGraph.getDiscoveryTypes). CRDs are read as
// metadata: their schemas are megabytes. The answer is remembered until Refresh.
func (c *Cluster) Discover(ctx context.Context) (*Discovery, error) {
	c.mu.Lock()
	known := c.kinds
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	return c.Refresh(ctx)
}

// Refresh discovers again, for kinds that were installed meanwhile.
func (c *Cluster) Refresh(ctx context.Context) (*Discovery, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	d := &Discovery{kinds: map[graph.GroupKind]Kind{}}
	names, err := c.served(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("asking %s which kinds it serves: %w", c.name, err)
	}
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	found, err := c.metadata.Resource(crds).List(ctx, metav1.ListOptions{LabelSelector: graph.ClusterctlLabel})
	if err != nil {
		return nil, fmt.Errorf("listing the CustomResourceDefinitions that clusterctl installed on %s: %w", c.name, err)
	}
	for _, crd := range found.Items {
		gk, ok := names[crd.Name]
		if !ok {
			d.Warnings = append(d.Warnings, Warning{What: "CustomResourceDefinition " + crd.Name, Why: "it is installed and the server does not serve it"})
			continue
		}
		k := d.kinds[gk]
		_, move := crd.Labels[graph.MoveLabel]
		_, hierarchy := crd.Labels[graph.MoveHierarchyLabel]
		k.Discovered = true
		k.ForceMoveHierarchy = hierarchy || graph.ForceMoves(gk)
		k.ForceMove = move || k.ForceMoveHierarchy
		d.kinds[gk] = k
	}
	c.mu.Lock()
	c.kinds = d
	c.mu.Unlock()
	return d, nil
}

// served asks for every kind in its preferred version, and returns their names as
// CRDs have them, plural.group. What an aggregated API server does not answer
// becomes a Warning.
func (c *Cluster) served(ctx context.Context, d *Discovery) (map[string]graph.GroupKind, error) {
	lists, err := within(ctx, c.discovery.ServerPreferredResources)
	var partial *discovery.ErrGroupDiscoveryFailed
	switch {
	case errors.As(err, &partial):
		d.Warnings = warningsOf(partial)
	case err != nil:
		return nil, err
	}
	names := map[string]graph.GroupKind{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			if !isKind(r) || !slices.Contains(r.Verbs, "list") {
				continue
			}
			gk := graph.GroupKind{Group: graph.GroupOf(list.GroupVersion), Kind: r.Kind}
			names[r.Name+"."+gk.Group] = gk
			d.kinds[gk] = Kind{
				Resource: r.Name,
				KindInfo: graph.KindInfo{
					GroupKind: gk, APIVersion: list.GroupVersion, Namespaced: r.Namespaced,
					Discovered: gk == graph.Secret || gk == graph.ConfigMap,
				},
			}
		}
	}
	return names, nil
}

// isKind: what has a slash in its name is a subresource.
func isKind(r metav1.APIResource) bool { return !strings.Contains(r.Name, "/") }

// warningsOf names what an aggregated API server did not answer.
func warningsOf(partial *discovery.ErrGroupDiscoveryFailed) []Warning {
	var warnings []Warning
	for gv, why := range partial.Groups {
		warnings = append(warnings, Warning{What: "API group " + gv.String(), Why: why.Error()})
	}
	slices.SortFunc(warnings, func(a, b Warning) int { return strings.Compare(a.What, b.What) })
	return warnings
}

// within asks what does not outlive ctx, which client-go's discovery does not take.
func within[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := ask()
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
