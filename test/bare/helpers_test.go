package bare_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/test/stack"
)

func writeKubeconfig(t *testing.T, cfg *clientcmdapi.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*cfg, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// serverKubeconfig is for a server that asks for no credentials.
func serverKubeconfig(t *testing.T, server string) string {
	t.Helper()
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["c"] = &clientcmdapi.Cluster{Server: server}
	cfg.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	cfg.CurrentContext = "c"
	return writeKubeconfig(t, cfg)
}

// grant gives a user rights everywhere and returns when can says that they hold:
// the API server learns of a binding a moment after it is stored.
func grant(t *testing.T, name string, rules []rbacv1.PolicyRule, can func(ctx context.Context) error) {
	t.Helper()
	grantOn(t, world.Management, name, rules, can)
}

func grantOn(t *testing.T, m *stack.Management, name string, rules []rbacv1.PolicyRule, can func(ctx context.Context) error) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := m.Client().Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		last = can(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("the rights of %s do not hold: %v", name, last)
	}
}

// read reads a namespace and fails on warnings.
func read(t *testing.T, c *management.Cluster, scope management.Scope) *graph.Graph {
	t.Helper()
	g, warnings, err := c.Read(t.Context(), scope)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v (%v)", warnings, err)
	}
	return g
}

func id(gk graph.GroupKind, namespace, name string) graph.ID {
	return graph.ID{Group: gk.Group, Kind: gk.Kind, Namespace: namespace, Name: name}
}

// get is an object as somebody sees it now.
func get(t *testing.T, c *management.Cluster, of graph.ID) *graph.Object {
	t.Helper()
	o := stack.Must(c.Get(t.Context(), of, false))(t)
	if o == nil {
		t.Fatalf("%s does not exist", of)
	}
	return o
}
