package adopt

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/move-hook/move-hook/pkg/graph"
)

// TestPass_NoClusterWaitsForAnother: of two Clusters that arrive on an armed target
// and share a ClusterClass and its template, one never becomes complete; the other
// is adopted. A third was there before, paused by its user, and is not touched.
func TestPass_NoClusterWaitsForAnother(t *testing.T) {
	for _, owners := range []string{"none", "stale", "held"} {
		t.Run(owners, func(t *testing.T) {
			w := newMemory()
			for _, o := range (sample{name: "c0", controlPlane: 1, workers: []workers{{name: "c0-md", replicas: 1}}}).objects() {
				o = arrival{owners: "live", status: true}.carried(o)
				if o["kind"] == "Cluster" {
					o["spec"].(content)["paused"] = true
				}
				w.create(o)
			}
			before := versions(w)
			class := &drawing{}
			class.add("infrastructure.cluster.x-k8s.io/v1beta2", "DevMachineTemplate", "class", nil, owner{"ClusterClass", "class", false})
			class.add("cluster.x-k8s.io/v1beta2", "ClusterClass", "class", content{"infrastructure": content{"templateRef": content{
				"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachineTemplate", "name": "class"}}})
			for _, o := range class.all {
				delete(metaOf(o), "labels")
				w.create(arrival{owners: owners}.carried(o))
			}
			for _, name := range []string{"c1", "c2"} {
				s := sample{name: name, controlPlane: 1, topology: true, healthCheck: true, workers: []workers{{name: name + "-md", replicas: 2}}}
				for _, o := range s.objects() {
					o = arrival{owners: owners, held: true, pending: true, status: true}.carried(o)
					id := extract(o)
					switch {
					case id.GroupKind() == graph.Cluster:
						o["spec"].(content)["topology"].(content)["classRef"] = content{"name": "class"}
					case id.Name == "c2-cp-0" && id.GroupKind() == graph.Secret:
						continue
					}
					w.create(o)
				}
			}
			w.tick(10 * time.Second)

			pass := func(name string) Phase {
				w.cluster = coreID(graph.Cluster, name)
				p, err := w.finish()
				if err != nil {
					t.Fatal(err)
				}
				invariants(t, w)
				return p.Phase
			}
			if got := pass("c2"); got != Deferred || len(w.writes) > 0 {
				t.Errorf("c2, which is not complete, is %s, %d writes", got, len(w.writes))
			}
			if got := pass("c1"); got != Adopted || len(w.writes) == 0 {
				t.Errorf("c1 is %s", got)
			}
			for _, f := range VerifyByRules(w.cluster, w.graph(), VerifyOptions{}) {
				t.Errorf("c1: %s", f)
			}
			if o := w.read[coreID(graph.Cluster, "c2")]; o.ResourceVersion == "" {
				t.Error("c2 is gone")
			}
			if got := pass("c0"); got != Adopted {
				t.Errorf("c0 is %s", got)
			}
			after := versions(w)
			for id := range after {
				if _, was := before[id]; !was {
					delete(after, id)
				}
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the Cluster that was there before was written:\n%s", diff)
			}
			if got := pass("c2"); got != Deferred {
				t.Errorf("c2 is %s after c1's adoption", got)
			}
		})
	}
}

func versions(w *memory) map[graph.ID]string {
	out := map[graph.ID]string{}
	for id, o := range w.read {
		out[id] = o.ResourceVersion
	}
	return out
}
