package watch

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/move-hook/move-hook/internal/pivot/flow"
)

// line is the way of one process to the Lease API; it can be cut.
type line struct {
	*server
	cut atomic.Bool
}

var errCut = errors.New("connection refused")

func (l *line) Leases(string) coordination.LeaseInterface { return l }

func (l *line) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	if l.cut.Load() {
		return nil, errCut
	}
	return l.server.Get(ctx, name, o)
}

func (l *line) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if l.cut.Load() {
		return nil, errCut
	}
	return l.server.Update(ctx, lease, o)
}

// crew are processes that share the work; it fails the test when two work at once.
type crew struct {
	t       *testing.T
	api     *server
	mu      sync.Mutex
	working string
	terms   []string
	// slow is how long a term takes to end after it was told to.
	slow time.Duration
}

func (c *crew) join(ctx context.Context, name string) (*service, *line, *sync.WaitGroup) {
	way := &line{server: c.api}
	s := &service{o: Options{Holder: name, Namespace: "fleet"}, contact: &contact{}, meter: newMeter()}
	s.term = func(ctx context.Context) error {
		c.mu.Lock()
		if c.working != "" {
			c.t.Errorf("%s works while %s does", name, c.working)
		}
		c.working = name
		c.terms = append(c.terms, name)
		c.mu.Unlock()
		<-ctx.Done()
		<-time.After(c.slow)
		c.mu.Lock()
		c.working = ""
		c.mu.Unlock()
		return nil
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.electBy(ctx, way, "home"); err != nil {
			c.t.Errorf("%s: %v", name, err)
		}
	})
	return s, way, &running
}

func (c *crew) at() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.working
}

func TestLeader_WhoLosesStopsAtOnceAndStandsBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		c := &crew{t: t, api: &server{leases: map[string]*coordinationv1.Lease{}}}
		a, wayOfA, endOfA := c.join(ctx, "a")
		<-time.After(5 * time.Second)
		b, _, endOfB := c.join(ctx, "b")
		<-time.After(10 * leaseDuration)
		if got := c.at(); got != "a" {
			t.Fatalf("%q works", got)
		}
		for name, s := range map[string]*service{"a": a, "b": b} {
			if err := s.ready(); err != nil {
				t.Errorf("%s is not ready: %v", name, err)
			}
		}
		wayOfA.cut.Store(true)
		cut := time.Now()
		for c.at() == "a" {
			<-time.After(100 * time.Millisecond)
		}
		if took := time.Since(cut); took > renewWithin+electionTick+time.Second {
			t.Errorf("a worked on for %s", took)
		}
		<-time.After(2 * leaseDuration)
		if got := c.at(); got != "b" {
			t.Fatalf("%q works", got)
		}
		<-time.After(patience)
		if a.ready() == nil {
			t.Error("a hears nothing and calls itself ready")
		}
		wayOfA.cut.Store(false)
		<-time.After(2 * leaseDuration)
		if err := a.ready(); err != nil || c.at() != "b" {
			t.Errorf("%q works, a says %v", c.at(), err)
		}
		end()
		endOfA.Wait()
		endOfB.Wait()
		if got := strings.Join(c.terms, " "); got != "a b" {
			t.Errorf("terms: %s", got)
		}
	})
}

func TestLeader_ResignsAfterItsLastWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crew{t: t, api: &server{leases: map[string]*coordinationv1.Lease{}}, slow: 3 * leaseDuration}
		first, interrupt := context.WithCancel(t.Context())
		_, _, endOfA := c.join(first, "a")
		<-time.After(5 * time.Second)
		second, end := context.WithCancel(t.Context())
		_, _, endOfB := c.join(second, "b")
		<-time.After(5 * time.Second)
		interrupt()
		endOfA.Wait()
		if got := c.at(); got != "" {
			t.Errorf("%q works already", got)
		}
		<-time.After(3 * electionTick)
		if got := c.at(); got != "b" {
			t.Errorf("%q works: the Lease was not given up", got)
		}
		end()
		endOfB.Wait()
	})
}

func TestLeader_AFailedTermEndsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &server{leases: map[string]*coordinationv1.Lease{}}
		var said []string
		s := &service{contact: &contact{}, meter: newMeter(), o: Options{Holder: "a", Progress: func(u flow.Update) { said = append(said, u.Message) }}}
		s.term = func(context.Context) error { return errCut }
		if err := s.electBy(t.Context(), &line{server: api}, "home"); !errors.Is(err, errCut) {
			t.Errorf("got %v", err)
		}
		if holder := *api.leases["move-hook-post.leader"].Spec.HolderIdentity; holder != "" {
			t.Errorf("%q still holds the Lease", holder)
		}
		if len(said) != 1 || said[0] != "Leading: home/move-hook-post.leader" {
			t.Errorf("said %q", said)
		}
	})
}

func TestLeader_OneLeaseForTheSameWork(t *testing.T) {
	name := func(namespace string, names ...string) string {
		o := Options{Namespace: namespace}
		for _, n := range names {
			o.Names = append(o.Names, types.NamespacedName{Namespace: namespace, Name: n})
		}
		return electionLease(o)
	}
	if name("fleet", "a", "b") != name("fleet", "b", "a") {
		t.Error("the order of the names matters")
	}
	seen := map[string]bool{leaseName(clusterID("fleet", "post")): true}
	for _, lease := range []string{name(""), name("fleet"), name("other"), name("fleet", "a"), name("fleet", "a", "b")} {
		if seen[lease] {
			t.Errorf("%s is the Lease of other work too", lease)
		}
		seen[lease] = true
	}
}
