package bare_test

import (
	"context"
	"net/http"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
	"github.com/move-hook/move-hook/test/stack"
)

// arrive creates a Cluster with a MachineDeployment of no replicas, without its
// infrastructure: it is not complete.
func arrive(t *testing.T, m *stack.Management, namespace, name string) {
	t.Helper()
	for _, o := range stack.Cluster(name).InNamespace(namespace).Workers("md-0", 0).Objects() {
		if _, ok := o.(*infrav1.DevCluster); ok {
			continue
		}
		if err := m.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// complete brings what arrive left out.
func complete(t *testing.T, m *stack.Management, namespace, name string) {
	t.Helper()
	for _, o := range stack.Cluster(name).InNamespace(namespace).Objects() {
		if _, ok := o.(*infrav1.DevCluster); ok {
			if err := m.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// rebuild plays the controllers: it writes the status that a Cluster had.
func rebuild(t *testing.T, m *stack.Management, namespace, name string) {
	t.Helper()
	c := &clusterv1.Cluster{}
	if err := m.Client().Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, c); err != nil {
		t.Fatal(err)
	}
	before := c.DeepCopy()
	c.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	if err := m.Client().Status().Patch(t.Context(), c, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// hold puts a hold of ours on a Cluster's MachineDeployment.
func hold(t *testing.T, m *stack.Management, namespace, name string) {
	t.Helper()
	md := &clusterv1.MachineDeployment{}
	md.Namespace, md.Name = namespace, name+"-md-0"
	value := labels.Holder{Who: "test", Since: time.Now()}.String()
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"`+labels.Paused+`":"","`+labels.Held+`":"`+value+`"}}}`))
	if err := m.Client().Patch(t.Context(), md, patch); err != nil {
		t.Fatal(err)
	}
}

// adopted: nothing of ours is left on a Cluster, and its scaler has its owner.
func adopted(t *testing.T, c *management.Cluster, namespace, name string) bool {
	t.Helper()
	cluster := get(t, c, id(graph.Cluster, namespace, name))
	md := get(t, c, id(graph.MachineDeployment, namespace, name+"-md-0"))
	_, released := cluster.Annotations[labels.Released]
	return !released && !labels.IsHeld(labels.MetaOf(md)) && len(md.Owners) == 1
}

// leader is who holds the Lease of the processes that watch a namespace.
func leader(t *testing.T, api kubernetes.Interface, namespace string) string {
	t.Helper()
	lease, err := api.CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), "move-hook-post.leader."+namespace, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func TestPostWatch_OneLeadsAndTheOtherTakesOver(t *testing.T) {
	const ns = "post-watch"
	c := open(t, nil)
	args := []string{"--kubeconfig", world.Kubeconfig(), "-n", ns, "--leader-elect"}
	first := stay(t, args...)
	eventually(t, first, "leading", func() bool { return leader(t, c.Clientset(), ns) != "" })
	second := stay(t, args...)
	led := leader(t, c.Clientset(), ns)

	for _, name := range []string{"c1", "c2"} {
		arrive(t, world.Management, ns, name)
		hold(t, world.Management, ns, name)
	}
	eventually(t, first, "both deferred", func() bool { return first.metric(`move_hook_clusters{phase="deferred"}`) == "2" })
	if got := first.metric("move_hook_awaited_objects"); got != "2" {
		t.Errorf("%s objects are awaited", got)
	}
	complete(t, world.Management, ns, "c1")
	rebuild(t, world.Management, ns, "c1")
	eventually(t, first, "c1 adopted", func() bool { return adopted(t, c, ns, "c1") })
	if n := first.metric("move_hook_patches_total"); n == "" || n == "0" {
		t.Errorf("%s patches", n)
	}
	if n := first.metric("move_hook_deferral_seconds_count"); n != "1" {
		t.Errorf("%s deferrals have ended", n)
	}
	if n := second.metric("move_hook_patches_total"); n != "0" {
		t.Errorf("the one that stands by made %s patches", n)
	}
	if code, body := fetch(second.health + "/healthz"); code != http.StatusOK {
		t.Errorf("healthz of the one that stands by: %d %s", code, body)
	}

	// Killed: nobody gives its Leases up.
	first.signal(t, syscall.SIGKILL)
	complete(t, world.Management, ns, "c2")
	rebuild(t, world.Management, ns, "c2")
	eventually(t, second, "c2 adopted by the other", func() bool { return adopted(t, c, ns, "c2") })
	if now := leader(t, c.Clientset(), ns); now == led || now == "" {
		t.Errorf("%s leads after the kill of %s", now, led)
	}
	// A second pivot of a Cluster that was adopted.
	hold(t, world.Management, ns, "c1")
	eventually(t, second, "c1 adopted again", func() bool { return adopted(t, c, ns, "c1") })
	eventually(t, second, "done with what it watched", func() bool {
		return second.metric(`move_hook_clusters{phase="watching"}`) == "0"
	})
	if code := second.signal(t, syscall.SIGTERM); code != 0 {
		t.Errorf("everything was adopted, and the exit code is %d", code)
	}
	if now := leader(t, c.Clientset(), ns); now != "" {
		t.Errorf("%s has ended and still leads", now)
	}
}

func TestPostWatch_ExitCodeSaysWhetherAllIsAdopted(t *testing.T) {
	const ns = "post-watch-exit"
	c := open(t, nil)
	arrive(t, world.Management, ns, "c1")
	hold(t, world.Management, ns, "c1")
	args := []string{"--kubeconfig", world.Kubeconfig(), "-n", ns}
	p := stay(t, args...)
	eventually(t, p, "deferred", func() bool { return p.metric(`move_hook_clusters{phase="deferred"}`) == "1" })
	if code := p.signal(t, syscall.SIGTERM); code != 3 {
		t.Errorf("a Cluster is awaited, and the exit code is %d\n%s", code, p)
	}
	p = stay(t, args...)
	complete(t, world.Management, ns, "c1")
	rebuild(t, world.Management, ns, "c1")
	eventually(t, p, "adopted", func() bool { return adopted(t, c, ns, "c1") })
	// One that comes while it runs.
	arrive(t, world.Management, ns, "c2")
	hold(t, world.Management, ns, "c2")
	complete(t, world.Management, ns, "c2")
	rebuild(t, world.Management, ns, "c2")
	eventually(t, p, "the new one adopted", func() bool { return adopted(t, c, ns, "c2") })
	eventually(t, p, "nothing known that is not adopted", func() bool {
		return p.metric(`move_hook_clusters{phase="watching"}`) == "0"
	})
	if code := p.signal(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, p)
	}
}

func TestPostWatch_AnAddressThatIsTaken(t *testing.T) {
	busy := stay(t, "--kubeconfig", world.Kubeconfig(), "-n", "post-watch-busy", "--leader-elect")
	hook(t, 2, "post", "--watch", "--kubeconfig", world.Kubeconfig(), "-n", "post-watch-busy",
		"--metrics-bind-address", busy.metrics, "--health-probe-bind-address", "0")
}

// TestPostWatch_WaitsForAServerThatIsAway runs on a server of its own: it is killed.
func TestPostWatch_WaitsForAServerThatIsAway(t *testing.T) {
	m := stack.Must(stack.Start(t.Context(), stack.Options{Name: "away", Bare: true}))(t)
	t.Cleanup(m.Stop)
	c := stack.Must(management.OpenConfig(m.RESTConfig(), "away"))(t)
	const ns = "away"
	p := stay(t, "--kubeconfig", m.Kubeconfig(), "-n", ns, "--leader-elect")
	eventually(t, p, "leading", func() bool { return leader(t, c.Clientset(), ns) != "" })
	m.KillAPIServer()
	if err := m.RestartAPIServer(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	arrive(t, m, ns, "c1")
	hold(t, m, ns, "c1")
	complete(t, m, ns, "c1")
	rebuild(t, m, ns, "c1")
	eventually(t, p, "adopted", func() bool { return adopted(t, c, ns, "c1") })
	eventually(t, p, "done with what it watched", func() bool { return p.metric(`move_hook_clusters{phase="watching"}`) == "0" })
	if code := p.signal(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, p)
	}
}
