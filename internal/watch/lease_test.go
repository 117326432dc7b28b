package watch

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// server is a Lease API with the one property that matters: optimistic locking.
type server struct {
	coordination.LeaseInterface
	mu     sync.Mutex
	leases map[string]*coordinationv1.Lease
	writes int
	next   int
}

var leaseResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (s *server) Leases(string) coordination.LeaseInterface { return s }

func (s *server) store(l *coordinationv1.Lease) *coordinationv1.Lease {
	s.writes++
	s.next++
	kept := l.DeepCopy()
	kept.ResourceVersion = strconv.Itoa(s.next)
	if kept.UID == "" {
		kept.UID = types.UID(kept.ResourceVersion)
	}
	s.leases[l.Name] = kept
	return kept.DeepCopy()
}

func (s *server) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[name]; l != nil {
		return l.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(leaseResource, name)
}

func (s *server) Create(_ context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases[l.Name] != nil {
		return nil, apierrors.NewAlreadyExists(leaseResource, l.Name)
	}
	return s.store(l), nil
}

func (s *server) Update(_ context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch have := s.leases[l.Name]; {
	case have == nil:
		return nil, apierrors.NewNotFound(leaseResource, l.Name)
	case have.ResourceVersion != l.ResourceVersion || have.UID != l.UID:
		return nil, apierrors.NewConflict(leaseResource, l.Name, errors.New("changed"))
	}
	return s.store(l), nil
}

func (s *server) Delete(_ context.Context, name string, o metav1.DeleteOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch have := s.leases[name]; {
	case have == nil:
		return apierrors.NewNotFound(leaseResource, name)
	case have.ResourceVersion != *o.Preconditions.ResourceVersion || have.UID != *o.Preconditions.UID:
		return apierrors.NewConflict(leaseResource, name, errors.New("changed"))
	}
	s.writes++
	delete(s.leases, name)
	return nil
}

func TestLease_TwoRunsNeverHoldTheSameCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{leases: map[string]*coordinationv1.Lease{}}
		a, b := newLeases(api, "a"), newLeases(api, "b")
		ctx, killA := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { a.run(ctx) })

		if err := a.take(ctx, one); err != nil {
			t.Fatal(err)
		}
		// Renewed for ten times its duration, b never gets it.
		for range 10 {
			<-time.After(leaseDuration)
			var held *heldError
			if err := b.take(ctx, one); !errors.As(err, &held) || held.holder != "a" {
				t.Fatalf("b got %v", err)
			}
			if err := a.take(ctx, one); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.take(ctx, two); err != nil {
			t.Fatalf("another Cluster: %v", err)
		}

		// Killed: nobody releases it, it expires.
		killA()
		running.Wait()
		var held *heldError
		if err := b.take(t.Context(), one); !errors.As(err, &held) {
			t.Fatalf("b got %v right after the kill", err)
		}
		<-time.After(time.Until(held.until))
		if err := b.take(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		// The first run wakes up again: it has to see that it lost.
		if err := a.take(t.Context(), one); !errors.As(err, &held) || held.holder != "b" {
			t.Fatalf("a got %v", err)
		}
	})
}

func TestLease_LazyAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{leases: map[string]*coordinationv1.Lease{}}
		l := newLeases(api, "a")
		if err := l.releaseAll(t.Context()); err != nil || api.writes != 0 {
			t.Fatalf("%d writes, %v", api.writes, err)
		}
		for range 3 {
			if err := l.take(t.Context(), one); err != nil {
				t.Fatal(err)
			}
		}
		if api.writes != 1 {
			t.Errorf("%d writes for one Lease", api.writes)
		}
		if err := l.releaseAll(t.Context()); err != nil || len(api.leases) != 0 {
			t.Errorf("%v left, %v", api.leases, err)
		}
	})
}

func TestLease_ReleaseLeavesAnothersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{leases: map[string]*coordinationv1.Lease{}}
		a, b := newLeases(api, "a"), newLeases(api, "b")
		if err := a.take(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		<-time.After(leaseDuration)
		if err := b.take(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		if err := a.releaseAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := *api.leases[leaseName(one)].Spec.HolderIdentity; got != "b" {
			t.Errorf("held by %s", got)
		}
	})
}
