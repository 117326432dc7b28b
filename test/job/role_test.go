package job_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/policy"
	"github.com/move-hook/move-hook/test/interrupt"
	"github.com/move-hook/move-hook/test/stack"
)

// rendered gives the objects of a kustomization in config/.
func rendered(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), world.Kubectl(), "kustomize", filepath.Join("..", "..", "config", name)).Output()
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(out), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}

// rights are what the aggregated ClusterRole of a kustomization comes to.
func rights(t *testing.T, name string) []rbacv1.PolicyRule {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for _, o := range rendered(t, name) {
		if o.GetKind() != "ClusterRole" || o.GetLabels()["rbac.pivot.cluster.x-k8s.io/aggregate-to-post"] != "true" {
			continue
		}
		rules = append(rules, as[rbacv1.ClusterRole](t, o).Rules...)
	}
	return rules
}

// as reads an object as its type; a field that the type does not have is an error.
func as[T any](t *testing.T, o *unstructured.Unstructured) *T {
	t.Helper()
	typed := new(T)
	text, err := o.MarshalJSON()
	if err == nil {
		err = yaml.UnmarshalStrict(text, typed)
	}
	if err != nil {
		t.Fatal(err)
	}
	return typed
}

// account makes a ServiceAccount with these rights.
func account(t *testing.T, m *stack.Management, name string, rules []rbacv1.PolicyRule) {
	t.Helper()
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: name}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: name}}},
	} {
		if err := m.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// arrived makes two Clusters with a record in a namespace of their own, whose objects
// have lost their owners; the Lease of the first was left by a run that was killed.
func arrived(t *testing.T, m *stack.Management, namespace string) {
	t.Helper()
	synthesized(t, m, namespace, "c1", "c2")
	recorded(t, m, namespace)
	orphaned(t, m, namespace)
	long := metav1.NewMicroTime(time.Now().Add(-time.Hour))
	if err := m.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "move-hook-c1"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("killed"), LeaseDurationSeconds: ptr.To[int32](15), AcquireTime: &long, RenewTime: &long},
	}); err != nil {
		t.Fatal(err)
	}
}

// recorded runs pre, whose record and marks stay.
func recorded(t *testing.T, m *stack.Management, namespace string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), world.hook, "pre", "-n", namespace, "--kubeconfig", m.Kubeconfig()).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// synthesized makes Clusters whose controllers have done their work.
func synthesized(t *testing.T, m *stack.Management, namespace string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := stack.Cluster(name).InNamespace(namespace).ControlPlane(1).Workers("md-0", 1).Synthesize(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if err := stack.Provisioned(t.Context(), m, namespace); err != nil {
		t.Fatal(err)
	}
}

// orphaned takes every owner of a namespace's objects away, as a restore does.
func orphaned(t *testing.T, m *stack.Management, namespace string) {
	t.Helper()
	admin := stack.Must(management.Open(management.Options{Kubeconfig: m.Kubeconfig()}))(t)
	g, _, err := admin.Read(t.Context(), management.Scope{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	for o := range g.All() {
		if o.Namespace != namespace || len(o.Owners) == 0 {
			continue
		}
		of := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}
		of.APIVersion, of.Kind = o.APIVersion, o.Kind
		if err := m.Client().Patch(t.Context(), of, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))); err != nil {
			t.Fatal(err)
		}
	}
}

// posted runs post in a pod with these rights, for two Clusters that have arrived.
func posted(t *testing.T, m *stack.Management, name, timeout string, rules []rbacv1.PolicyRule) result {
	t.Helper()
	account(t, m, name, rules)
	arrived(t, m, name)
	p := podOf(t, m, name)
	time.Sleep(time.Second) // The API server learns of rights a moment after they are stored.
	return p.run(t, "post", "-n", name, "--watch-after", "0s", "--timeout", timeout)
}

// enough fails unless that went through and lacked nothing.
func enough(t *testing.T, r result) {
	t.Helper()
	if said := r.stdout + r.stderr; r.code != 0 || strings.Contains(said, "cannot ") || strings.Contains(said, "forbidden") {
		t.Error(r)
	}
	if want := "2 Clusters: 2 adopted"; r.termination != want {
		t.Errorf("the termination message is %q, want %q", r.termination, want)
	}
}

// eachIsNeeded runs post with all rights but one, for each verb of these rules or a
// sample of them: then it has to say which it lacks.
func eachIsNeeded(t *testing.T, m *stack.Management, all, rules []rbacv1.PolicyRule) {
	t.Helper()
	type right struct {
		name string
		rule rbacv1.PolicyRule
		verb string
	}
	var each []right
	for n, rule := range rules {
		for _, verb := range rule.Verbs {
			each = append(each, right{fmt.Sprintf("less-%d-%s", n, verb), rule, verb})
		}
	}
	if os.Getenv("MOVE_HOOK_SOAK") == "" {
		interrupt.Seeded(t).Shuffle(len(each), func(i, j int) { each[i], each[j] = each[j], each[i] })
		each = each[:min(len(each), 6)]
	}
	for _, less := range each {
		t.Run("without "+less.verb+" "+strings.Join(less.rule.Resources, ",")+" "+less.rule.APIGroups[0], func(t *testing.T) {
			t.Parallel()
			r := posted(t, m, less.name, "20s", without(all, less.rule, less.verb))
			said := r.stdout + r.stderr
			switch {
			case strings.Contains(said, "cannot "+less.verb+" resource"):
			case less.verb == "delete" && strings.Contains(said, "cannot set an ownerRef on a resource you can't delete"):
			case less.rule.Resources[0] == "*/finalizers" && strings.Contains(said, "cannot set blockOwnerDeletion"):
			case less.rule.Resources[0] == "events" && r.code == 0 && told(t, m, less.name) == 0:
			default:
				t.Errorf("it does not say that it may not %s %v: that is superfluous, or not told\n%s", less.verb, less.rule.Resources, r)
			}
		})
	}
}

// without is all rules but one verb of one of them.
func without(all []rbacv1.PolicyRule, rule rbacv1.PolicyRule, verb string) []rbacv1.PolicyRule {
	less := slices.DeleteFunc(slices.Clone(all), func(r rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(r, rule) })
	rule.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(v string) bool { return v == verb })
	if len(rule.Verbs) > 0 {
		less = append(less, rule)
	}
	return less
}

// told is how many Events there are.
func told(t *testing.T, m *stack.Management, namespace string) int {
	t.Helper()
	list := &corev1.EventList{}
	if err := m.Client().List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// system is the namespace of the ServiceAccounts.
func system(t *testing.T, m *stack.Management) {
	t.Helper()
	if err := client.IgnoreAlreadyExists(m.Client().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}})); err != nil {
		t.Fatal(err)
	}
}

// TestRole_TheGuardIsTakenAway comes before Clusters stay pending: then the guard stays.
func TestRole_TheGuardIsTakenAway(t *testing.T) {
	system(t, world.Management)
	all := rights(t, "rbac")
	guarded := func() bool {
		err := world.Client().Get(t.Context(), client.ObjectKey{Name: policy.GuardName}, &admissionv1.ValidatingAdmissionPolicy{})
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return err == nil
	}
	n := 0
	for _, rule := range all {
		if !aboutGuard(rule) {
			continue
		}
		for _, verb := range rule.Verbs {
			n++
			r := posted(t, world.Management, fmt.Sprintf("guarded-%d", n), "2m", without(all, rule, verb))
			if r.code != 0 || !guarded() {
				t.Errorf("without %s of %v the guard is taken away, or post fails\n%s", verb, rule.Resources, r)
			}
		}
	}
	if n == 0 {
		t.Fatal("the role has no right about the guard")
	}
	enough(t, posted(t, world.Management, "guarded", "2m", all))
	if guarded() {
		t.Error("the guard is still there")
	}
}

func TestRole_IsEnoughAndEachVerbIsNeeded(t *testing.T) {
	system(t, world.Management)
	all := rights(t, "rbac")
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		enough(t, posted(t, world.Management, "with-all", "2m", all))
		if told(t, world.Management, "with-all") == 0 {
			t.Error("there are no Events")
		}
	})
	eachIsNeeded(t, world.Management, all, slices.DeleteFunc(slices.Clone(all), aboutGuard))
}

// aboutGuard: such rights are missed only by who is the last.
func aboutGuard(r rbacv1.PolicyRule) bool { return r.APIGroups[0] == admissionv1.GroupName }

// Where the API server asks more of who writes owner references, the component adds
// just that.
func TestRole_WhereOwnerReferencesAreEnforced(t *testing.T) {
	m := stack.Must(stack.Start(t.Context(), stack.Options{Name: "enforced", Bare: true,
		APIServerArgs: []string{"--enable-admission-plugins=OwnerReferencesPermissionEnforcement"}}))(t)
	t.Cleanup(m.Stop)
	system(t, m)
	more := rights(t, "owner-enforcement")
	all := slices.Concat(rights(t, "rbac"), more)
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		enough(t, posted(t, m, "with-all", "2m", all))
	})
	eachIsNeeded(t, m, all, more)
}
