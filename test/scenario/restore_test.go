package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
	"sigs.k8s.io/cluster-api/test/framework"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/record"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

// backup is what the tests of this file restore on the target, again and again:
// a Cluster that was prepared by `pre` and then paused on the source, so that its
// machines have one management cluster at a time.
type backup struct {
	key     client.ObjectKey
	record  string // file
	objects scenario.Backup
	owners  map[string][]string // on the source
}

var theBackup = struct {
	once sync.Once
	backup
}{}

func prepared(t *testing.T) backup {
	t.Helper()
	key := ready(t, "restore")
	theBackup.once.Do(func() {
		file := filepath.Join(world.dir, "record.json")
		hook(t, 0, "pre", "--kubeconfig", world.source.Kubeconfig(), "-n", key.Namespace, "--record", file)
		theBackup.backup = backup{
			key:     key,
			record:  file,
			objects: stack.Must(scenario.TakeBackup(t.Context(), world.source, key.Namespace))(t),
			owners:  stack.Must(stack.OwnerGraph(t.Context(), world.source, key.Namespace))(t),
		}
		pauseSource(t, key, true)
	})
	if len(theBackup.objects) == 0 {
		t.Fatal("the backup could not be taken: see the test that tried first")
	}
	return theBackup.backup
}

func pauseSource(t *testing.T, key client.ObjectKey, paused bool) {
	t.Helper()
	merge(t, world.source, "Cluster/"+key.Name, key.Namespace, fmt.Sprintf(`{"spec":{"paused":%t}}`, paused))
}

// post are the arguments that adopt the Cluster of the backup.
func (b backup) post(kubeconfig string, more ...string) []string {
	return append([]string{"post", b.key.Name, "-n", b.key.Namespace, "--to-kubeconfig", kubeconfig, "--watch-after", "3s", "--timeout", "3m"}, more...)
}

func (b backup) verify(more ...string) []string {
	return append([]string{"verify", "-n", b.key.Namespace, "--to-kubeconfig", world.target.Kubeconfig()}, more...)
}

// clear takes the restored copy off the target.
func (b backup) clear(t *testing.T) {
	t.Helper()
	if err := scenario.Remove(t.Context(), world.target, b.key.Namespace); err != nil {
		t.Fatal(err)
	}
}

// adopted compares the target with the source: the same owners, exactly once;
// upstream agrees; and so does verify.
func (b backup) adopted(t *testing.T) {
	t.Helper()
	owners := stack.Must(stack.OwnerGraph(t.Context(), world.target, b.key.Namespace))(t)
	if diff := cmp.Diff(b.owners, owners); diff != "" {
		t.Errorf("owners on the source and on the target (-source +target):\n%s", diff)
	}
	// Upstream's assertions know nothing of control planes without a control plane object.
	if b.has("KubeadmControlPlane") {
		if err := upstreamAgrees(t.Context(), world.target, b.key.Namespace, b.isOfClass()); err != nil {
			t.Errorf("upstream expects other owners:\n%v", err)
		}
	}
	hook(t, 0, b.verify()...)
	if b.record != "" {
		hook(t, 0, b.verify("--record", b.record)...)
	}
}

func (b backup) has(kind string) bool {
	return slices.ContainsFunc(b.objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
}

func (b backup) isOfClass() bool {
	return slices.ContainsFunc(b.objects, func(o *unstructured.Unstructured) bool {
		_, ok, _ := unstructured.NestedMap(o.Object, "spec", "topology")
		return ok && o.GetKind() == "Cluster"
	})
}

// upstreamAgrees asks the assertions of Cluster API's own end-to-end tests, as
// framework.AssertOwnerReferences does, but once and without Gomega.
func upstreamAgrees(ctx context.Context, m *stack.Management, namespace string, topology bool) error {
	assertions := map[string][]func(types.NamespacedName, []metav1.OwnerReference) error{}
	for _, ofProvider := range []map[string]func(types.NamespacedName, []metav1.OwnerReference) error{
		framework.CoreOwnerReferenceAssertion, framework.ExpOwnerReferenceAssertions, framework.KubernetesReferenceAssertions,
		framework.KubeadmControlPlaneOwnerReferenceAssertions(topology), framework.KubeadmBootstrapOwnerReferenceAssertions,
		framework.DevInfraOwnerReferenceAssertions(topology),
	} {
		for kind, assertion := range ofProvider {
			assertions[kind] = append(assertions[kind], assertion)
		}
	}
	// Nor do they know the record, Secrets that are their user's, or the lock for kubeadm init.
	known := func(o unstructured.Unstructured) bool {
		secretType, _, _ := unstructured.NestedString(o.Object, "type")
		return o.GetName() != record.Name(theBackup.key.Name, 0) && !strings.HasSuffix(o.GetName(), "-lock") &&
			(o.GetKind() != "Secret" || secretType == graph.ClusterSecretType)
	}
	owners, err := cluster.GetOwnerGraph(ctx, namespace, m.Kubeconfig(), known)
	if err != nil {
		return err
	}
	if len(owners) == 0 {
		return errors.New("clusterctl sees no object")
	}
	for _, node := range owners {
		if len(assertions[node.Object.Kind]) == 0 {
			err = errors.Join(err, fmt.Errorf("upstream knows nothing of kind %s", node.Object.Kind))
		}
		for _, assertion := range assertions[node.Object.Kind] {
			if wrong := assertion(types.NamespacedName{Namespace: node.Object.Namespace, Name: node.Object.Name}, node.Owners); wrong != nil {
				err = errors.Join(err, fmt.Errorf("%s %s: %w", node.Object.Kind, node.Object.Name, wrong))
			}
		}
	}
	return err
}

// TestP1P2P4_AnyOrder restores in random orders, with pauses in which controllers
// and post can act, and kills post at a random write in every second order.
func TestP1P2P4_AnyOrder(t *testing.T) {
	seeds := []uint64{1, 2, 3}
	if soak() {
		for seed := uint64(4); seed <= 30; seed++ {
			seeds = append(seeds, seed)
		}
	}
	b := prepared(t)
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { b.inOrder(t, rand.New(rand.NewPCG(seed, 0)), seed%2 == 0) })
	}
}

func (b backup) inOrder(t *testing.T, random *rand.Rand, kill bool) {
	b.clear(t)
	objects := b.objects.Shuffled(random)
	if random.IntN(2) == 0 {
		objects = objects.HoldClusters()
	}
	b.exactly(t, objects, func() { b.restoredInto(t, objects, random, kill) })
}

// restoredInto runs post while the objects arrive, and kills it if that is asked for.
func (b backup) restoredInto(t *testing.T, objects scenario.Backup, random *rand.Rand, kill bool) {
	t.Helper()
	proxy := stack.Must(stack.Proxy(world.target))(t)
	defer proxy.Close()
	cut := make(<-chan struct{}) // never, unless it is to be killed
	ctx, killed := context.WithCancel(t.Context())
	defer killed()
	if kill {
		cut = proxy.CutAt(1+random.IntN(12), stack.Moment(random.IntN(2)))
	}
	ended := make(chan scenario.Run, 1)
	go func() {
		r, err := world.env.Hook(ctx, b.post(proxy.Kubeconfig())...)
		if err != nil {
			r.Stderr += err.Error()
		}
		ended <- r
	}()
	err := objects.Restore(t.Context(), world.target, func() time.Duration { return time.Duration(random.IntN(200)) * time.Millisecond })
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-cut:
		killed()
		<-ended
		hook(t, 0, b.post(world.target.Kubeconfig())...)
	case r := <-ended:
		if r.Code != 0 || kill {
			t.Fatalf("want exit code 0, or to be killed: %t\n%s", kill, r)
		}
	}
	b.adopted(t)
}

// exactly demands that the objects arrive while f runs, and that nobody else
// makes or deletes one of the kinds that are watched.
func (b backup) exactly(t *testing.T, objects scenario.Backup, f func()) {
	t.Helper()
	seen := stack.Must(stack.Watch(t.Context(), world.target))(t)
	defer seen.Stop()
	f()
	created, deleted := b.happened(t, seen)
	for _, e := range deleted {
		t.Errorf("something was deleted: %s", e)
	}
	var want []string
	for _, o := range objects {
		if slices.Contains(stack.Watched, o.GroupVersionKind()) {
			want = append(want, o.GetKind()+"/"+o.GetName())
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, created); diff != "" {
		t.Errorf("restored and created (-restored +created):\n%s", diff)
	}
}

// happened is what was created and deleted in the namespace of the backup.
func (b backup) happened(t *testing.T, seen *stack.Watcher) (created []string, deleted []stack.Event) {
	t.Helper()
	if err := seen.Err(); err != nil {
		t.Fatal(err)
	}
	for _, e := range seen.Events() {
		switch {
		case e.Key.Namespace != b.key.Namespace:
		case e.Type == stack.Created:
			created = append(created, e.Kind+"/"+e.Key.Name)
		case e.Type == stack.Deleted:
			deleted = append(deleted, e)
		}
	}
	slices.Sort(created)
	return created, deleted
}

// TestP1_MissingPieces leaves out one object after the other: post waits, names
// it and writes nothing; once it is supplied, post finishes.
func TestP1_MissingPieces(t *testing.T) {
	b := prepared(t)
	for _, missing := range []string{"Secret/restore-ca", b.first(t, "KubeadmConfig"), b.first(t, "Machine"), "KubeadmControlPlane/restore-cp"} {
		t.Run(missing, func(t *testing.T) { b.isMissing(t, missing) })
	}
}

func (b backup) isMissing(t *testing.T, missing string) {
	b.clear(t)
	if err := b.objects.Without(missing).Restore(t.Context(), world.target, nil); err != nil {
		t.Fatal(err)
	}
	proxy := stack.Must(stack.Proxy(world.target))(t)
	defer proxy.Close()
	r := hook(t, 3, b.post(proxy.Kubeconfig(), "--timeout", "6s")...)
	kind, name, _ := strings.Cut(missing, "/")
	if want := kind + " " + b.key.Namespace + "/" + name + " does not exist"; !strings.Contains(r.Stdout, want) {
		t.Errorf("it is not said that %s\n%s", want, r)
	}
	if writes := writesOf(proxy); len(writes) > 0 {
		t.Errorf("%s was missing, and post wrote: %v", missing, writes)
	}
	if len(proxy.Requests()) == 0 {
		t.Error("post did not ask the API server: nothing was proved")
	}
	supplied := scenario.Backup{stack.Must(b.objects.Find(missing))(t)}
	if err := supplied.Restore(t.Context(), world.target, nil); err != nil {
		t.Fatal(err)
	}
	hook(t, 0, b.post(world.target.Kubeconfig())...)
	b.adopted(t)
}

// first names the first object of the kind.
func (b backup) first(t *testing.T, kind string) string {
	t.Helper()
	for _, o := range b.objects {
		if o.GetKind() == kind {
			return kind + "/" + o.GetName()
		}
	}
	t.Fatalf("the backup has no %s", kind)
	return ""
}
