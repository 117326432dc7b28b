package management

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/move-hook/move-hook/pkg/graph"
)

// atOnce bounds how many requests are under way at the same time.
const atOnce = 8

// Scope is what to read.
type Scope struct {
	// Namespace, or empty for all.
	Namespace string
	// Status reads bootstrap configs whole, where it is awaited that their status is rebuilt.
	Status bool
	// Specs reads every kind but Secrets and ConfigMaps whole, so that references
	// which only providers' kinds make are seen too. It costs several times more.
	Specs bool
	// Hints follows what specs only seem to refer to as well (graph.Object.Hints).
	Hints bool
	// Also are kinds to list that clusterctl would not, where they are served: those
	// that a record names.
	Also []graph.GroupKind
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
	r := reader{
		cluster: c, discovery: d, scope: scope, warnings: slices.Clone(d.Warnings),
		have: map[graph.ID]bool{}, listed: map[place]bool{}, controlPlanes: map[graph.GroupKind]bool{},
	}
	for _, k := range d.All() {
		r.builder.Kind(k.KindInfo)
	}
	if err := r.read(ctx); err != nil {
		return nil, nil, err
	}
	r.builder.Scope(scope.Namespace, r.providers...)
	g, err := r.builder.Build()
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", c.name, err)
	}
	slices.SortFunc(r.warnings, func(a, b Warning) int { return strings.Compare(a.String(), b.String()) })
	return g, slices.Compact(r.warnings), nil
}

// reader is one Read that is under way.
type reader struct {
	cluster       *Cluster
	discovery     *Discovery
	scope         Scope
	controlPlanes map[graph.GroupKind]bool

	mu      sync.Mutex
	builder graph.Builder
	have    map[graph.ID]bool
	// fresh was added since beyond looked last.
	fresh    []*graph.Object
	listed   map[place]bool
	warnings []Warning
	// providers are the namespaces of infrastructure providers beside the scope.
	providers []string
}

// place is a kind in one namespace, or (empty) in all or without any.
type place struct {
	kind      graph.GroupKind
	namespace string
}

func (r *reader) add(pages [][]graph.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, page := range pages {
		for i := range page {
			o := &page[i]
			if !r.have[o.ID] {
				r.have[o.ID] = true
				r.builder.Add(*o)
				r.fresh = append(r.fresh, o)
			}
		}
	}
}

func (r *reader) warn(what string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warnings = append(r.warnings, Warning{What: what, Why: err.Error()})
}

// read lists Clusters first, because they say which kinds are control planes, then
// everything else side by side, then what lies beyond.
func (r *reader) read(ctx context.Context) error {
	clusters, ok := r.discovery.Find(graph.Cluster)
	if !ok {
		r.warn(graph.Cluster.String(), fmt.Errorf("%s does not serve it: is Cluster API installed there?", r.cluster.name))
	} else if err := r.list(ctx, clusters, r.scope.Namespace); err != nil {
		return err
	}
	for _, o := range r.fresh {
		if id, ok := o.RefTo(graph.FieldControlPlaneRef); ok {
			r.controlPlanes[id.GroupKind()] = true
		}
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, k := range r.kinds() {
		group.Go(func() error { return r.list(groupCtx, k, r.scope.Namespace) })
	}
	group.Go(func() error { return r.providerSecrets(groupCtx) })
	if err := group.Wait(); err != nil {
		return err
	}
	return r.beyond(ctx)
}

// kinds are all that are to be listed, without Cluster. The kinds with most
// objects come first: they take longest.
func (r *reader) kinds() []Kind {
	kinds := r.discovery.Listed()
	for _, gk := range r.scope.Also {
		if k, ok := r.discovery.Find(gk); ok {
			kinds = append(kinds, k)
		}
	}
	weight := map[graph.GroupKind]int{graph.Machine: 3, graph.Secret: 2, graph.ConfigMap: 1}
	slices.SortFunc(kinds, func(a, b Kind) int {
		if w := weight[b.GroupKind] - weight[a.GroupKind]; w != 0 {
			return w
		}
		return a.Compare(b.GroupKind)
	})
	kinds = slices.CompactFunc(kinds, func(a, b Kind) bool { return a.GroupKind == b.GroupKind })
	return slices.DeleteFunc(kinds, func(k Kind) bool { return k.GroupKind == graph.Cluster })
}

func (r *reader) whole(gk graph.GroupKind) bool {
	if r.scope.Specs {
		return gk != graph.Secret && gk != graph.ConfigMap
	}
	return Whole(gk, r.controlPlanes, r.scope.Status)
}

// list reads a kind completely. Where the server answers that it will not show the
// kind, that is a Warning and no error.
func (r *reader) list(ctx context.Context, k Kind, namespace string) error {
	for _, s := range r.cluster.Parts(k, namespace, r.whole(k.GroupKind)) {
		pages, _, err := s.upTo(ctx, math.MaxInt)
		switch {
		case err == nil:
			r.add(pages)
		case Answered(err):
			r.warn(s.String(), err)
			return nil
		default:
			return fmt.Errorf("listing %s on %s: %w", s, r.cluster.name, err)
		}
	}
	if !k.Namespaced {
		namespace = ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.builder.Listed(k.GroupKind, namespace)
	r.listed[place{k.GroupKind, namespace}] = true
	return nil
}

// Answered says that a server that is well refused to show something, or failed
// at this kind alone (a conversion webhook is down: 500). Overload, time-outs, a
// lost connection and wrong credentials are about the server as a whole.
func Answered(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	return !apierrors.IsUnauthorized(err) && !apierrors.IsTooManyRequests(err) && !apierrors.IsServiceUnavailable(err) &&
		!apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err)
}
