package stack_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/stack"
)

// TestBare is everything that needs no controllers, on two management clusters
// that run side by side.
func TestBare(t *testing.T) {
	source, target, stop, err := stack.Pair(t.Context(), stack.Options{Bare: true, GarbageCollector: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	stack.LogsOnFailure(t, source, target)

	t.Run("side by side", func(t *testing.T) {
		key := stack.Must(stack.Cluster("here").Create(t.Context(), source))(t)
		if err := target.Client().Get(t.Context(), key, &clusterv1.Cluster{}); !apierrors.IsNotFound(err) {
			t.Errorf("the other management cluster answers: %v", err)
		}
	})
	t.Run("every builder makes what the API server accepts", func(t *testing.T) {
		everything := stack.Cluster("all").InNamespace("all").ControlPlane(3).Workers("md-0", 2).Workers("md-1", 1).
			OverlappingSelectors().MachinePool("mp-0", 2).HealthCheck().UserCertificates().ResourceSet("crs").Movable("extra").Paused()
		stack.Must(everything.Create(t.Context(), target))(t)
		stack.Must(stack.Cluster("alone").InNamespace("all").StandAloneControlPlane(3).Create(t.Context(), target))(t)
		if err := target.Create(t.Context(), stack.Class("classes", "quick")...); err != nil {
			t.Fatal(err)
		}
		stack.Must(stack.Cluster("topology").InNamespace("all").OfClass("classes", "quick").ControlPlane(1).Create(t.Context(), target))(t)
	})
	t.Run("garbage collector", func(t *testing.T) { garbageCollectorDeletes(t, source) })
	t.Run("synthetic", func(t *testing.T) { syntheticIsWhole(t, source) })
	t.Run("watch", func(t *testing.T) { watchTells(t, source, target) })
	t.Run("proxy counts", func(t *testing.T) { proxyCounts(t, source) })
	t.Run("proxy cuts", func(t *testing.T) { proxyCuts(t, source) })
	t.Run("proxy cuts at a verb", func(t *testing.T) { proxyCutsAtVerb(t, source) })
	t.Run("API server restarts", func(t *testing.T) {
		target.KillAPIServer()
		if err := target.RestartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := target.Client().Get(t.Context(), client.ObjectKey{Namespace: "all", Name: "all"}, &clusterv1.Cluster{}); err != nil {
			t.Errorf("data did not survive: %v", err)
		}
	})
}

func configMap(name string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: owners}}
}

func garbageCollectorDeletes(t *testing.T, m *stack.Management) {
	dangling := configMap("dangling", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "gone"})
	if err := m.Client().Create(t.Context(), dangling); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(m.Client().Get(ctx, client.ObjectKeyFromObject(dangling), &corev1.ConfigMap{})), nil
	})
	if err != nil {
		t.Error("an object without its owner is still there")
	}
}

func syntheticIsWhole(t *testing.T, m *stack.Management) {
	const clusters = 10
	start := time.Now()
	made, err := stack.Synthetic(t.Context(), m, clusters)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d objects in %s", made, time.Since(start).Round(time.Millisecond))
	if made != clusters*stack.ObjectsPerSyntheticCluster {
		t.Errorf("made %d objects", made)
	}
	graph := stack.Must(stack.OwnerGraph(t.Context(), m, stack.SyntheticNamespace))(t)
	if len(graph) != made {
		t.Errorf("made %d objects, found %d", made, len(graph))
	}
	for object, owners := range graph {
		if len(owners) == 0 && !strings.HasPrefix(object, "Cluster.") {
			t.Errorf("%s has no owner", object)
		}
		for _, owner := range owners {
			if strings.HasSuffix(owner, "missing") || strings.HasSuffix(owner, "stale") {
				t.Errorf("%s is owned by %s", object, owner)
			}
		}
	}
}

func watchTells(t *testing.T, source, target *stack.Management) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	there := stack.Must(stack.Watch(ctx, source))(t)
	defer there.Stop()
	here := stack.Must(stack.Watch(ctx, target))(t)
	defer here.Stop()

	builder := stack.Cluster("watched")
	key := stack.Must(builder.Create(ctx, source))(t)
	stack.Must(builder.Create(ctx, target))(t)
	for _, w := range []*stack.Watcher{there, here} {
		stack.Must(w.WaitFor(ctx, func(e stack.Event) bool { return e.Type == stack.Unpaused && e.Key == key }))(t)
	}
	cluster := &clusterv1.Cluster{}
	if err := source.Client().Get(ctx, key, cluster); err != nil {
		t.Fatal(err)
	}
	if err := source.Client().Delete(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	deleted := stack.Must(there.WaitFor(ctx, func(e stack.Event) bool { return e.Type == stack.Deleted && e.Key == key }))(t)
	if deleted.UID != cluster.UID {
		t.Errorf("saw %s with UID %s, want %s", deleted, deleted.UID, cluster.UID)
	}
	if both := stack.BothUnpaused(there, here, 0); len(both) != 1 {
		t.Errorf("both sides were unpaused: %v", both)
	}
	if events := there.Events(stack.Machines); len(events) != 0 {
		t.Errorf("no Machine was touched: %v", events)
	}
}

func proxyCounts(t *testing.T, m *stack.Management) {
	proxy, through := throughProxy(t, m)
	object := configMap("counted")
	for _, do := range []func() error{
		func() error { return through.Create(t.Context(), object.DeepCopy(), client.DryRunAll) },
		func() error { return through.Create(t.Context(), object) },
		func() error { return through.Get(t.Context(), client.ObjectKeyFromObject(object), object) },
		func() error { return through.Delete(t.Context(), object) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	var seen []string
	for _, r := range proxy.Mutating() {
		seen = append(seen, r.String())
	}
	if got, want := strings.Join(seen, ", "), "create configmaps default/counted, delete configmaps default/counted"; got != want {
		t.Errorf("writes: got %q, want %q", got, want)
	}
	if n := len(proxy.Requests()); n != 4 {
		t.Errorf("got %d requests: %v", n, proxy.Counts())
	}
}

func proxyCuts(t *testing.T, m *stack.Management) {
	for name, when := range map[string]stack.Moment{"before": stack.Before, "after": stack.After} {
		proxy, through := throughProxy(t, m)
		cut := proxy.CutAt(2, when)
		if err := through.Create(t.Context(), configMap(name+"-1")); err != nil {
			t.Fatal(err)
		}
		second := configMap(name + "-2")
		if err := through.Create(t.Context(), second.DeepCopy()); err == nil {
			t.Errorf("cut %s the write, and it was answered", name)
		}
		select {
		case <-cut:
		default:
			t.Errorf("cut %s: the channel is open", name)
		}
		key := client.ObjectKeyFromObject(second)
		if err := through.Get(t.Context(), key, second); err == nil {
			t.Errorf("cut %s: a read went through afterwards", name)
		}
		err := m.Client().Get(t.Context(), key, second)
		if tookEffect := err == nil; tookEffect != (when == stack.After) || (err != nil && !apierrors.IsNotFound(err)) {
			t.Errorf("cut %s the write: took effect: %t, %v", name, tookEffect, err)
		}
		if err := proxy.Heal(); err != nil {
			t.Fatal(err)
		}
		if err := through.Get(t.Context(), key, second); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("healed, but %v", err)
		}
	}
}

func proxyCutsAtVerb(t *testing.T, m *stack.Management) {
	proxy, through := throughProxy(t, m)
	object := configMap("verb")
	cut := proxy.CutAtVerb("delete", 1, stack.After)
	if err := through.Create(t.Context(), object); err != nil {
		t.Fatalf("a create counted as a delete: %v", err)
	}
	if at := proxy.WasCutAt().String(); at != "" {
		t.Errorf("it was cut at %q and nothing was deleted", at)
	}
	if err := through.Delete(t.Context(), object); err == nil {
		t.Error("the first delete was answered")
	}
	<-cut
	if at := proxy.WasCutAt().String(); at != "delete configmaps default/verb" {
		t.Errorf("it was cut at %q", at)
	}
}

func throughProxy(t *testing.T, m *stack.Management) (*stack.APIProxy, client.Client) {
	t.Helper()
	proxy := stack.Must(stack.Proxy(m))(t)
	t.Cleanup(proxy.Close)
	through, err := client.New(proxy.RESTConfig(), client.Options{Scheme: m.Client().Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	// The first call asks for discovery; that is not what is counted or cut.
	if err := through.List(t.Context(), &corev1.ConfigMapList{}); err != nil {
		t.Fatal(err)
	}
	proxy.Forget()
	return proxy, through
}
