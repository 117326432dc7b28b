package management

import (
	"context"
	"fmt"
	"iter"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/move-hook/move-hook/pkg/graph"
)

const (
	// rounds bounds how far references are followed beyond what was listed: an
	// object names another, which has an owner, which has one.
	rounds = 4
	// manyObjects of a kind that clusterctl does not list are not all read for the
	// sake of a few that are named; of those, at most manyNames.
	manyObjects = 5000
	manyNames   = 200
)

// providerSecrets adds what clusterctl adds when it reads one namespace: the
// Secrets of the infrastructure providers' namespaces (objectgraph.go, Discovery).
func (r *reader) providerSecrets(ctx context.Context) error {
	k, ok := r.discovery.Find(providerKind)
	secrets, served := r.discovery.Find(graph.Secret)
	if r.scope.Namespace == "" || !ok || !served {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	providers, err := r.cluster.dynamic.Resource(k.GVR()).List(ctx, metav1.ListOptions{})
	switch {
	case err == nil:
	case Answered(err):
		r.warn("clusterctl's Providers, and with them the Secrets in their namespaces", err)
		return nil
	default:
		return fmt.Errorf("listing clusterctl's Providers on %s: %w", r.cluster.name, err)
	}
	done := map[string]bool{r.scope.Namespace: true}
	for _, p := range providers.Items {
		t, _, _ := unstructured.NestedString(p.Object, "type")
		if t != "InfrastructureProvider" || done[p.GetNamespace()] {
			continue
		}
		done[p.GetNamespace()] = true
		r.mu.Lock()
		r.providers = append(r.providers, p.GetNamespace())
		r.mu.Unlock()
		if err := r.list(ctx, secrets, p.GetNamespace()); err != nil {
			return err
		}
	}
	return nil
}

// wanted is an object that lies beyond what was listed, and who names it.
type wanted struct {
	id, by graph.ID
	// hint: nobody says that it exists.
	hint bool
}

// beyond reads what the listed objects name and no list held, so that a reference
// can be called live, stale or dangling: kinds that clusterctl does not list, and
// (as clusterctl does) a ClusterClass in another namespace with its templates.
func (r *reader) beyond(ctx context.Context) error {
	asked := map[graph.ID]bool{}
	tried := map[place]bool{}
	for range rounds {
		lists, gets := map[place][]wanted{}, []wanted(nil)
		for w := range r.named() {
			k, served := r.discovery.Find(w.id.GroupKind())
			at := place{k.GroupKind, w.id.Namespace}
			if r.scope.Namespace == "" {
				at.namespace = ""
			}
			inScope := at.namespace == "" || at.namespace == r.scope.Namespace
			switch {
			case !served || r.have[w.id] || asked[w.id] || r.listed[at] || tried[at]:
			case !k.Discovered:
				lists[at] = append(lists[at], w)
			case !inScope:
				// Not all of the neighbour's objects: clusterctl does not see them either.
				asked[w.id] = true
				gets = append(gets, w)
			}
		}
		if len(lists) == 0 && len(gets) == 0 {
			return nil
		}
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(atOnce)
		for at, ws := range lists {
			tried[at] = true
			group.Go(func() error { return r.listBeyond(groupCtx, at, ws) })
		}
		for _, w := range gets {
			group.Go(func() error { return r.get(groupCtx, w) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// named gives what the objects name that were added since the last call.
func (r *reader) named() iter.Seq[wanted] {
	fresh := r.fresh
	r.fresh = nil
	return func(yield func(wanted) bool) {
		for _, o := range fresh {
			for to := range r.namedBy(o) {
				if !yield(wanted{id: to, by: o.ID}) {
					return
				}
			}
			if !r.scope.Hints {
				continue
			}
			for _, hint := range o.Hints {
				if !yield(wanted{id: hint.To, by: o.ID, hint: true}) {
					return
				}
			}
		}
	}
}

// namedBy gives what one object refers to, and its owners.
func (r *reader) namedBy(o *graph.Object) iter.Seq[graph.ID] {
	return func(yield func(graph.ID) bool) {
		for _, ref := range o.Refs {
			if !yield(ref.To) {
				return
			}
		}
		// Owners of Secrets and ConfigMaps that are nobody's (a chart's, a
		// Certificate's) would lead all over the management cluster.
		if _, labelled := o.Labels[graph.ClusterNameLabel]; !labelled && (o.GroupKind() == graph.Secret || o.GroupKind() == graph.ConfigMap) {
			return
		}
		for _, ref := range o.NamedOwners() {
			id := graph.ID{Group: graph.GroupOf(ref.APIVersion), Kind: ref.Kind, Namespace: o.Namespace, Name: ref.Name}
			if k, ok := r.discovery.Find(id.GroupKind()); ok && !k.Namespaced {
				id.Namespace = ""
			}
			if !yield(id) {
				return
			}
		}
	}
}

// listBeyond lists a kind that clusterctl does not list, so that absence can be
// told from ignorance; where it has too many objects, only those that are named.
func (r *reader) listBeyond(ctx context.Context, at place, ws []wanted) error {
	k, _ := r.discovery.Find(at.kind)
	s := r.cluster.Stream(k, at.namespace, r.whole(at.kind))
	pages, complete, err := s.upTo(ctx, manyObjects)
	switch {
	case err != nil && Answered(err):
		r.warn(s.String(), err)
		return nil
	case err != nil:
		return fmt.Errorf("listing %s on %s: %w", s, r.cluster.name, err)
	case complete:
		r.add(pages)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.builder.Listed(at.kind, at.namespace)
		r.listed[at] = true
		return nil
	}
	if len(ws) > manyNames {
		r.warn(s.String(), fmt.Errorf("it has more than %d objects, of which %d are named: only the first %d of these were read", manyObjects, len(ws), manyNames))
		ws = ws[:manyNames]
	}
	for _, w := range ws {
		if err := r.get(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) get(ctx context.Context, w wanted) error {
	k, _ := r.discovery.Find(w.id.GroupKind())
	o, err := r.cluster.get(ctx, k, w.id, r.whole(w.id.GroupKind()))
	switch {
	case err != nil && Answered(err):
		r.warn(w.id.String(), err)
		return nil
	case err != nil:
		return err
	case o == nil && w.hint:
		return nil
	case o == nil:
		r.warn(w.id.String(), fmt.Errorf("%s names it and it does not exist", w.by))
		return nil
	}
	r.add([][]graph.Object{{*o}})
	return nil
}
