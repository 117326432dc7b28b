package arm_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/move-hook/move-hook/pkg/labels"
	"github.com/move-hook/move-hook/test/stack"
)

// says demands words of an output.
func says(t *testing.T, output string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(output, w) {
			t.Errorf("it does not say %q:\n%s", w, output)
		}
	}
}

func TestProgram_ArmStatusDisarm(t *testing.T) {
	const ns = "program"
	target := []string{"--to-kubeconfig", world.Kubeconfig()}
	run := func(code int, args ...string) string {
		t.Helper()
		stdout, stderr := hook(t, code, append(args, target...)...)
		return stdout + stderr
	}
	defer run(0, "disarm")

	says(t, run(0, "arm", "-n", ns, "--hold-owners", "--dry-run"), "move-hook-arm-owners-ns-program created (dry run)")
	if left := ours(t); len(left) > 0 {
		t.Fatalf("a dry run stored %v", left)
	}
	says(t, run(0, "arm", "-n", ns, "--hold-owners"),
		"validatingadmissionpolicy.admissionregistration.k8s.io/move-hook-guard created",
		"mutatingadmissionpolicybinding.admissionregistration.k8s.io/move-hook-arm-hold-ns-program created",
		"Armed: namespace program, owner references held, by admin since ")
	if again := run(0, "arm", "-n", ns); strings.Contains(again, "created") || strings.Contains(again, "configured") {
		t.Errorf("the second time it writes:\n%s", again)
	}
	namespace(t, ns)
	arrives(t, world.Client(), wanted, everything(ns, "c")...)
	says(t, run(0, "status", "-n", ns), "The target is armed: namespace program, owner references held", "The target is guarded")

	// Renewed for a second, it is over at once, and everybody says so.
	run(0, "arm", "-n", ns, "--expires", "1s")
	eventually(t, "it expires", func(context.Context) error {
		if out := run(0, "status", "-n", ns); !strings.Contains(out, "expired on ") {
			return errNotYet(out)
		}
		return nil
	})
	says(t, run(3, "post", "-n", ns, "--timeout", "1s"), "the arm for namespace program has expired on ", "`move-hook disarm`")

	// The guard stays as long as something is labelled, here or in another namespace.
	says(t, run(0, "disarm", "-n", ns), "move-hook-arm-hold-ns-program deleted", "the guard stays: ", "is labelled for adoption")
	for _, list := range []string{"kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", "machines.cluster.x-k8s.io"} {
		kubectl(t, "label", list, "--all", "--all-namespaces", labels.Adoption+"-")
	}
	says(t, run(0, "disarm"), "validatingadmissionpolicybinding.admissionregistration.k8s.io/move-hook-guard deleted")
	says(t, run(0, "disarm"), "nothing is armed")
	if left := ours(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

type errNotYet string

// Error is what there is instead.
func (e errNotYet) Error() string { return string(e) }

func kubectl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := runKubectl(t.Context(), args...); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestProgram_PreGuardsAndPostTakesItOff, with the rights that a pivot needs. Without
// those for policies, one warning is all that is different.
func TestProgram_PreGuardsAndPostTakesItOff(t *testing.T) {
	const ns, limited = stack.SyntheticNamespace, "arm-limited"
	stack.Must(stack.Synthetic(t.Context(), world.Management, 1))(t)
	if err := stack.Provisioned(t.Context(), world, ns); err != nil {
		t.Fatal(err)
	}
	at := func(kubeconfig string) []string { return []string{"--kubeconfig", kubeconfig, "-n", ns} }
	mayAllBut(t, limited, "admissionregistration.k8s.io")
	cfg := stack.Must(clientcmd.LoadFromFile(world.Kubeconfig()))(t)
	for _, u := range cfg.AuthInfos {
		u.Impersonate = limited
	}
	path := t.TempDir() + "/kubeconfig"
	if err := clientcmd.WriteToFile(*cfg, path); err != nil {
		t.Fatal(err)
	}

	stdout, stderr := hook(t, 0, append([]string{"pre"}, at(path)...)...)
	if n := strings.Count(stderr, "there is no guard on "); n != 1 || strings.Contains(stdout, "guard") {
		t.Errorf("%d warnings\n%s%s", n, stdout, stderr)
	}
	_, stderr = hook(t, 5, append([]string{"arm"}, at(path)...)...)
	says(t, stderr, "error: ", "mutatingadmissionpolic", `User "arm-limited" cannot`)
	stdout, _ = hook(t, 0, append([]string{"pre"}, at(world.Kubeconfig())...)...)
	says(t, stdout, "validatingadmissionpolicy.admissionregistration.k8s.io/move-hook-guard created")
	stdout, _ = hook(t, 0, append([]string{"pre", "-o", "json"}, at(world.Kubeconfig())...)...)
	var pre struct{ Writes []string }
	if err := json.Unmarshal([]byte(stdout), &pre); err != nil || len(pre.Writes) > 0 {
		t.Errorf("the second pre writes %q (%v)", pre.Writes, err)
	}
	// post ends nothing here, as no controller runs; without the labels it lifts the guard.
	for _, list := range []string{"kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", "machines.cluster.x-k8s.io"} {
		kubectl(t, "label", list, "--all", "--all-namespaces", labels.Adoption+"-")
	}
	hook(t, 3, append([]string{"post", "--timeout", "1s", "no-such-cluster"}, at(world.Kubeconfig())...)...)
	if left := ours(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// mayAllBut gives a user every right but those for an API group: RBAC cannot deny.
func mayAllBut(t *testing.T, user, group string) {
	t.Helper()
	groups, err := allGroups(t, group)
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{{APIGroups: groups, Resources: []string{"*"}, Verbs: []string{"*"}}}}
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}}
	if err := world.Client().Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	if err := world.Client().Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	somebody := as(t, func(cfg *rest.Config) { cfg.Impersonate.UserName = user })
	eventually(t, "the rights of "+user, func(ctx context.Context) error { return somebody.List(ctx, &clusterv1.ClusterList{}) })
}
