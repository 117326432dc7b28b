package watch

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/move-hook/move-hook/pkg/graph"
)

const (
	leasePrefix = "move-hook-"
	// leaseDuration is how long after a kill the next post has to wait.
	leaseDuration = 15 * time.Second
	leaseRenewal  = leaseDuration / 3
	// leaseTries is how often a Lease is asked for that others take and give up meanwhile.
	leaseTries = 5
)

// Identity names this run in Leases. It differs from run to run: pods of one Job
// may share host name and process number.
func Identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("move-hook@%s/%d-%s", host, os.Getpid(), rand.Text()[:6])
}

// heldError: another post works on the Cluster.
type heldError struct {
	cluster graph.ID
	holder  string
	until   time.Time
}

func (e *heldError) Error() string {
	return fmt.Sprintf("%s is being adopted by %s (Lease %s/%s, good until %s): waiting for it to end",
		e.cluster, e.holder, e.cluster.Namespace, leaseName(e.cluster), e.until.UTC().Format(time.TimeOnly))
}

// leases keeps two runs of post off the same Cluster. A Lease is taken when the
// first write is due and not before, renewed while the run goes on, and deleted
// at its end. It is a courtesy: what makes two writers safe is that every write
// carries the UID and resourceVersion that its decision saw.
type leases struct {
	client   coordination.LeasesGetter
	identity string

	mu   sync.Mutex
	mine map[graph.ID]*coordinationv1.Lease
}

func newLeases(client coordination.LeasesGetter, identity string) *leases {
	return &leases{client: client, identity: identity, mine: map[graph.ID]*coordinationv1.Lease{}}
}

func leaseName(cluster graph.ID) string { return leasePrefix + cluster.Name }

// take returns nil once the Lease is ours, and a *heldError while it is another's.
func (l *leases) take(ctx context.Context, cluster graph.ID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if have := l.mine[cluster]; have != nil && time.Now().Before(expiry(have)) {
		return nil
	}
	for tries := 1; ; tries++ {
		got, err := l.acquire(ctx, cluster)
		switch {
		case err == nil:
			l.mine[cluster] = got
			return nil
		case tries < leaseTries && (apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err)):
			// Another run was faster: the next look says who.
		default:
			return err
		}
	}
}

func (l *leases) acquire(ctx context.Context, cluster graph.ID) (*coordinationv1.Lease, error) {
	api := l.client.Leases(cluster.Namespace)
	now := metav1.NewMicroTime(time.Now())
	there, err := api.Get(ctx, leaseName(cluster), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		fresh := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName(cluster), Namespace: cluster.Namespace}}
		l.fill(fresh, now)
		fresh.Spec.AcquireTime = &now
		made, err := api.Create(ctx, fresh, metav1.CreateOptions{})
		return made, l.wrap(cluster, "creating", err)
	}
	if err != nil {
		return nil, l.wrap(cluster, "reading", err)
	}
	holder := ptr.Deref(there.Spec.HolderIdentity, "")
	if holder != l.identity && holder != "" && now.Before(ptr.To(metav1.NewMicroTime(expiry(there)))) {
		return nil, &heldError{cluster: cluster, holder: holder, until: expiry(there)}
	}
	if holder != l.identity {
		there.Spec.AcquireTime = &now
		there.Spec.LeaseTransitions = ptr.To(ptr.Deref(there.Spec.LeaseTransitions, 0) + 1)
	}
	l.fill(there, now)
	taken, err := api.Update(ctx, there, metav1.UpdateOptions{})
	return taken, l.wrap(cluster, "taking", err)
}

func (l *leases) fill(lease *coordinationv1.Lease, now metav1.MicroTime) {
	lease.Spec.HolderIdentity = &l.identity
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(leaseDuration / time.Second))
	lease.Spec.RenewTime = &now
}

func (l *leases) wrap(cluster graph.ID, act string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s Lease %s/%s: %w", act, cluster.Namespace, leaseName(cluster), err)
}

func expiry(lease *coordinationv1.Lease) time.Time {
	if lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	seconds := cmp.Or(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0), int32(leaseDuration/time.Second))
	return lease.Spec.RenewTime.Add(time.Duration(seconds) * time.Second)
}

// run renews what is held until ctx ends. A Lease that cannot be renewed is given
// up: the next write takes it anew or says who has it.
func (l *leases) run(ctx context.Context) {
	tick := time.NewTicker(leaseRenewal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.renew(ctx)
		}
	}
}

func (l *leases) renew(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for cluster, lease := range l.mine {
		next := lease.DeepCopy()
		l.fill(next, metav1.NewMicroTime(time.Now()))
		renewed, err := l.client.Leases(cluster.Namespace).Update(ctx, next, metav1.UpdateOptions{})
		switch {
		case err == nil:
			l.mine[cluster] = renewed
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
			// Another's, or our own renewal whose answer was lost.
			if there := l.stillOurs(ctx, cluster); there != nil {
				l.mine[cluster] = there
			} else {
				delete(l.mine, cluster)
			}
		}
	}
}

// stillOurs reads a Lease and returns it where it is ours.
func (l *leases) stillOurs(ctx context.Context, cluster graph.ID) *coordinationv1.Lease {
	there, err := l.client.Leases(cluster.Namespace).Get(ctx, leaseName(cluster), metav1.GetOptions{})
	if err != nil || ptr.Deref(there.Spec.HolderIdentity, "") != l.identity {
		return nil
	}
	return there
}

// release deletes a Lease that is ours; nothing happens where it is not.
func (l *leases) release(ctx context.Context, cluster graph.ID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	lease := l.mine[cluster]
	if lease == nil {
		return nil
	}
	delete(l.mine, cluster)
	err := l.delete(ctx, cluster, lease)
	if apierrors.IsConflict(err) {
		if lease = l.stillOurs(ctx, cluster); lease != nil {
			err = l.delete(ctx, cluster, lease)
		}
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return l.wrap(cluster, "releasing", err)
}

func (l *leases) delete(ctx context.Context, cluster graph.ID, lease *coordinationv1.Lease) error {
	return l.client.Leases(cluster.Namespace).Delete(ctx, lease.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
	})
}

// releaseAll deletes every Lease that is ours and returns the last error: what
// stays behind expires by itself.
func (l *leases) releaseAll(ctx context.Context) error {
	l.mu.Lock()
	held := make([]graph.ID, 0, len(l.mine))
	for cluster := range l.mine {
		held = append(held, cluster)
	}
	l.mu.Unlock()
	var last error
	for _, cluster := range held {
		if err := l.release(ctx, cluster); err != nil {
			last = err
		}
	}
	return last
}
