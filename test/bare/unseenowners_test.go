package bare_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/test/stack"
)

// clusterctl reads, as if they were there, the Clusters, ClusterClasses and
// Machines that owner references name: one stale reference of any object, and it
// moves nothing. pre says so first.
func TestMoveSet_OwnersThatStopClusterctl(t *testing.T) {
	admin := open(t, nil)
	for _, kind := range []graph.GroupKind{graph.Cluster, graph.ClusterClass, graph.Machine} {
		t.Run(kind.Kind, func(t *testing.T) {
			t.Parallel() // clusterctl tries for a quarter of a minute
			ns := "stopped-" + strings.ToLower(kind.Kind)
			stack.Must(stack.Cluster("c").InNamespace(ns).StandAloneControlPlane(1).Create(t.Context(), world.Management))(t)
			create(t, secret(ns, "c-cp-0", nil))
			own(t, admin, id(infra("DevCluster"), ns, "c"), by(t, admin, id(graph.Cluster, ns, "c")))
			own(t, admin, id(graph.Machine, ns, "c-cp-0"), by(t, admin, id(graph.Cluster, ns, "c")))
			ownMachineParts(t, admin, ns, "c-cp-0")
			if err := stack.Provisioned(t.Context(), world, ns); err != nil {
				t.Fatal(err)
			}
			pre := []string{"pre", "--kubeconfig", world.Kubeconfig(), "-n", ns, "--dry-run"}
			hook(t, 0, pre...)

			culprit := configMap(ns, "culprit", nil)
			culprit.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: kind.Kind, Name: "gone", UID: "gone"}}
			create(t, culprit)
			out, err := world.RunClusterctl(t.Context(), "move", "--kubeconfig", world.Kubeconfig(), "--to-directory", t.TempDir(), "--namespace", ns)
			if err == nil || !strings.Contains(out, "error reading "+kind.Kind) || !strings.Contains(out, "an empty namespace") {
				t.Errorf("clusterctl minds it no more: %v\n%s", err, out)
			}
			r := hook(t, 1, pre...)
			if !strings.Contains(r.stdout, "ConfigMap "+ns+"/culprit") || !strings.Contains(r.stdout, kind.Kind+" "+ns+"/gone") {
				t.Errorf("it does not name the reference\n%s", r)
			}
		})
	}
}
