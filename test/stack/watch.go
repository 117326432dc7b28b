package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watched are the kinds that Watch watches unless told otherwise.
var Watched = []schema.GroupVersionKind{
	Clusters, Machines, MachineSets, MachineDeployments, KubeadmControlPlanes, KubeadmConfigs, DevMachines, Secrets,
}

// Those kinds.
var (
	Clusters             = clusterv1.GroupVersion.WithKind("Cluster")
	Machines             = clusterv1.GroupVersion.WithKind("Machine")
	MachineSets          = clusterv1.GroupVersion.WithKind("MachineSet")
	MachineDeployments   = clusterv1.GroupVersion.WithKind("MachineDeployment")
	KubeadmControlPlanes = controlplanev1.GroupVersion.WithKind("KubeadmControlPlane")
	KubeadmConfigs       = bootstrapv1.GroupVersion.WithKind("KubeadmConfig")
	DevMachines          = infrav1.GroupVersion.WithKind("DevMachine")
	Secrets              = corev1.SchemeGroupVersion.WithKind("Secret")
)

// EventType says what happened to an object.
type EventType string

// What a Watcher tells of. Changes other than a pause are not recorded.
const (
	Created  EventType = "created"
	Deleted  EventType = "deleted"
	Paused   EventType = "paused"   // a Cluster: spec.paused or the annotation, also from the start
	Unpaused EventType = "unpaused" // a Cluster that exists and is not paused, also from the start
)

// Event is one thing that a Watcher saw.
type Event struct {
	Time time.Time
	Type EventType
	Kind string
	Key  client.ObjectKey
	UID  types.UID
	// Managers are those that have written the object's fields; of a created
	// one, the first is who created it.
	Managers []string
	// ForMove: clusterctl had marked the object before it deleted it.
	ForMove bool
}

// String is "created Machine fleet/c1-cp-abc (by manager)".
func (e Event) String() string {
	text := fmt.Sprintf("%s %s %s %s", e.Time.Format("15:04:05.000"), e.Type, e.Kind, e.Key)
	if e.Type == Created && len(e.Managers) > 0 {
		text += " by " + e.Managers[0]
	}
	return text
}

// Watcher records what is created and deleted in a management cluster.
type Watcher struct {
	stop func()
	done sync.WaitGroup

	mu      sync.Mutex
	events  []Event
	err     error
	paused  map[types.UID]bool // of Clusters that are there
	changed chan struct{}      // closed at the next event
}

// Watch records from now on; what is there already is not an event, except
// that each Cluster there is Paused or Unpaused. Without kinds it watches
// those above. The server keeps every event until it is read, so nothing is
// missed while the network or the API server is away for less than minutes.
func Watch(ctx context.Context, m API, kinds ...schema.GroupVersionKind) (*Watcher, error) {
	if len(kinds) == 0 {
		kinds = Watched
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &Watcher{stop: cancel, paused: map[types.UID]bool{}, changed: make(chan struct{})}
	for _, kind := range kinds {
		if err := w.watch(ctx, m.Client(), kind); err != nil {
			w.Stop()
			return nil, fmt.Errorf("watching %s on %s: %w", kind.Kind, m.Name(), err)
		}
	}
	return w, nil
}

func (w *Watcher) watch(ctx context.Context, c client.WithWatch, kind schema.GroupVersionKind) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		w.see(watch.Modified, &list.Items[i])
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			fresh := &unstructured.UnstructuredList{}
			fresh.SetGroupVersionKind(list.GroupVersionKind())
			return c.Watch(ctx, fresh, &client.ListOptions{Raw: &o})
		},
	})
	if err != nil {
		return err
	}
	w.done.Go(func() {
		for event := range watcher.ResultChan() {
			if object, ok := event.Object.(*unstructured.Unstructured); ok {
				w.see(event.Type, object)
			} else if ctx.Err() == nil {
				w.fail(fmt.Errorf("watching %s: %v", kind.Kind, event.Object))
			}
		}
		if ctx.Err() == nil {
			w.fail(fmt.Errorf("the watch of %s ended by itself", kind.Kind))
		}
	})
	return nil
}

func (w *Watcher) see(change watch.EventType, object *unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch change {
	case watch.Added:
		w.record(Created, object)
	case watch.Modified, watch.Bookmark, watch.Error: // errors are no objects
	case watch.Deleted:
		w.record(Deleted, object)
		delete(w.paused, object.GetUID())
		return
	}
	if object.GetKind() != Clusters.Kind {
		return
	}
	paused, seen := isPaused(object), false
	if before, ok := w.paused[object.GetUID()]; ok {
		seen = before == paused
	}
	w.paused[object.GetUID()] = paused
	switch {
	case seen:
	case paused:
		w.record(Paused, object)
	default:
		w.record(Unpaused, object)
	}
}

func (w *Watcher) record(t EventType, object *unstructured.Unstructured) {
	event := Event{Time: time.Now(), Type: t, Kind: object.GetKind(), Key: client.ObjectKeyFromObject(object), UID: object.GetUID()}
	_, event.ForMove = object.GetAnnotations()[clusterctlv1.DeleteForMoveAnnotation]
	for _, fields := range object.GetManagedFields() {
		event.Managers = append(event.Managers, fields.Manager)
	}
	w.events = append(w.events, event)
	close(w.changed)
	w.changed = make(chan struct{})
}

func isPaused(cluster *unstructured.Unstructured) bool {
	spec, _, _ := unstructured.NestedBool(cluster.Object, "spec", "paused")
	_, annotated := cluster.GetAnnotations()[clusterv1.PausedAnnotation]
	return spec || annotated
}

// Stop ends the recording. What was recorded stays readable.
func (w *Watcher) Stop() {
	w.stop()
	w.done.Wait()
}

// Err says why the recording may be incomplete, and so proves nothing; nil if it is not.
func (w *Watcher) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *Watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = errors.Join(w.err, err)
}

// Events are those seen so far, of the given kinds (none: all), in order.
func (w *Watcher) Events(kinds ...schema.GroupVersionKind) []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	var events []Event
	for _, event := range w.events {
		if len(kinds) == 0 || slices.ContainsFunc(kinds, func(k schema.GroupVersionKind) bool { return k.Kind == event.Kind }) {
			events = append(events, event)
		}
	}
	return events
}

// WaitFor waits until an event satisfies the condition, and returns the first.
func (w *Watcher) WaitFor(ctx context.Context, condition func(Event) bool) (Event, error) {
	for next := 0; ; {
		w.mu.Lock()
		events, changed := w.events, w.changed
		w.mu.Unlock()
		for ; next < len(events); next++ {
			if condition(events[next]) {
				return events[next], nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Event{}, fmt.Errorf("no such event among %d: %w", len(events), ctx.Err())
		}
	}
}

// BothUnpaused names the Clusters that were unpaused on both sides at once for
// longer than the tolerance, which is for the time that events take to arrive.
func BothUnpaused(source, target *Watcher, tolerance time.Duration) []string {
	var both []string
	now := time.Now()
	other := unpausedSpans(target.Events(Clusters), now)
	for key, spans := range unpausedSpans(source.Events(Clusters), now) {
		for _, a := range spans {
			for _, b := range other[key] {
				if from, to := later(a.from, b.from), earlier(a.to, b.to); to.Sub(from) > tolerance {
					both = append(both, fmt.Sprintf("%s: from %s for %s", key, from.Format("15:04:05.000"), to.Sub(from).Round(time.Millisecond)))
				}
			}
		}
	}
	slices.Sort(both)
	return both
}

type span struct{ from, to time.Time }

func unpausedSpans(events []Event, now time.Time) map[client.ObjectKey][]span {
	spans, since := map[client.ObjectKey][]span{}, map[client.ObjectKey]time.Time{}
	for _, event := range events {
		from, open := since[event.Key]
		switch {
		case event.Type == Unpaused:
			since[event.Key] = event.Time
		case open && (event.Type == Paused || event.Type == Deleted):
			spans[event.Key] = append(spans[event.Key], span{from, event.Time})
			delete(since, event.Key)
		}
	}
	for key, from := range since {
		spans[key] = append(spans[key], span{from, now})
	}
	return spans
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
