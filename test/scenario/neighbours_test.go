package scenario_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

// TestP1P6_Neighbours restores two Clusters into a namespace in which somebody
// else's, paused, is already. One of the two never becomes complete: the other
// does not wait for it. The paused one is not touched at all.
func TestP1P6_Neighbours(t *testing.T) {
	late := ready(t, "late")
	b := plain(t, "twins")
	pauseSource(t, late, true)

	bystander := stack.Must(stack.Cluster("bystander").InNamespace(b.key.Namespace).ControlPlane(1).Create(t.Context(), world.target))(t)
	if err := stack.WaitReady(t.Context(), world.target, bystander); err != nil {
		t.Fatal(err)
	}
	merge(t, world.target, "Cluster/bystander", bystander.Namespace, `{"spec":{"paused":true}}`)
	before := atRest(t, world.target, bystander.Namespace)
	maps.Copy(b.owners, stack.Must(stack.OwnerGraph(t.Context(), world.target, bystander.Namespace))(t))

	arm(t, b.key.Namespace)
	missing := onlyMachine(t, late)
	b.exactly(t, b.objects, func() {
		if err := b.objects.Without("Machine/"+missing).Restore(t.Context(), world.target, nil); err != nil {
			t.Fatal(err)
		}
		post := []string{"post", "-n", b.key.Namespace, "--to-kubeconfig", world.target.Kubeconfig(), "--watch-after", "3s", "--timeout"}
		r := hook(t, 3, append(post, "90s")...)
		if want := "KubeadmControlPlane " + b.key.Namespace + "/late-cp has 0 of 1 control-plane Machines"; !strings.Contains(r.Stdout, want) {
			t.Errorf("it is not said that %s\n%s", want, r)
		}
		if err := stack.WaitReady(t.Context(), world.target, b.key); err != nil {
			t.Errorf("the complete one waited: %v", err)
		}
		if _, held := get(t, world.target, "KubeadmControlPlane/late-cp", late.Namespace).GetAnnotations()["cluster.x-k8s.io/paused"]; !held {
			t.Error("the incomplete one is not held any more")
		}
		if err := (scenario.Backup{stack.Must(b.objects.Find("Machine/" + missing))(t)}).Restore(t.Context(), world.target, nil); err != nil {
			t.Fatal(err)
		}
		hook(t, 0, append(post, "3m")...)
		b.adopted(t)
	})
	now := versions(t, world.target, bystander.Namespace)
	for object, version := range before {
		if now[object] != version {
			t.Errorf("%s of somebody else was written: resourceVersion %q, was %q", object, now[object], version)
		}
	}
	if len(before) < 10 {
		t.Errorf("only %d objects were looked at", len(before))
	}
	b.clear(t)
}

// atRest waits until nobody writes to the namespace any more.
func atRest(t *testing.T, m *stack.Management, namespace string) map[string]string {
	t.Helper()
	last := map[string]string{}
	waitFor(t, time.Minute, "everything in "+namespace+" to be at rest", func() bool {
		wait(t, 5*time.Second)
		now := versions(t, m, namespace)
		same := cmp.Equal(last, now)
		last = now
		return same
	})
	return last
}

// versions are the resourceVersions of a namespace's objects.
func versions(t *testing.T, m *stack.Management, namespace string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, o := range stack.Must(stack.ReadAll(t.Context(), m, namespace))(t) {
		out[o.GetKind()+"/"+o.GetName()] = o.GetResourceVersion()
	}
	return out
}

// onlyMachine names the one Machine that a Cluster of the source has.
func onlyMachine(t *testing.T, cluster client.ObjectKey) string {
	t.Helper()
	var names []string
	for _, o := range stack.Must(stack.ReadAll(t.Context(), world.source, cluster.Namespace))(t) {
		if o.GetKind() == "Machine" && o.GetLabels()["cluster.x-k8s.io/cluster-name"] == cluster.Name {
			names = append(names, o.GetName())
		}
	}
	if len(names) != 1 {
		t.Fatalf("Cluster %s has the Machines %v", cluster, names)
	}
	return names[0]
}
