package watch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/graph"
)

type objects map[graph.ID]graph.Object

func (o objects) get(id graph.ID) (graph.Object, bool) { found, ok := o[id]; return found, ok }

func object(kind graph.GroupKind, name string, change ...func(*graph.Object)) graph.Object {
	o := graph.Object{ID: graph.ID{Group: kind.Group, Kind: kind.Kind, Namespace: "fleet", Name: name}, UID: "1", ResourceVersion: "1"}
	for _, c := range change {
		c(&o)
	}
	return o
}

func ownedBy(owner graph.ID) func(*graph.Object) {
	return func(o *graph.Object) {
		o.Owners = append(o.Owners, metav1.OwnerReference{APIVersion: owner.Group + "/v1beta2", Kind: owner.Kind, Name: owner.Name, UID: "1"})
	}
}

func TestClustersOf_AnySignLeadsToTheCluster(t *testing.T) {
	c1, c2 := clusterID("fleet", "c1"), clusterID("fleet", "c2")
	kcp := object(graph.KubeadmControlPlane, "cp", ownedBy(c1))
	machine := object(graph.Machine, "cp-0", ownedBy(kcp.ID))
	identity := graph.Object{ID: graph.ID{Group: "infra.example.com", Kind: "Identity", Name: "shared"}, Labels: map[string]string{graph.ClusterNameLabel: "c1"}}
	a := object(graph.Machine, "a")
	b := object(graph.Machine, "b", ownedBy(a.ID))
	ownedBy(b.ID)(&a)
	cluster := object(graph.Cluster, "c1")
	known := objects{cluster.ID: cluster, kcp.ID: kcp, machine.ID: machine, identity.ID: identity, a.ID: a, b.ID: b}

	recorded := &members{}
	recorded.add(&graph.Snapshot{Cluster: c1, Nodes: []graph.SnapshotNode{{ID: object(graph.Secret, "plain").ID}}})
	recorded.add(&graph.Snapshot{Cluster: c2, Nodes: []graph.SnapshotNode{{ID: object(graph.Secret, "plain").ID}}})

	for name, c := range map[string]struct {
		object graph.Object
		want   []graph.ID
	}{
		"the Cluster itself": {object(graph.Cluster, "c1"), []graph.ID{c1}},
		"its label":          {object(graph.Secret, "s", func(o *graph.Object) { o.Labels = map[string]string{graph.ClusterNameLabel: "c1"} }), []graph.ID{c1}},
		"its spec": {object(graph.MachineDeployment, "md", func(o *graph.Object) {
			o.Refs = []graph.Ref{{Field: graph.FieldClusterName, To: c2}}
		}), []graph.ID{c2}},
		"owners that were taken off": {object(graph.KubeadmConfig, "kc", func(o *graph.Object) {
			o.Annotations = map[string]string{graph.OwnersAnnotation: `[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","name":"cp-0"}]`}
		}), []graph.ID{c1}},
		"its owners":                    {object(graph.KubeadmConfig, "kc", ownedBy(machine.ID)), []graph.ID{c1}},
		"an owner that was not seen":    {object(graph.KubeadmConfig, "kc", ownedBy(object(graph.Machine, "gone").ID)), []graph.ID{}},
		"a Cluster that was not seen":   {object(graph.MachineDeployment, "md", ownedBy(c2)), []graph.ID{c2}},
		"the records of two Clusters":   {object(graph.Secret, "plain"), []graph.ID{c1, c2}},
		"owners that own each other":    {a, []graph.ID{}},
		"its name":                      {object(graph.Secret, "c1-etcd"), []graph.ID{c1}},
		"the name of no Cluster":        {object(graph.Secret, "c9-etcd"), []graph.ID{}},
		"nothing":                       {object(graph.Secret, "unrelated"), []graph.ID{}},
		"a cluster-scoped label is not": {identity, []graph.ID{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := clustersOf(c.object, recorded, known)
			if diff := cmp.Diff(c.want, append([]graph.ID{}, got...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
