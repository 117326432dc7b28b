package interrupt_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/test/stack"
)

const exampleGroup = "infra.example.com"

// TestP3_WhatIsReportedStaysBehindUntilItsRemedyIsApplied moves twice what a spec
// refers to and clusterctl does not take along: a Secret that nothing owns, and an
// object of a kind that clusterctl does not discover.
func TestP3_WhatIsReportedStaysBehindUntilItsRemedyIsApplied(t *testing.T) {
	for _, m := range []*stack.Management{world.source, world.target} {
		define(t, m, "Landscape", "landscapes", map[string]string{graph.ClusterctlLabel: ""})
		define(t, m, "Vault", "vaults", nil)
	}
	for _, remedied := range []bool{false, true} {
		name := map[bool]string{false: "without the remedy", true: "with the remedy"}[remedied]
		t.Run(name, func(t *testing.T) {
			tr := begin(t)
			secret, vault := tr.refer(t)
			remedies := tr.leftBehind(t)
			for _, o := range []client.Object{secret, vault} {
				remedy, ok := remedies[id(o)]
				if !ok {
					t.Fatalf("%s is not reported: %v", id(o), remedies)
				}
				if remedied {
					tr.kubectl(t, remedy)
				}
				delete(remedies, id(o))
			}
			if len(remedies) > 0 {
				t.Errorf("more is reported: %v", remedies)
			}
			if remedied && len(tr.leftBehind(t)) > 0 {
				t.Errorf("after the remedy there is still reported: %v", tr.leftBehind(t))
			}
			if code := tr.run(t, nil, "move"); code != 0 {
				t.Fatalf("the move ends with exit code %d", code)
			}
			for _, o := range []client.Object{secret, vault} {
				switch err := world.target.Client().Get(t.Context(), client.ObjectKeyFromObject(o), o); {
				case err != nil && !apierrors.IsNotFound(err):
					t.Fatal(err)
				case remedied && err != nil:
					t.Errorf("%s stays behind", id(o))
				case !remedied && err == nil:
					t.Errorf("%s is on the target, although it was reported to stay behind", id(o))
				}
			}
		})
	}
}

func id(o client.Object) string {
	return o.GetObjectKind().GroupVersionKind().Kind + " " + o.GetNamespace() + "/" + o.GetName()
}

// define installs a kind that takes any spec.
func define(t *testing.T, m *stack.Management, kind, plural string, labels map[string]string) {
	t.Helper()
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + exampleGroup, Labels: labels},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: exampleGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": anything}}}}}},
	}
	if err := m.Client().Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Client().Delete(context.Background(), crd) })
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": exampleGroup + "/v1", "kind": kind + "List"}}
	err := utilwait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return m.Client().List(ctx, list) == nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// refer makes a Landscape that belongs to the Cluster and refers to two objects that
// nothing owns.
func (tr *trial) refer(t *testing.T) (secret, vault *unstructured.Unstructured) {
	t.Helper()
	cluster := &clusterv1.Cluster{}
	if err := world.source.Client().Get(t.Context(), client.ObjectKey{Namespace: tr.Namespace, Name: "c1"}, cluster); err != nil {
		t.Fatal(err)
	}
	object := func(apiVersion, kind, name string, more map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: more}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		u.SetNamespace(tr.Namespace)
		u.SetName(name)
		return u
	}
	secret = object("v1", "Secret", "credentials", map[string]any{"stringData": map[string]any{"user": "somebody"}})
	vault = object(exampleGroup+"/v1", "Vault", "safe", map[string]any{"spec": map[string]any{"size": "small"}})
	landscape := object(exampleGroup+"/v1", "Landscape", "c1", map[string]any{"spec": map[string]any{
		"identityRef": map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "credentials"},
		"vaultRef":    map[string]any{"apiGroup": exampleGroup, "kind": "Vault", "name": "safe"},
	}})
	landscape.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c1"})
	landscape.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c1", UID: cluster.UID}})
	for _, u := range []*unstructured.Unstructured{secret, vault, landscape} {
		if err := world.source.Client().Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	return secret, vault
}

// leftBehind are the remedies of what a preflight reports to stay behind, by object.
func (tr *trial) leftBehind(t *testing.T) map[string]string {
	t.Helper()
	cmd, _ := tr.Command(t.Context(), "preflight", "--kubeconfig", tr.Source.Kubeconfig(), "-n", tr.Namespace, "-o", "json")
	cmd.Stdout, cmd.Stderr = nil, nil
	out, err := cmd.Output()
	var result struct {
		Findings []struct{ ID, Object, Remedy string }
	}
	if json.Unmarshal(out, &result) != nil {
		t.Fatalf("preflight: %v\n%s", err, out)
	}
	found := map[string]string{}
	for _, f := range result.Findings {
		if f.ID == "LeftBehind" {
			found[f.Object] = f.Remedy
		}
	}
	return found
}

// kubectl runs the command of a remedy on the source, as a user would paste it.
func (tr *trial) kubectl(t *testing.T, remedy string) {
	t.Helper()
	_, command, ok := strings.Cut(strings.Split(remedy, "\n")[0], "kubectl ")
	if !ok {
		t.Fatalf("%q is no command", remedy)
	}
	cmd := exec.CommandContext(t.Context(), world.source.Kubectl(), strings.Fields(strings.ReplaceAll(command, "PLURAL", "vaults"))...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+world.source.Kubeconfig())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", command, err, out)
	}
}

// TestPermissions_ThePrintedRolesAreEnoughForAMove moves as a user who has nothing but
// the two ClusterRoles.
func TestPermissions_ThePrintedRolesAreEnoughForAMove(t *testing.T) {
	const mover = "mover"
	tr := begin(t)
	as := func(m *stack.Management) string {
		cfg := stack.Must(clientcmd.LoadFromFile(m.Kubeconfig()))(t)
		for _, u := range cfg.AuthInfos {
			u.Impersonate = mover
		}
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := clientcmd.WriteToFile(*cfg, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	source, target := as(world.source), as(world.target)
	for side, m := range map[string]*stack.Management{"source": world.source, "target": world.target} {
		flag := map[string]string{"source": "--kubeconfig", "target": "--to-kubeconfig"}[side]
		cmd, _ := tr.Command(t.Context(), "preflight", flag, m.Kubeconfig(), "--print-role", side)
		cmd.Stdout = nil
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict(stack.Must(cmd.Output())(t), role); err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: mover}}}
		for _, o := range []client.Object{role, binding} {
			if err := m.Client().Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = m.Client().Delete(context.Background(), o) })
		}
	}
	// The API server learns of a role a moment after it is stored.
	for range 20 {
		if tr.Run(t, nil, "preflight", "--kubeconfig", source, "--to-kubeconfig", target, "-n", tr.Namespace, "--fail-on", "stops") == 0 {
			break
		}
		wait(t.Context(), time.Second)
	}
	if strings.Contains(tr.Said(), "MissingPermission") {
		t.Errorf("a right is missing\n%s", tr.Said())
	}
	if code := tr.Run(t, nil, "move", "--kubeconfig", source, "--to-kubeconfig", target, "-n", tr.Namespace, "--watch-after", "0s", "--timeout", "1m"); code != 0 {
		t.Errorf("the move ends with exit code %d", code)
	}
	for _, refused := range []string{"forbidden", "there is no guard", "cannot read"} {
		if strings.Contains(tr.Said(), refused) {
			t.Errorf("%q is said\n%s", refused, tr.Said())
		}
	}
}
