package scenario_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

// plain is a backup of a workload cluster that move-hook knows nothing of: no
// record, no holds, no labels.
func plain(t *testing.T, name string) backup {
	t.Helper()
	if name == "restore" {
		b := prepared(t)
		b.objects, b.record = b.objects.Unprepared(), ""
		owners := map[string][]string{}
		for object, of := range b.owners {
			if !strings.HasPrefix(object, "ConfigMap/move-hook-record-") {
				owners[object] = of
			}
		}
		b.owners = owners
		return b
	}
	key := ready(t, name)
	b := backup{
		key:     key,
		objects: stack.Must(scenario.TakeBackup(t.Context(), world.source, key.Namespace))(t),
		owners:  stack.Must(stack.OwnerGraph(t.Context(), world.source, key.Namespace))(t),
	}
	if !b.has("KubeadmControlPlane") {
		// The bootstrap config that made them owns the certificates; without a record
		// nothing tells which that was, and upstream gives them no owner again.
		for _, purpose := range []string{"ca", "etcd", "proxy", "sa"} {
			b.owners["Secret/"+name+"-"+purpose] = []string{}
		}
	}
	pauseSource(t, key, true)
	return b
}

// arm arms the target for the namespace, until the test ends.
func arm(t *testing.T, namespace string, more ...string) {
	t.Helper()
	hook(t, 0, append([]string{"arm", "--to-kubeconfig", world.target.Kubeconfig(), "-n", namespace}, more...)...)
	t.Cleanup(func() {
		r, err := world.env.Hook(context.WithoutCancel(t.Context()), "disarm", "--to-kubeconfig", world.target.Kubeconfig(), "-n", namespace)
		if err != nil || r.Code != 0 {
			t.Error(err, r)
		}
	})
}

// head is how long the control plane is there before its Machines.
const head = 10 * time.Second

// restoreControlPlaneFirst restores what controllers act on, and some time later
// the Machines that they would miss.
func (b backup) restoreControlPlaneFirst(t *testing.T) {
	t.Helper()
	late := []string{"Machine", "KubeadmConfig", "DevMachine", "MachineSet"}
	isLate := func(o *unstructured.Unstructured) bool { return slices.Contains(late, o.GetKind()) }
	later := slices.DeleteFunc(slices.Clone(b.objects), func(o *unstructured.Unstructured) bool { return !isLate(o) })
	first := slices.DeleteFunc(slices.Clone(b.objects), isLate)
	if err := first.Restore(t.Context(), world.target, nil); err != nil {
		t.Fatal(err)
	}
	wait(t, head)
	if err := later.Restore(t.Context(), world.target, nil); err != nil {
		t.Fatal(err)
	}
}

// survivesControlPlaneFirst demands that such a restore ends adopted, Available,
// and with nothing made or deleted by a controller.
func (b backup) survivesControlPlaneFirst(t *testing.T) {
	t.Helper()
	b.exactly(t, b.objects, func() {
		b.restoreControlPlaneFirst(t)
		hook(t, 0, b.post(world.target.Kubeconfig())...)
		b.adopted(t)
		if err := stack.WaitReady(t.Context(), world.target, b.key); err != nil {
			t.Error(err)
		}
	})
}

// TestP1_ArmedRestore is the restore that does harm when nobody arms: control
// plane and MachineDeployment come before their Machines.
func TestP1_ArmedRestore(t *testing.T) {
	b := plain(t, "restore")
	b.clear(t)
	arm(t, b.key.Namespace)
	b.survivesControlPlaneFirst(t)
}

// TestP2_RawApplyWithStaleOwners applies objects with the owner references of the
// source, while the real garbage collector runs, which would delete them all.
func TestP2_RawApplyWithStaleOwners(t *testing.T) {
	b := plain(t, "restore")
	b.clear(t)
	arm(t, b.key.Namespace, "--hold-owners")
	objects := slices.Clone(b.objects)
	for i, o := range objects {
		there := get(t, world.source, o.GetKind()+"/"+o.GetName(), b.key.Namespace)
		objects[i] = o.DeepCopy()
		objects[i].SetOwnerReferences(there.GetOwnerReferences())
	}
	b.exactly(t, objects, func() {
		if err := objects.Restore(t.Context(), world.target, nil); err != nil {
			t.Fatal(err)
		}
		wait(t, head) // for the collector, which takes no more than a moment
		hook(t, 0, b.post(world.target.Kubeconfig())...)
		b.adopted(t)
	})
}

// TestP1P2_FromDirectory moves through a folder, onto a target where half of the
// objects are already, and expects what is in the folder.
func TestP1P2_FromDirectory(t *testing.T) {
	b := plain(t, "folder")
	pauseSource(t, b.key, false) // clusterctl takes nothing that is paused
	dir := t.TempDir()
	stack.Must(world.source.RunClusterctl(t.Context(), "move", "--kubeconfig", world.source.Kubeconfig(), "--to-directory", dir, "-n", b.key.Namespace))(t)
	pauseSource(t, b.key, true)
	arm(t, b.key.Namespace)
	half := b.objects.Shuffled(rand.New(rand.NewPCG(1, 3)))
	half = half[:len(half)/2]
	b.exactly(t, b.objects, func() {
		if err := half.Restore(t.Context(), world.target, nil); err != nil {
			t.Fatal(err)
		}
		stack.Must(world.target.RunClusterctl(t.Context(), "move", "--to-kubeconfig", world.target.Kubeconfig(), "--from-directory", dir))(t)
		hook(t, 0, b.post(world.target.Kubeconfig(), "--expect", dir)...)
		b.adopted(t)
	})
}

// TestHarm_RestoreWithoutArm shows what upstream's controllers do to the same
// restore, so that we notice when they no longer do.
func TestHarm_RestoreWithoutArm(t *testing.T) {
	b := plain(t, "harmed")
	seen := stack.Must(stack.Watch(t.Context(), world.target))(t)
	defer seen.Stop()
	b.restoreControlPlaneFirst(t)
	extra := func(kind string) (names []string) {
		created, _ := b.happened(t, seen)
		for _, name := range created {
			if _, err := b.objects.Find(name); err != nil && strings.HasPrefix(name, kind+"/") {
				names = append(names, name)
			}
		}
		return names
	}
	waitFor(t, time.Minute, "upstream to make a second MachineSet and more Machines", func() bool {
		return len(extra("MachineSet")) > 0 && len(extra("Machine")) > 0
	})
	t.Logf("upstream made %v and %v", extra("MachineSet"), extra("Machine"))
	if err := scenario.Remove(t.Context(), world.target, b.key.Namespace); err != nil {
		t.Fatal(err)
	}
}

// TestP1P2P4_AnyOrderArmed restores every kind of workload cluster in random
// orders with random pauses, onto an armed target, while post runs.
func TestP1P2P4_AnyOrderArmed(t *testing.T) {
	if err := world.target.Create(t.Context(), stack.Class("classes", "quick")...); err != nil {
		t.Fatal(err)
	}
	seeds := uint64(1)
	if soak() {
		seeds = 11 // of each of five kinds: more than 50
	}
	for _, name := range []string{"overlap", "classy", "alone", "outside", "restore"} {
		b := plain(t, name)
		arm(t, b.key.Namespace)
		for seed := range seeds {
			t.Run(fmt.Sprintf("%s seed %d", name, seed), func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, uint64(len(name))))
				b.clear(t)
				objects := b.objects.Shuffled(random)
				b.exactly(t, objects, func() { b.restoredInto(t, objects, random, false) })
			})
		}
		b.clear(t)
	}
}

func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
