package watch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/move-hook/move-hook/pkg/graph"
)

// api is one kind on a server that does not stream lists.
type api struct {
	mu      sync.Mutex
	objects map[string]string // name to resourceVersion
	refuse  error
	events  *apiwatch.FakeWatcher
}

func metadataOf(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, UID: "1", ResourceVersion: version}}
}

func (a *api) list(context.Context, metav1.ListOptions) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refuse != nil {
		return nil, a.refuse
	}
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "100"}}
	for name, version := range a.objects {
		list.Items = append(list.Items, *metadataOf(name, version))
	}
	return list, nil
}

func (a *api) watch(_ context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refuse != nil {
		return nil, a.refuse
	}
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
	}
	a.events = apiwatch.NewFake()
	return a.events, nil
}

func (a *api) set(f func(*api)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a)
}

// told is what a feed has told, sorted.
type told struct {
	mu      sync.Mutex
	changes []string
	known   []string
}

func newFeed(a *api, s *store, t *told) *feed {
	return &feed{
		place: place{kind: graph.Machine, namespace: "fleet"}, list: a.list, watch: a.watch, store: s, contact: &contact{}, tried: make(chan struct{}),
		convert: func(o runtime.Object) (graph.Object, error) {
			m := o.(*metav1.PartialObjectMetadata)
			return graph.Object{ID: graph.ID{Group: graph.CoreGroup, Kind: "Machine", Namespace: m.Namespace, Name: m.Name}, UID: m.UID, ResourceVersion: m.ResourceVersion}, nil
		},
		changed: func(o graph.Object, _ uint64) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.changes = append(t.changes, o.Name+"@"+o.ResourceVersion)
		},
		known: func(_ place, listed bool, _ uint64, why error) {
			t.mu.Lock()
			defer t.mu.Unlock()
			if listed {
				t.known = append(t.known, "listed")
				return
			}
			t.known = append(t.known, string(apierrors.ReasonForError(why)))
		},
	}
}

// take returns what was told since the last call.
func (t *told) take() (changes, known []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changes, known = t.changes, t.known
	t.changes, t.known = nil, nil
	slices.Sort(changes)
	return changes, known
}

func expect(t *testing.T, told *told, changes, known []string) {
	t.Helper()
	gotChanges, gotKnown := told.take()
	if diff := cmp.Diff([][]string{changes, known}, [][]string{gotChanges, gotKnown}); diff != "" {
		t.Error(diff)
	}
}

func TestFeed_ListsAndFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s, told := &api{objects: map[string]string{"a": "1", "b": "2"}}, newStore(), &told{}
		f := newFeed(a, s, told)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { f.run(ctx) })
		<-f.tried
		synctest.Wait()
		expect(t, told, []string{"a@1", "b@2"}, []string{"listed"})

		a.events.Modify(metadataOf("a", "3"))
		a.events.Delete(metadataOf("b", "4"))
		a.events.Add(metadataOf("c", "5"))
		synctest.Wait()
		// A change tells the old form too: what it belonged to has to wake up.
		expect(t, told, []string{"a@1", "a@3", "b@2", "c@5"}, nil)

		// The watch is lost, and meanwhile something happened.
		a.set(func(a *api) { a.objects = map[string]string{"a": "3", "d": "6"} })
		a.events.Error(&apierrors.NewResourceExpired("too old").ErrStatus)
		<-time.After(lastRelist)
		synctest.Wait()
		expect(t, told, []string{"c@5", "d@6"}, nil)

		cancel()
		running.Wait()
	})
}

func TestFeed_WhatMayNotBeReadIsUnknownAndBecomesKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "", errors.New("no"))
		a, s, told := &api{refuse: forbidden}, newStore(), &told{}
		f := newFeed(a, s, told)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { f.run(ctx) })
		<-f.tried
		<-time.After(3 * lastRelist)
		synctest.Wait()
		expect(t, told, nil, []string{"Forbidden"})
		if g, err := s.graph("fleet", 0); err != nil || g.Listed(graph.Machine, "fleet") {
			t.Errorf("listed although it may not be read (%v)", err)
		}

		a.set(func(a *api) { a.refuse, a.objects = nil, map[string]string{"a": "1"} })
		<-time.After(2 * lastRelist)
		synctest.Wait()
		expect(t, told, []string{"a@1"}, []string{"listed"})
		if g, err := s.graph("fleet", s.generation); err != nil || !g.Listed(graph.Machine, "fleet") || g.Len() != 1 {
			t.Errorf("not listed (%v)", err)
		}
		cancel()
		running.Wait()
	})
}

func TestFeed_AnAbsentServerTellsNothingNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s, told := &api{objects: map[string]string{"a": "1"}}, newStore(), &told{}
		f := newFeed(a, s, told)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { f.run(ctx) })
		<-f.tried
		synctest.Wait()
		expect(t, told, []string{"a@1"}, []string{"listed"})

		a.set(func(a *api) { a.refuse = apierrors.NewInternalError(errors.New("no leader")) })
		a.events.Stop()
		<-time.After(patience + lastRelist)
		synctest.Wait()
		expect(t, told, nil, nil)
		if f.contact.lost() == nil {
			t.Error("nobody noticed that the server is away")
		}
		cancel()
		running.Wait()
	})
}
