package watch

import (
	"context"
	"errors"
	"fmt"
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

var errLockLost = errors.New("another run has taken the Lease of the namespace: nothing is written any more")

// HeldError says who pivots the namespace already.
type HeldError struct {
	Namespace, Holder string
}

// Error names the holder and its Lease.
func (e *HeldError) Error() string {
	return fmt.Sprintf("namespace %s is being pivoted by %s (Lease %s/%s%s): run the command again when that has ended",
		e.Namespace, e.Holder, e.Namespace, leasePrefix, pivotLease)
}

// Lock takes the Lease of a namespace and keeps it until release is called or ctx
// ends; the context that it returns also ends when the Lease is lost. A holder that
// was killed is waited out, 15 seconds at most; one that lives is a *HeldError.
func Lock(ctx context.Context, client coordination.LeasesGetter, namespace string, progress flow.Progress) (locked context.Context, release func(), err error) {
	l := newLeases(client, Identity())
	key := lockOf(namespace)
	if err := l.outwait(ctx, key, progress); err != nil {
		return nil, nil, err
	}
	locked, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.keep(locked, key, cancel)
	}()
	return locked, func() {
		cancel(nil)
		<-done
		end, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer stop()
		// What cannot be released expires by itself.
		_ = l.release(end, key)
	}, nil
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
			progress.Say(flow.Update{Time: time.Now(), Message: fmt.Sprintf("%s holds the Lease of namespace %s: waiting until it is seen to live or the Lease expires, at most %s",
				held.holder, key.Namespace, leaseDuration)})
		case held.holder != first.holder || held.until.After(first.until):
			return &HeldError{Namespace: key.Namespace, Holder: held.holder}
		}
		timer := time.NewTimer(lockPoll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// keep renews the Lease, and cancels where it is another's now or has expired.
func (l *leases) keep(ctx context.Context, key graph.ID, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(leaseRenewal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l.renew(ctx)
		l.mu.Lock()
		lease := l.mine[key]
		l.mu.Unlock()
		if ctx.Err() == nil && (lease == nil || time.Now().After(expiry(lease))) {
			cancel(errLockLost)
			return
		}
	}
}
