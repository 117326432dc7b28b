package bare_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
	"github.com/move-hook/move-hook/test/stack"
)

// subject is the Machine that a test writes, and who writes it.
type subject struct {
	*management.Cluster
	wire *wire
	key  client.ObjectKey
	id   graph.ID
	// on is the Machine as the decision saw it.
	on     adopt.Target
	before graph.Object
}

// wire remembers the writes and reads of the Machine: "PATCH 409".
type wire struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen []string
}

// RoundTrip remembers what became of a request.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := w.next.RoundTrip(r)
	if err == nil && strings.Contains(r.URL.Path, "/machines/") {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = append(w.seen, fmt.Sprintf("%s %d", r.Method, answer.StatusCode))
	}
	return answer, err
}

func (w *wire) took() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = nil
	return seen
}

// machine makes a Cluster with one Machine, in a namespace of its own.
func machine(t *testing.T, namespace string) *subject {
	t.Helper()
	key := stack.Must(stack.Cluster("c").InNamespace(namespace).StandAloneControlPlane(1).Create(t.Context(), world.Management))(t)
	s := &subject{wire: &wire{}, key: client.ObjectKey{Namespace: namespace, Name: key.Name + "-cp-0"}}
	s.Cluster = open(t, func(cfg *rest.Config) {
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
			s.wire.next = next
			return s.wire
		})
	})
	s.id = id(graph.Machine, namespace, s.key.Name)
	s.look(t)
	return s
}

// look makes the decision see the Machine as it is now.
func (s *subject) look(t *testing.T) {
	t.Helper()
	s.before = *get(t, s.Cluster, s.id)
	s.on = adopt.Target{ID: s.id, UID: s.before.UID, ResourceVersion: s.before.ResourceVersion, APIVersion: s.before.APIVersion}
	s.wire.took()
}

// somebody changes the Machine behind the decision's back.
func (s *subject) somebody(t *testing.T, change func(*clusterv1.Machine)) {
	t.Helper()
	m := &clusterv1.Machine{}
	if err := world.Client().Get(t.Context(), s.key, m); err != nil {
		t.Fatal(err)
	}
	old := m.DeepCopy()
	change(m)
	if err := world.Client().Patch(t.Context(), m, client.MergeFrom(old)); err != nil {
		t.Fatal(err)
	}
}

// controllerOf is a reference to the Cluster as controller.
func controllerOf(uid types.UID, name string) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: name, UID: uid, Controller: &yes}
}

func (s *subject) setOwners(after ...metav1.OwnerReference) adopt.SetOwners {
	return adopt.SetOwners{On: s.on, Before: s.before.Owners, After: after, Reason: "test"}
}

func (s *subject) change(c labels.Change) adopt.ChangeMeta {
	return adopt.ChangeMeta{On: s.on, Change: c, Reason: "test"}
}

// apply demands an outcome without an error, and the requests that led to it.
func (s *subject) apply(t *testing.T, a adopt.Action, want adopt.Outcome, requests ...string) {
	t.Helper()
	s.wire.took()
	got, err := s.Apply(t.Context(), a, false)
	if err != nil || got != want {
		t.Fatalf("%s: outcome %d, error %v; want outcome %d", a, got, err, want)
	}
	if seen := s.wire.took(); len(requests) > 0 && !slices.Equal(seen, requests) {
		t.Errorf("%s: requests %v, want %v", a, seen, requests)
	}
}

// unchanged demands that the Machine is, to the last byte, what it was after
// others had written it.
func (s *subject) unchanged(t *testing.T, since graph.Object) {
	t.Helper()
	if diff := cmp.Diff(since, *get(t, s.Cluster, s.id)); diff != "" {
		t.Errorf("the object changed (-before +after):\n%s", diff)
	}
}

func held() labels.Change {
	return labels.Hold(labels.Meta{}, labels.Holder{Who: "test", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
}

func TestAnswers_AppliedAndThenAlreadyThere(t *testing.T) {
	s := machine(t, "answers-applied")
	for name, action := range map[string]func() adopt.Action{
		"owners":      func() adopt.Action { return s.setOwners(controllerOf("uid", "c")) },
		"no owners":   func() adopt.Action { return s.setOwners() },
		"label":       func() adopt.Action { return s.change(labels.MarkPending(labels.Meta{})) },
		"hold":        func() adopt.Action { return s.change(held()) },
		"record done": func() adopt.Action { return adopt.CloseRecord{On: s.on, At: time.Unix(0, 0), Reason: "test"} },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "no owners" {
				s.somebody(t, func(m *clusterv1.Machine) { m.OwnerReferences = []metav1.OwnerReference{controllerOf("x", "x")} })
			}
			s.look(t)
			first := s.on.ResourceVersion
			s.apply(t, action(), adopt.Applied, "PATCH 200")
			s.look(t)
			if s.on.ResourceVersion == first {
				t.Fatal("applied, and the resourceVersion is the same")
			}
			s.apply(t, action(), adopt.AlreadyThere, "PATCH 200")
			s.unchanged(t, s.before)
		})
	}
	o := get(t, s.Cluster, s.id)
	if !labels.IsPending(labels.MetaOf(o)) || !labels.IsHeld(labels.MetaOf(o)) || !labels.PausedByAnnotation(labels.MetaOf(o)) ||
		o.Annotations[graph.AdoptedAnnotation] != "1970-01-01T00:00:00Z" {
		t.Errorf("labels %v, annotations %v", o.Labels, o.Annotations)
	}
}

func TestAnswers_UnrelatedWriteInBetween(t *testing.T) {
	s := machine(t, "answers-unrelated")
	for name, write := range map[string]func(t *testing.T){
		"status": func(t *testing.T) {
			m := &clusterv1.Machine{}
			if err := world.Client().Get(t.Context(), s.key, m); err != nil {
				t.Fatal(err)
			}
			m.Status.NodeRef.Name = "node"
			if err := world.Client().Status().Update(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		},
		"annotation": func(t *testing.T) {
			s.somebody(t, func(m *clusterv1.Machine) { m.Annotations = map[string]string{"theirs": "x"} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.look(t)
			write(t)
			after := controllerOf(types.UID("uid-"+name), "c")
			s.apply(t, s.setOwners(after), adopt.Applied, "PATCH 409", "GET 200", "PATCH 200")
			if o := get(t, s.Cluster, s.id); !cmp.Equal(o.Owners, []metav1.OwnerReference{after}) {
				t.Errorf("owners %v", o.Owners)
			}
			s.look(t)
			s.somebody(t, func(m *clusterv1.Machine) { m.Finalizers = append(m.Finalizers, "theirs/"+name) })
			s.apply(t, s.change(labels.Change{SetAnnotations: map[string]string{"ours-" + name: "x"}}), adopt.Applied, "PATCH 409", "GET 200", "PATCH 200")
		})
	}
	m := &clusterv1.Machine{}
	if err := world.Client().Get(t.Context(), s.key, m); err != nil {
		t.Fatal(err)
	}
	if m.Status.NodeRef.Name != "node" || m.Annotations["theirs"] != "x" || len(m.Finalizers) != 2 {
		t.Errorf("what others wrote is gone: %+v %v", m.Status.NodeRef, m.ObjectMeta)
	}
}

func TestAnswers_WhatTheDecisionReadHasChanged(t *testing.T) {
	s := machine(t, "answers-changed")
	for name, test := range map[string]struct {
		before, meanwhile func(*clusterv1.Machine)
		action            func() adopt.Action
	}{
		"owners": {
			meanwhile: func(m *clusterv1.Machine) { m.OwnerReferences = []metav1.OwnerReference{controllerOf("another", "c")} },
			action:    func() adopt.Action { return s.setOwners(controllerOf("uid", "c")) },
		},
		"our label was taken off": {
			before:    func(m *clusterv1.Machine) { m.Labels[labels.Adoption] = labels.Pending },
			meanwhile: func(m *clusterv1.Machine) { delete(m.Labels, labels.Adoption) },
			action:    func() adopt.Action { return s.change(labels.ClearPending(labels.MetaOf(&s.before))) },
		},
		"its user paused it": {
			meanwhile: func(m *clusterv1.Machine) { m.Annotations = map[string]string{labels.Paused: "by me"} },
			action:    func() adopt.Action { return s.change(held()) },
		},
		"its user made our pause theirs": {
			before: func(m *clusterv1.Machine) { m.Annotations = held().SetAnnotations },
			meanwhile: func(m *clusterv1.Machine) {
				m.Annotations[labels.Paused] = "by me"
			},
			action: func() adopt.Action { return s.change(labels.Release(labels.MetaOf(&s.before))) },
		},
		"a record was written": {
			meanwhile: func(m *clusterv1.Machine) { m.Annotations = map[string]string{"written": "again"} },
			action:    func() adopt.Action { return adopt.CloseRecord{On: s.on, At: time.Unix(0, 0), Reason: "test"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.somebody(t, func(m *clusterv1.Machine) {
				m.OwnerReferences, m.Annotations = nil, nil
				delete(m.Labels, labels.Adoption)
			})
			if test.before != nil {
				s.somebody(t, test.before)
			}
			s.look(t)
			action := test.action()
			s.somebody(t, test.meanwhile)
			since := *get(t, s.Cluster, s.id)
			s.apply(t, action, adopt.Moved, "PATCH 409", "GET 200")
			s.unchanged(t, since)
		})
	}
}

func TestAnswers_DeletedMeanwhile(t *testing.T) {
	ctx := t.Context()
	s := machine(t, "answers-deleted")
	remove := func() {
		t.Helper()
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}}
		if err := world.Client().Delete(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	confirm := func(want bool) {
		t.Helper()
		if ok, err := s.Confirm(ctx, []adopt.Target{s.on}); err != nil || ok != want {
			t.Errorf("confirmed: %t, %v; want %t", ok, err, want)
		}
	}
	s.somebody(t, func(m *clusterv1.Machine) { m.Finalizers = []string{"test/stay"} })
	s.look(t)
	confirm(true)

	remove()
	since := *get(t, s.Cluster, s.id)
	if !since.Deleting {
		t.Fatal("it is not being deleted")
	}
	s.apply(t, s.setOwners(controllerOf("uid", "c")), adopt.Moved, "PATCH 409", "GET 200")
	s.unchanged(t, since)
	confirm(false)

	s.somebody(t, func(m *clusterv1.Machine) { m.Finalizers = nil })
	s.apply(t, s.setOwners(controllerOf("uid", "c")), adopt.Moved, "PATCH 404")
	confirm(false)

	again := stack.Cluster("c").InNamespace(s.key.Namespace).StandAloneControlPlane(1).Objects()
	if err := world.Client().Create(ctx, again[len(again)-1]); err != nil {
		t.Fatal(err)
	}
	since = *get(t, s.Cluster, s.id)
	if since.UID == s.on.UID {
		t.Fatal("it is the same copy")
	}
	s.apply(t, s.setOwners(controllerOf("uid", "c")), adopt.Moved, "PATCH 409", "GET 200")
	s.unchanged(t, since)
	confirm(false)
	// Even a target that has the version of one copy and the UID of another.
	s.on.ResourceVersion = since.ResourceVersion
	s.apply(t, s.change(held()), adopt.Moved)
	s.unchanged(t, since)
}
