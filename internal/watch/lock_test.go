package watch

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/graph"
)

func silent(flow.Update) {}

func TestLock_ALivingHolderIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{leases: map[string]*coordinationv1.Lease{}}
		first, release, err := Lock(t.Context(), api, "fleet", silent)
		if err != nil {
			t.Fatal(err)
		}
		holder := *api.leases[leasePrefix+pivotLease].Spec.HolderIdentity
		// However long the first has been at it.
		<-time.After(10 * leaseDuration)
		begin := time.Now()
		_, _, err = Lock(t.Context(), api, "fleet", silent)
		var held *HeldError
		if !errors.As(err, &held) || held.Holder != holder || !strings.Contains(err.Error(), holder) {
			t.Fatalf("the second got %v", err)
		}
		if waited := time.Since(begin); waited > leaseDuration {
			t.Errorf("it was told after %s", waited)
		}
		if first.Err() != nil {
			t.Errorf("the first lost its Lease: %v", context.Cause(first))
		}
		release()
		begin = time.Now()
		_, release, err = Lock(t.Context(), api, "fleet", silent)
		if err != nil || time.Since(begin) > 0 {
			t.Fatalf("after the first had ended: %v after %s", err, time.Since(begin))
		}
		release()
		if len(api.leases) > 0 {
			t.Errorf("%v left", api.leases)
		}
	})
}

func TestLock_ADeadHolderIsOutwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{leases: map[string]*coordinationv1.Lease{}}
		dead := newLeases(api, "dead")
		if err := dead.take(t.Context(), lockOf("fleet")); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		var said []string
		locked, release, err := Lock(t.Context(), api, "fleet", func(u flow.Update) { said = append(said, u.Message) })
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begin); waited < leaseDuration || waited > leaseDuration+2*lockPoll {
			t.Errorf("it went on after %s", waited)
		}
		if len(said) != 1 || !strings.Contains(said[0], "dead") {
			t.Errorf("it said %q", said)
		}
		if locked.Err() != nil {
			t.Error(context.Cause(locked))
		}
		release()
	})
}

// What is locked first is kept while another's Lease is waited for.
func TestLockClusters_KeepsPostsOff(t *testing.T) {
	clusters := []graph.ID{clusterID("fleet", "c1"), clusterID("fleet", "c2")}
	for name, lives := range map[string]bool{"a post that was killed": false, "one that lives": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &server{leases: map[string]*coordinationv1.Lease{}}
				ctx, kill := context.WithCancel(t.Context())
				defer kill()
				post := newLeases(api, "post")
				if err := post.take(ctx, clusters[1]); err != nil {
					t.Fatal(err)
				}
				if lives {
					go post.run(ctx)
				}
				locked, release, err := LockClusters(t.Context(), api, clusters, silent)
				if lives {
					var held *HeldError
					if !errors.As(err, &held) || !strings.Contains(err.Error(), "fleet/c2 is being adopted by post (Lease fleet/move-hook-c2)") {
						t.Errorf("beside a living post it got %v", err)
					}
					if len(api.leases) != 1 {
						t.Errorf("%d Leases are left", len(api.leases))
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				<-time.After(4 * leaseDuration)
				for _, c := range clusters {
					var held *heldError
					if err := newLeases(api, "another").take(t.Context(), c); !errors.As(err, &held) {
						t.Errorf("another post got %s: %v", c, err)
					}
				}
				if locked.Err() != nil {
					t.Error(context.Cause(locked))
				}
				if release(); len(api.leases) > 0 {
					t.Errorf("%d Leases are left", len(api.leases))
				}
			})
		})
	}
}

// A run that slept through its Lease must not go on beside the one that took it.
func TestLock_WhoLosesTheLeaseStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{leases: map[string]*coordinationv1.Lease{}}
		locked, release, err := Lock(t.Context(), api, "fleet", silent)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		other := "other"
		stolen := api.leases[leasePrefix+pivotLease].DeepCopy()
		stolen.Spec.HolderIdentity = &other
		if _, err := api.Update(t.Context(), stolen, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(leaseDuration)
		if !errors.Is(context.Cause(locked), errLockLost) {
			t.Errorf("the context ended with %v", context.Cause(locked))
		}
	})
}

// pausing is a server on which nobody writes before all have read.
type pausing struct {
	*server
	read *sync.WaitGroup
	once sync.Once
}

func (p *pausing) Leases(string) coordination.LeaseInterface { return p }

func (p *pausing) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	l, err := p.server.Get(ctx, name, o)
	p.once.Do(func() { p.read.Done(); p.read.Wait() })
	return l, err
}

// Two that start in the same moment see the same, and the slower one's write is
// refused: it is to name the faster one and not to fail.
func TestLock_TwoAtTheSameMoment(t *testing.T) {
	for name, dead := range map[string]bool{"no Lease": false, "an expired Lease": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &server{leases: map[string]*coordinationv1.Lease{}}
				if dead {
					if err := newLeases(api, "dead").take(t.Context(), lockOf("fleet")); err != nil {
						t.Fatal(err)
					}
					<-time.After(leaseDuration)
				}
				var read, running sync.WaitGroup
				read.Add(2)
				releases, errs := make([]func(), 2), make([]error, 2)
				for i := range 2 {
					running.Go(func() {
						_, releases[i], errs[i] = Lock(t.Context(), &pausing{server: api, read: &read}, "fleet", silent)
					})
				}
				running.Wait()
				got := 0
				for i, err := range errs {
					var held *HeldError
					switch {
					case err == nil:
						got++
						releases[i]()
					case !errors.As(err, &held):
						t.Errorf("it failed: %v", err)
					}
				}
				if got != 1 {
					t.Errorf("%d got the Lease", got)
				}
			})
		})
	}
}
