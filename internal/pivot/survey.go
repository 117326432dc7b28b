package pivot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/preflight"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/order"
)

// standIns are namespaces in which objects are offered whose own does not exist on the
// target yet: a dry run cannot create it first. Every API server makes both. What the
// first refuses is offered to the second, because policies often make exceptions for
// one of them, and only what both refuse counts.
var standIns = []string{metav1.NamespaceDefault, metav1.NamespacePublic}

// survey looks at a target with an eye to what moves there. It writes nothing.
type survey struct {
	source, target *management.Cluster
	scope          *preflight.Scope
	// namespace is the scope's; empty for all.
	namespace string
	// offer: everything is offered to the target in a dry run.
	offer    bool
	progress flow.Progress
	told     map[string]bool

	facts  *preflight.TargetFacts
	moving map[graph.GroupKind][]graph.ID
	// kinds are the source's; on is where the target serves them.
	kinds map[graph.GroupKind]management.Kind
	on    map[graph.GroupKind]management.Kind

	mu sync.Mutex
}

func (s *survey) run(ctx context.Context) error {
	s.moving = s.scope.Moving()
	s.facts.Kinds = map[graph.GroupKind]preflight.KindFacts{}
	s.facts.Rooms = map[string]preflight.Room{}
	s.facts.There = map[graph.ID]preflight.Copy{}
	s.kinds, s.on = map[graph.GroupKind]management.Kind{}, map[graph.GroupKind]management.Kind{}
	return inOrder(ctx, s.lookAtProviders, s.lookAtKinds, s.lookAtRooms, s.lookForNames, s.compare)
}

// unread tells what could not be read; it is unknown then, and no finding.
func (s *survey) unread(of *management.Cluster, warnings ...management.Warning) {
	warn(s.progress, s.told, of.Name(), warnings)
}

// ifAnswered makes a warning of an error with which a server that is well refuses to
// show something.
func (s *survey) ifAnswered(of *management.Cluster, what string, err error) error {
	if err == nil || !management.Answered(err) {
		return err
	}
	s.unread(of, management.Warning{What: what, Why: err.Error()})
	return nil
}

func (s *survey) lookAtProviders(ctx context.Context) error {
	inventories := preflight.Inventories{Read: true}
	for side, into := range map[*management.Cluster]*[]preflight.Provider{s.source: &inventories.Source, s.target: &inventories.Target} {
		all, err := side.Providers(ctx)
		if err != nil {
			inventories.Read = false
			if err := s.ifAnswered(side, "clusterctl's Providers", err); err != nil {
				return err
			}
		}
		for _, p := range all {
			*into = append(*into, preflight.Provider{Type: p.Type, Name: p.Name, Version: p.Version})
		}
	}
	s.facts.Providers = inventories
	return nil
}

// lookAtKinds finds out in which version clusterctl creates each kind, and whether the
// target serves it.
func (s *survey) lookAtKinds(ctx context.Context) error {
	on, err := s.source.Discover(ctx)
	if err != nil {
		return err
	}
	var kinds []management.Kind
	for gk := range s.moving {
		if k, ok := on.Find(gk); ok {
			s.kinds[gk] = k
			kinds = append(kinds, k)
		}
	}
	versions, err := s.source.Versions(ctx)
	if err != nil {
		return err
	}
	stored, err := s.source.Stored(ctx, kinds, versions)
	if err != nil {
		return err
	}
	served, err := s.target.Versions(ctx)
	if err != nil {
		return err
	}
	there, err := s.target.Refresh(ctx)
	if err != nil {
		return err
	}
	for gk, version := range stored {
		k, _ := there.Find(gk)
		facts := preflight.KindFacts{Version: version, Served: served.Of(gk), Resource: k.Resource, Labelled: k.Discovered}
		for _, w := range served.Warnings {
			if gk.Group != "" && strings.Contains(w.What, gk.Group) {
				facts.Unknown = w.String()
			}
		}
		s.facts.Kinds[gk] = facts
		if k.Resource != "" && slices.Contains(facts.Served, version) {
			s.on[gk] = k
		}
	}
	return nil
}

func (s *survey) lookAtRooms(ctx context.Context) error {
	for namespace := range namespacesOf(s.moving) {
		room, warnings, err := s.target.RoomIn(ctx, namespace)
		if err != nil {
			return err
		}
		s.unread(s.target, warnings...)
		facts := preflight.Room{Exists: room.Exists, Terminating: room.Terminating}
		for _, q := range room.Quotas {
			facts.Quotas = append(facts.Quotas, preflight.Quota(q))
		}
		s.facts.Rooms[namespace] = facts
	}
	return nil
}

// places are the namespaces to list for a kind: those of its objects that move.
func (s *survey) places(gk graph.GroupKind) []string {
	if s.namespace == "" || !s.kinds[gk].Namespaced {
		return []string{""}
	}
	places := map[string]bool{}
	for _, id := range s.moving[gk] {
		places[id.Namespace] = true
	}
	return slices.Sorted(maps.Keys(places))
}

// lookForNames finds what has the name of something that moves.
func (s *survey) lookForNames(ctx context.Context) error {
	moving := map[graph.ID]bool{}
	for _, ids := range s.moving {
		for _, id := range ids {
			moving[id] = true
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for gk, k := range s.on {
		for _, namespace := range s.places(gk) {
			group.Go(func() error {
				there, err := s.target.Stream(k, namespace, false).All(ctx)
				if err := s.ifAnswered(s.target, gk.String(), err); err != nil {
					return err
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				for i := range there {
					if o := &there[i]; moving[o.ID] {
						s.facts.There[o.ID] = preflight.Copy{Labels: o.Labels, Deleting: o.Deleting, Kept: s.kept(o.ID)}
					}
				}
				return nil
			})
		}
	}
	return group.Wait()
}

// kept: clusterctl updates no cluster-scoped object that is there already, nor what
// belongs to one (mover.go, createTargetObject).
func (s *survey) kept(id graph.ID) bool {
	because := s.scope.Moves[id].Because
	return id.Namespace == "" || !because.IsZero() && because.Namespace == ""
}

// compare goes through the contents of what moves, a kind that owns before what it
// owns: what is on the target already is compared with it, the rest is offered.
func (s *survey) compare(ctx context.Context) error {
	total := 0
	for gk := range s.on {
		total += len(s.moving[gk])
	}
	if s.offer && total > 0 {
		s.progress.Say(flow.Update{Time: time.Now(), Step: fmt.Sprintf("Offering %d objects to %s (dry run)", total, s.target.Name())})
	}
	for _, gk := range s.inOwnerOrder() {
		k, ok := s.on[gk]
		if !ok {
			continue // Another finding says so.
		}
		version := s.facts.Kinds[gk].Version
		for _, namespace := range s.places(gk) {
			copies, err := s.copies(ctx, k, version, namespace)
			if err := s.ifAnswered(s.target, gk.String(), err); err != nil {
				return err
			}
			if !s.offer && len(copies) == 0 {
				continue
			}
			err = s.source.Whole(ctx, s.kinds[gk], version, namespace, func(page []unstructured.Unstructured) error {
				return s.page(ctx, k, page, copies)
			})
			if err := s.ifAnswered(s.source, gk.String(), err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *survey) inOwnerOrder() []graph.GroupKind {
	var ids []graph.ID
	for _, of := range s.moving {
		ids = append(ids, of...)
	}
	levels, _ := order.Of(slices.Values(ids), func(id graph.ID) []graph.ID {
		var owners []graph.ID
		for _, e := range s.scope.Graph.Owners(id) {
			owners = append(owners, e.To)
		}
		return owners
	})
	var kinds []graph.GroupKind
	seen := map[graph.GroupKind]bool{}
	for _, level := range levels {
		for _, id := range level {
			if gk := id.GroupKind(); !seen[gk] {
				seen[gk] = true
				kinds = append(kinds, gk)
			}
		}
	}
	return kinds
}

// copies reads the copies of one kind that are on the target already.
func (s *survey) copies(ctx context.Context, k management.Kind, version, namespace string) (map[graph.ID]*unstructured.Unstructured, error) {
	copies := map[graph.ID]*unstructured.Unstructured{}
	if !slices.ContainsFunc(s.moving[k.GroupKind], func(id graph.ID) bool { _, ok := s.facts.There[id]; return ok }) {
		return copies, nil
	}
	err := s.target.Whole(ctx, k, version, namespace, func(page []unstructured.Unstructured) error {
		for i := range page {
			if id := idOf(k, &page[i]); s.there(id) {
				copies[id] = page[i].DeepCopy()
			}
		}
		return nil
	})
	return copies, err
}

func (s *survey) there(id graph.ID) bool {
	_, ok := s.facts.There[id]
	return ok
}

func idOf(k management.Kind, u *unstructured.Unstructured) graph.ID {
	return graph.ID{Group: k.Group, Kind: k.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}

func (s *survey) page(ctx context.Context, k management.Kind, page []unstructured.Unstructured, copies map[graph.ID]*unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range page {
		u := &page[i]
		id := idOf(k, u)
		switch there := copies[id]; {
		case !s.scope.Moves[id].In:
		case there != nil:
			group.Go(func() error { return s.compareOne(ctx, k, u, there) })
		case s.offer && offerable(k, u):
			group.Go(func() error { return s.offerOne(ctx, k, u) })
		}
	}
	return group.Wait()
}

// compareOne compares with what clusterctl's update would make of the copy, so that
// what this side's servers fill in does not count. Of a Secret there is but the type.
func (s *survey) compareOne(ctx context.Context, k management.Kind, u, there *unstructured.Unstructured) error {
	id := idOf(k, u)
	s.mu.Lock()
	fact := s.facts.There[id]
	s.mu.Unlock()
	want := u
	if s.offer && !fact.Kept && !fact.Deleting && k.GroupKind != graph.Secret {
		got, refused, err := s.target.Offer(ctx, k, u, there)
		if err != nil {
			return err
		}
		fact.Refused = refused
		if got != nil {
			want = got
		}
	}
	fact.Differs = preflight.Differences(want.Object, there.Object)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.facts.There[id] = fact
	return nil
}

// offerable: the data of Secrets is never read, so a Secret is offered without, as far
// as its type allows that. Kubernetes' own types do not, except the general one
// (k8s.io/kubernetes pkg/apis/core/validation, ValidateSecret).
func offerable(k management.Kind, u *unstructured.Unstructured) bool {
	if k.GroupKind != graph.Secret {
		return true
	}
	t, _ := u.Object["type"].(string)
	return !strings.HasPrefix(t, "kubernetes.io/")
}

// offerOne offers an object that is not on the target yet.
func (s *survey) offerOne(ctx context.Context, k management.Kind, u *unstructured.Unstructured) error {
	id := idOf(k, u)
	places := []string{id.Namespace}
	if id.Namespace != "" && !s.facts.Rooms[id.Namespace].Exists {
		places = standIns
	}
	var refusal *preflight.Refusal
	for _, place := range places {
		in := u.DeepCopy()
		in.SetNamespace(place)
		_, refused, err := s.target.Offer(ctx, k, in, nil)
		switch {
		case err != nil:
			return err
		case refused == nil && refusal != nil:
			refusal.TakenIn = place
		case refused == nil:
			return nil
		case refusal == nil:
			refusal = &preflight.Refusal{ID: id, Said: *refused}
			if place != id.Namespace {
				refusal.StandIn = place
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.facts.Refusals = append(s.facts.Refusals, *refusal)
	return nil
}
