package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/graph"
)

// pivotLease names the Lease of whoever pivots a namespace. The dot keeps it apart
// from the Lease of a Cluster, whose name has none.
const pivotLease = "pivot.lock"

// lockPoll is how often is looked whether the holder of a Lease still lives.
const lockPoll = time.Second

var errLockLost = errors.New("another run has taken the Lease: nothing is written any more")

// HeldError says who is at work already.
type HeldError struct {
	Holder string
	key    graph.ID
}

// Error names the holder and its Lease.
func (e *HeldError) Error() string {
	what := "namespace " + e.key.Namespace + " is being pivoted"
	if e.key.Name != pivotLease {
		what = e.key.String() + " is being adopted"
	}
	return fmt.Sprintf("%s by %s (Lease %s/%s): run the command again when that has ended", what, e.Holder, e.key.Namespace, leaseName(e.key))
}

// Lock takes the Lease of a namespace and keeps it until release is called or ctx
// ends; the context that it returns also ends when the Lease is lost. A holder that
// was killed is waited out, 15 seconds at most; one that lives is a *HeldError.
func Lock(ctx context.Context, client coordination.LeasesGetter, namespace string, progress flow.Progress) (locked context.Context, release func(), err error) {
	return lock(ctx, client, []graph.ID{lockOf(namespace)}, progress)
}

// LockClusters does the same with the Leases of Clusters: no post writes to them
// meanwhile, wherever it runs.
func LockClusters(ctx context.Context, client coordination.LeasesGetter, clusters []graph.ID, progress flow.Progress) (locked context.Context, release func(), err error) {
	return lock(ctx, client, clusters, progress)
}

func lock(ctx context.Context, client coordination.LeasesGetter, keys []graph.ID, progress flow.Progress) (locked context.Context, release func(), err error) {
	l := newLeases(client, Identity())
	locked, cancel := context.WithCancelCause(ctx)
	var background sync.WaitGroup
	release = func() {
		cancel(nil)
		background.Wait()
		end, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer stop()
		// What cannot be released expires by itself.
		_ = l.releaseAll(end)
	}
	background.Go(func() { l.run(locked) })
	for _, key := range keys {
		if err := l.outwait(ctx, key, progress); err != nil {
			release()
			return nil, nil, err
		}
	}
	background.Go(func() { l.keep(locked, keys, cancel) })
	return locked, release, nil
}

func lockOf(namespace string) graph.ID {
	return graph.ID{Namespace: namespace, Name: pivotLease}
}

// outwait takes the Lease, and waits for that of a holder that does not renew it.
func (l *leases) outwait(ctx context.Context, key graph.ID, progress flow.Progress) error {
	var first *heldError
	for {
		err := l.take(ctx, key)
		var held *heldError
		if !errors.As(err, &held) {
			return err
		}
		switch {
		case first == nil:
			first = held
			progress.Say(flow.Update{Time: time.Now(), Message: fmt.Sprintf("%s holds the Lease %s/%s: waiting until it is seen to live or the Lease expires, at most %s",
				held.holder, key.Namespace, leaseName(key), leaseDuration)})
		case held.holder != first.holder || held.until.After(first.until):
			return &HeldError{Holder: held.holder, key: key}
		}
		if !flow.Pause(ctx, lockPoll) {
			return context.Cause(ctx)
		}
	}
}

// keep cancels where a Lease is another's now or has expired.
func (l *leases) keep(ctx context.Context, keys []graph.ID, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if ctx.Err() == nil && !l.have(keys) {
			cancel(errLockLost)
			return
		}
	}
}

func (l *leases) have(keys []graph.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		if lease := l.mine[key]; lease == nil || time.Now().After(expiry(lease)) {
			return false
		}
	}
	return true
}
