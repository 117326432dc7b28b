package bare_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/test/stack"
)

var devMachineTemplate = graph.GroupKind{Group: infrav1.GroupVersion.Group, Kind: "DevMachineTemplate"}

// allBut are the rights to read every kind but one: RBAC cannot deny.
func allBut(d *management.Discovery, but graph.GroupKind) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, k := range d.All() {
		if k.GroupKind != but {
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{k.Group}, Resources: []string{k.Resource}, Verbs: []string{"get", "list", "watch"}})
		}
	}
	return rules
}

func TestForbiddenKind_IsAWarning(t *testing.T) {
	const namespace, limited = "forbidden", "bare-limited"
	key := stack.Must(stack.Cluster("c").InNamespace(namespace).ControlPlane(1).Workers("md-0", 1).Create(t.Context(), world.Management))(t)
	admin, user := open(t, nil), open(t, user(limited))
	d := stack.Must(admin.Discover(t.Context()))(t)
	grant(t, limited, allBut(d, devMachineTemplate), func(ctx context.Context) error {
		_, err := user.Get(ctx, id(graph.Cluster, namespace, key.Name), false)
		return err
	})
	scope := management.Scope{Namespace: namespace}
	kcp, md := id(graph.KubeadmControlPlane, namespace, "c-cp"), id(graph.MachineDeployment, namespace, "c-md-0")
	states := func(g *graph.Graph) map[string]graph.RefState {
		out := map[string]graph.RefState{}
		for _, from := range []graph.ID{kcp, md} {
			for _, e := range g.SpecRefs(from) {
				if e.To.GroupKind() == devMachineTemplate {
					out[from.Kind] = e.State
				}
			}
		}
		return out
	}
	all := read(t, admin, scope)
	if diff := cmp.Diff(map[string]graph.RefState{kcp.Kind: graph.Live, md.Kind: graph.Live}, states(all)); diff != "" {
		t.Fatal(diff)
	}
	// One of the two is gone: for who may look, that is a fact.
	gone := &infrav1.DevMachineTemplate{}
	gone.Namespace, gone.Name = namespace, "c-md-0"
	if err := world.Client().Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]graph.RefState{kcp.Kind: graph.Live, md.Kind: graph.Dangling}, states(read(t, admin, scope))); diff != "" {
		t.Fatal(diff)
	}

	g, warnings, err := user.Read(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].What, devMachineTemplate.Kind) || !strings.Contains(warnings[0].What, namespace) ||
		!strings.Contains(warnings[0].Why, `User "bare-limited" cannot list resource "devmachinetemplates" in API group "infrastructure.cluster.x-k8s.io"`) {
		t.Errorf("warnings %v", warnings)
	}
	if diff := cmp.Diff(map[string]graph.RefState{kcp.Kind: graph.Unknown, md.Kind: graph.Unknown}, states(g)); diff != "" {
		t.Error(diff)
	}
	if g.Listed(devMachineTemplate, namespace) {
		t.Error("the kind is called listed")
	}
	for o := range all.All() {
		if _, ok := g.Object(o.ID); !ok && o.GroupKind() != devMachineTemplate {
			t.Errorf("%s was not read", o.ID)
		}
		if k := o.GroupKind(); k != devMachineTemplate && !g.Listed(k, namespace) {
			t.Errorf("%s is not called listed", k)
		}
	}
	if n := len(g.OfKind(devMachineTemplate)); n != 0 {
		t.Errorf("%d objects of the forbidden kind", n)
	}
	verifySaysUnjudged(t, limited, namespace)
}

// verifySaysUnjudged: what cannot be looked at is neither fine nor missing.
func verifySaysUnjudged(t *testing.T, user, namespace string) {
	t.Helper()
	args := []string{"verify", "--kubeconfig", userKubeconfig(t, user), "-n", namespace, "-o", "json"}
	r := hook(t, 1, args...)
	var result struct {
		Clusters []struct {
			Findings []struct{ ID, Object string }
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &result); err != nil {
		t.Fatalf("%v\n%s", err, r)
	}
	unjudged := map[string]bool{}
	for _, c := range result.Clusters {
		for _, f := range c.Findings {
			switch {
			case f.ID == "Unjudged":
				unjudged[f.Object] = true
			case strings.Contains(f.Object, devMachineTemplate.Kind):
				t.Errorf("it claims to know of %s: %s", f.Object, f.ID)
			}
		}
	}
	for _, name := range []string{"c-cp", "c-md-0"} {
		if object := id(devMachineTemplate, namespace, name).String(); !unjudged[object] {
			t.Errorf("%s is not called unjudged\n%s", object, r)
		}
	}
	if !strings.Contains(r.stderr, "devmachinetemplates") {
		t.Errorf("the missing right is not named\n%s", r)
	}
}
