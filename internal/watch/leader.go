package watch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	// renewWithin is how long a leader that cannot renew its Lease still writes;
	// leaseDuration is how long others wait.
	renewWithin  = 10 * time.Second
	electionTick = 2 * time.Second
)

// electionLease names the Lease of those who would do the same work. The dot keeps
// it apart from the Lease of a Cluster, whose name has none.
func electionLease(o Options) string {
	name := leasePrefix + "post.leader"
	if o.Namespace != "" {
		name += "." + o.Namespace
	}
	if len(o.Names) > 0 {
		var names []string
		for _, n := range o.Names {
			names = append(names, n.String())
		}
		slices.Sort(names)
		name += fmt.Sprintf(".%x", sha256.Sum256(fmt.Append(nil, names)))[:9]
	}
	if o.Shard.Count > 1 {
		name += fmt.Sprintf(".%d-of-%d", o.Shard.Index, o.Shard.Count)
	}
	return name
}

// elect lets this process work in terms: while it is the leader and ctx has not
// ended. It returns when ctx ends or a term fails.
func (s *service) elect(ctx context.Context) error {
	c := s.o.Cluster
	return s.electBy(ctx, c.Clientset().CoordinationV1(), c.HomeNamespace())
}

func (s *service) electBy(ctx context.Context, api coordination.LeasesGetter, namespace string) error {
	lock := &heardLock{contact: s.contact, Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: electionLease(s.o)},
		Client:     api,
		LockConfig: resourcelock.ResourceLockConfig{Identity: s.o.Holder},
	}}
	for ctx.Err() == nil {
		if err := s.candidacy(ctx, lock); err != nil {
			return err
		}
	}
	return nil
}

// candidacy is one wait for leadership and the term that follows. The Lease is
// renewed until the term has ended, also after ctx has; only then is it given up.
func (s *service) candidacy(ctx context.Context, lock resourcelock.Interface) error {
	electing, resign := context.WithCancel(context.WithoutCancel(ctx))
	defer resign()
	var (
		mu      sync.Mutex
		leading bool // a term is under way, or there will be none any more
		failure error
		term    sync.WaitGroup
	)
	unhook := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if !leading {
			leading = true
			resign()
		}
	})
	defer unhook()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewWithin, RetryPeriod: electionTick, Name: lock.Describe(),
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(lead context.Context) {
				mu.Lock()
				if leading || lead.Err() != nil {
					mu.Unlock()
					return
				}
				leading = true
				term.Add(1)
				mu.Unlock()
				defer term.Done()
				// It ends with what ends first: the leadership, or ctx.
				work, stop := context.WithCancel(lead)
				defer context.AfterFunc(ctx, stop)()
				defer stop()
				s.say("Leading: " + lock.Describe())
				err := s.term(work)
				mu.Lock()
				failure = err
				mu.Unlock()
				resign()
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				if identity != "" && identity != lock.Identity() {
					s.say("Standing by: " + identity + " leads")
				}
			},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(electing)
	lost := electing.Err() == nil
	mu.Lock()
	leading = true // a term that has not begun by now never does
	mu.Unlock()
	term.Wait()
	if lost {
		s.say("Leadership lost: nothing is written any more, standing by")
		return failure
	}
	s.resigned(ctx, lock)
	return failure
}

// resigned gives the Lease up, so that the next need not wait for its end. It is
// called when nothing is written any more; client-go's own release would come
// before the term is told that it lost.
func (s *service) resigned(ctx context.Context, lock resourcelock.Interface) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	there, _, err := lock.Get(ctx)
	if err != nil || there.HolderIdentity != lock.Identity() {
		return
	}
	now := metav1.Now()
	// What cannot be given up expires by itself.
	_ = lock.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions: there.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
	})
}

// heardLock tells the contact what the election hears from the API server.
type heardLock struct {
	resourcelock.Interface
	contact *contact
}

func (l *heardLock) heard(ctx context.Context, err error) error {
	if ctx.Err() == nil || err == nil {
		l.contact.report(err)
	}
	return err
}

// Get reads the Lease.
func (l *heardLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	return record, raw, l.heard(ctx, err)
}

// Create makes the Lease.
func (l *heardLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.heard(ctx, l.Interface.Create(ctx, r))
}

// Update takes, renews or gives up the Lease.
func (l *heardLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.heard(ctx, l.Interface.Update(ctx, r))
}
