package bare_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/move-hook/move-hook/test/stack"
)

// opposite is a second bare management cluster, the target of a preflight.
type opposite struct {
	*stack.Management
	proxy     *stack.APIProxy
	namespace string
	// alone are the findings of the source without a target.
	alone []string
}

// TestPreflight_TargetFindings plants each fault of a target and sees its finding and
// no other; without a fault there is none, and the target is as it was.
func TestPreflight_TargetFindings(t *testing.T) {
	const namespace = "across"
	if err := stack.Cluster("c1").InNamespace(namespace).ControlPlane(1).Workers("md-0", 1).Synthesize(t.Context(), world.Management); err != nil {
		t.Fatal(err)
	}
	if err := stack.Provisioned(t.Context(), world, namespace); err != nil {
		t.Fatal(err)
	}
	target := stack.Must(stack.Start(t.Context(), stack.Options{Name: "target", Bare: true, Progress: os.Stderr}))(t)
	t.Cleanup(target.Stop)
	stack.LogsOnFailure(t, target)
	o := &opposite{Management: target, proxy: stack.Must(stack.Proxy(target))(t), namespace: namespace}
	t.Cleanup(o.proxy.Close)
	o.alone = o.ids(t, world.Kubeconfig(), "")

	t.Run("nothing, and no namespace", o.untouched)
	if err := target.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	t.Run("nothing", o.untouched)
	for name, plant := range map[string]func(*testing.T) string{
		"a provider is older": func(t *testing.T) string {
			change(t, o, o.provider(t), func(p *clusterctlv1.Provider) { p.Version = "v1.0.0" })
			return "ProviderOlder InfrastructureProvider docker stops"
		},
		"a provider is missing": func(t *testing.T) string {
			o.without(t, o.provider(t))
			return "ProviderMissing InfrastructureProvider docker stops"
		},
		"a CRD is not labelled": func(t *testing.T) string {
			change(t, o, o.crd(t, "kubeadmconfigs.bootstrap.cluster.x-k8s.io"), func(c *apiextensionsv1.CustomResourceDefinition) {
				delete(c.Labels, clusterctlv1.ClusterctlLabel)
			})
			return "KindUnlabelled KubeadmConfig.bootstrap.cluster.x-k8s.io harms"
		},
		"a version is not served": func(t *testing.T) string {
			change(t, o, o.crd(t, "kubeadmconfigs.bootstrap.cluster.x-k8s.io"), func(c *apiextensionsv1.CustomResourceDefinition) {
				for i := range c.Spec.Versions {
					c.Spec.Versions[i].Served = !c.Spec.Versions[i].Storage
				}
			})
			return "VersionMissing KubeadmConfig.bootstrap.cluster.x-k8s.io stops"
		},
		"a kind is missing": func(t *testing.T) string {
			o.without(t, o.crd(t, "devmachinetemplates.infrastructure.cluster.x-k8s.io"))
			return "KindMissing DevMachineTemplate.infrastructure.cluster.x-k8s.io stops"
		},
		"a quota": func(t *testing.T) string {
			o.with(t, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q"}, Spec: corev1.ResourceQuotaSpec{
				Hard: corev1.ResourceList{"count/machines.cluster.x-k8s.io": resource.MustParse("1")}}})
			return "QuotaExceeded ResourceQuota across/q stops"
		},
		"another Cluster's object has the name": func(t *testing.T) string {
			m := machineOf(t, namespace, "c1-cp-0")
			m.Labels[clusterv1.ClusterNameLabel], m.Spec.ClusterName = "c2", "c2"
			o.with(t, m)
			return "NameClash Machine across/c1-cp-0 stops"
		},
		"another copy of the same name": func(t *testing.T) string {
			m := machineOf(t, namespace, "c1-cp-0")
			m.Spec.Version = "v1.30.0"
			o.with(t, m)
			return "NameClash Machine across/c1-cp-0 harms"
		},
		"an equal copy": func(t *testing.T) string {
			o.with(t, machineOf(t, namespace, "c1-cp-0"))
			return "AlreadyThere Namespace across notes"
		},
		"a policy": func(t *testing.T) string {
			o.policy(t, "no-machines", nil)
			return "RefusedByTarget Machine across/c1-cp-0 stops"
		},
		"a field that the schema does not take": func(t *testing.T) string {
			change(t, o, o.crd(t, "devmachines.infrastructure.cluster.x-k8s.io"), func(c *apiextensionsv1.CustomResourceDefinition) {
				for i := range c.Spec.Versions {
					spec := c.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"]
					spec.Required = append(spec.Required, "wanted")
					spec.Properties["wanted"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
					c.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"] = spec
				}
			})
			return "RefusedByTarget DevMachine across/c1-cp-0 stops"
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := plant(t)
			o.sees(t, want)
		})
	}
	t.Run("the data of Secrets is not read", o.confidential)
	t.Run("our own policies", o.armed)
	t.Run("no namespace, and a policy for another", func(t *testing.T) {
		o.inNowhere(t, "only-default", []string{metav1.NamespaceDefault}, "OfferUnsure Machine nowhere/c1-cp-0 notes")
	})
	t.Run("no namespace, and a policy for all", func(t *testing.T) {
		o.inNowhere(t, "everywhere", nil, "RefusedByTarget Machine nowhere/c1-cp-0 stops")
	})
	t.Run("permissions", o.permissions)
	t.Run("a Cluster that lives there", func(t *testing.T) {
		c := &clusterv1.Cluster{}
		take(t, world, c, namespace, "c1")
		o.with(t, c)
		o.sees(t, "LiveOnTarget Cluster across/c1 stops", "AlreadyThere Namespace across notes")
	})
	// Last: without controllers a namespace stays like this.
	t.Run("a namespace that is going", func(t *testing.T) {
		if err := target.Client().Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			t.Fatal(err)
		}
		o.sees(t, "NamespaceTerminating Namespace across stops")
	})
}

// ids runs preflight and gives its findings as "ID object severity".
func (o *opposite) ids(t *testing.T, source, target string, more ...string) []string {
	t.Helper()
	args := append([]string{"preflight", "--kubeconfig", source, "-n", o.namespace, "-o", "json"}, more...)
	if target != "" {
		args = append(args, "--to-kubeconfig", target)
	}
	out, err := exec.CommandContext(t.Context(), world.hook, args...).Output()
	var result struct {
		Findings []struct{ ID, Object, Severity string }
	}
	if json.Unmarshal(out, &result) != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	found := []string{}
	for _, f := range result.Findings {
		found = append(found, f.ID+" "+f.Object+" "+f.Severity)
	}
	slices.Sort(found)
	return found
}

// sees waits until exactly these findings come with the target. A policy or a CRD
// takes a moment to be in force.
func (o *opposite) sees(t *testing.T, want ...string) {
	t.Helper()
	want = append(want, o.alone...)
	slices.Sort(want)
	var got []string
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, 30*time.Second, true, func(context.Context) (bool, error) {
		got = o.ids(t, world.Kubeconfig(), o.Kubeconfig())
		return slices.Equal(got, want), nil
	})
	if err != nil {
		t.Error(cmp.Diff(want, got))
	}
}

// untouched: no finding, no write, at most one dry run for each object, and everything
// on the target is as it was.
func (o *opposite) untouched(t *testing.T) {
	before := o.everything(t)
	o.proxy.Forget()
	if got := o.ids(t, world.Kubeconfig(), o.proxy.Kubeconfig()); !slices.Equal(got, o.alone) {
		t.Error(cmp.Diff(o.alone, got))
	}
	if writes := o.proxy.Mutating(); len(writes) > 0 {
		t.Errorf("it writes: %v", writes)
	}
	offers := map[string]int{}
	for _, r := range o.proxy.Requests() {
		if r.DryRun {
			var m metav1.PartialObjectMetadata
			if err := json.Unmarshal([]byte(r.Body), &m); err != nil {
				t.Fatal(err)
			}
			offers[r.Resource+" "+m.Name]++
			if r.Resource == "secrets" && strings.Contains(r.Body, `"data"`) {
				t.Errorf("a Secret's data is offered: %s", r.Body)
			}
			if len(m.OwnerReferences) > 0 {
				t.Errorf("%s %s is offered with owners", r.Resource, m.Name)
			}
		}
	}
	for what, n := range offers {
		if n > 1 {
			t.Errorf("%s is offered %d times", what, n)
		}
	}
	if objects := stack.Must(stack.ReadAll(t.Context(), world, o.namespace))(t); len(objects) != len(offers) {
		t.Errorf("%d objects and %d offers: %v", len(objects), len(offers), offers)
	}
	if diff := cmp.Diff(before, o.everything(t)); diff != "" {
		t.Errorf("the target has changed\n%s", diff)
	}
}

// confidential: the source sends no data of a Secret, not even to who offers it.
func (o *opposite) confidential(t *testing.T) {
	if err := stack.FillSecrets(t.Context(), world, o.namespace, confidential); err != nil {
		t.Fatal(err)
	}
	l := stack.Must(stack.Listen(world))(t)
	t.Cleanup(l.Close)
	o.ids(t, serverKubeconfig(t, l.URL), o.Kubeconfig())
	found, asked := l.Heard(confidential)
	if found {
		t.Error("data of a Secret was answered")
	}
	if !slices.ContainsFunc(asked, func(a stack.SecretsRequest) bool { return strings.HasPrefix(a.Accept, "application/json;as=Table") }) {
		t.Errorf("among %v is no request for what is offered: nothing is proven", asked)
	}
}

// everything is the resourceVersion of every object of a kind that could be concerned,
// in all namespaces.
func (o *opposite) everything(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	namespaces := &corev1.NamespaceList{}
	if err := o.Client().List(t.Context(), namespaces); err != nil {
		t.Fatal(err)
	}
	for _, ns := range namespaces.Items {
		all["Namespace "+ns.Name] = ns.ResourceVersion
	}
	for _, u := range stack.Must(stack.ReadAll(t.Context(), o, ""))(t) {
		all[fmt.Sprint(u.GetKind(), " ", u.GetNamespace(), "/", u.GetName())] = u.GetResourceVersion()
	}
	return all
}

func take[T client.Object](t *testing.T, m stack.API, into T, namespace, name string) T {
	t.Helper()
	if err := m.Client().Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, into); err != nil {
		t.Fatal(err)
	}
	return into
}

// machineOf is a Machine of the source, to be created on the target.
func machineOf(t *testing.T, namespace, name string) *clusterv1.Machine {
	return take(t, world, &clusterv1.Machine{}, namespace, name)
}

// with creates an object on the target until the test ends.
func (o *opposite) with(t *testing.T, object client.Object) {
	t.Helper()
	bare(object)
	if err := o.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Client().Delete(context.Background(), object); err != nil {
			t.Error(err)
		}
	})
}

func bare(object client.Object) {
	object.SetUID("")
	object.SetResourceVersion("")
	object.SetOwnerReferences(nil)
}

// without takes an object off the target until the test ends.
func (o *opposite) without(t *testing.T, object client.Object) {
	t.Helper()
	if err := o.Client().Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := wait.PollUntilContextTimeout(context.Background(), 200*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
			bare(object)
			return o.Create(ctx, object.DeepCopyObject().(client.Object)) == nil, nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// change edits an object of the target until the test ends.
func change[T client.Object](t *testing.T, o *opposite, object T, edit func(T)) {
	t.Helper()
	before := object.DeepCopyObject().(T)
	edit(object)
	after := object.DeepCopyObject().(T)
	if err := o.Client().Patch(t.Context(), object, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Client().Patch(context.Background(), before.DeepCopyObject().(client.Object), client.MergeFrom(after)); err != nil {
			t.Error(err)
		}
	})
}

func (o *opposite) crd(t *testing.T, name string) *apiextensionsv1.CustomResourceDefinition {
	return take(t, o, &apiextensionsv1.CustomResourceDefinition{}, "", name)
}

// provider is the infrastructure provider's entry in the inventory.
func (o *opposite) provider(t *testing.T) *clusterctlv1.Provider {
	t.Helper()
	list := &clusterctlv1.ProviderList{}
	if err := o.Client().List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].ProviderName == "docker" {
			return &list.Items[i]
		}
	}
	t.Fatal("there is no infrastructure provider")
	return nil
}

// policy makes the target refuse control-plane Machines, in some namespaces or all.
func (o *opposite) policy(t *testing.T, name string, namespaces []string) {
	t.Helper()
	o.with(t, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{clusterv1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"machines"}}}}}},
		Validations: []admissionv1.Validation{{Expression: `!object.metadata.name.startsWith("c1-cp")`, Message: "no control planes here"}},
	}})
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}
	if namespaces != nil {
		binding.Spec.MatchResources = &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: namespaces}}}}
	}
	o.with(t, binding)
}

// armed: our own policies on the target refuse nothing that is offered.
func (o *opposite) armed(t *testing.T) {
	hook(t, 0, "arm", "--kubeconfig", o.Kubeconfig(), "-n", o.namespace, "--hold-owners")
	got := o.ids(t, world.Kubeconfig(), o.Kubeconfig())
	hook(t, 0, "disarm", "--kubeconfig", o.Kubeconfig())
	if !slices.Equal(got, o.alone) {
		t.Error(cmp.Diff(o.alone, got))
	}
}

// inNowhere plants a policy where the target has not got the namespace that moves.
func (o *opposite) inNowhere(t *testing.T, policy string, namespaces []string, want string) {
	there := &opposite{Management: o.Management, namespace: "nowhere"}
	key := client.ObjectKey{Namespace: there.namespace, Name: "c1"}
	if err := world.Client().Get(t.Context(), key, &clusterv1.Cluster{}); err != nil {
		if err := stack.Cluster("c1").InNamespace(there.namespace).ControlPlane(1).Workers("md-0", 1).Synthesize(t.Context(), world.Management); err != nil {
			t.Fatal(err)
		}
		if err := stack.Provisioned(t.Context(), world, there.namespace); err != nil {
			t.Fatal(err)
		}
	}
	there.alone = there.ids(t, world.Kubeconfig(), "")
	o.policy(t, policy, namespaces)
	there.sees(t, want)
}

// permissions: what a user lacks is named, and with the printed roles nothing is.
func (o *opposite) permissions(t *testing.T) {
	const name = "limited-mover"
	as := func(kubeconfig string) string {
		cfg := stack.Must(clientcmd.LoadFromFile(kubeconfig))(t)
		for _, u := range cfg.AuthInfos {
			u.Impersonate = name
		}
		return writeKubeconfig(t, cfg)
	}
	source, target := as(world.Kubeconfig()), as(o.Kubeconfig())
	got := o.ids(t, source, target)
	want := []string{
		"MissingPermission customresourcedefinitions.apiextensions.k8s.io on the source stops",
		"MissingPermission customresourcedefinitions.apiextensions.k8s.io on the target stops",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("a user without any right", diff)
	}
	for side, m := range map[string]*stack.Management{"source": world.Management, "target": o.Management} {
		flag := map[string]string{"source": "--kubeconfig", "target": "--to-kubeconfig"}[side]
		r := hook(t, 0, "preflight", flag, m.Kubeconfig(), "--print-role", side)
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict([]byte(r.stdout), role); err != nil {
			t.Fatal(err)
		}
		if side == "target" {
			for i, rule := range role.Rules {
				if slices.Contains(rule.Resources, "machines") {
					role.Rules[i].Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(v string) bool { return v == "create" })
				}
			}
		}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}}
		for _, object := range []client.Object{role, binding} {
			if err := m.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = m.Client().Delete(context.Background(), object) })
		}
	}
	lacks := func() (lacking []string) {
		for _, f := range o.ids(t, source, target) {
			if strings.HasPrefix(f, "MissingPermission") {
				lacking = append(lacking, f)
			}
		}
		return lacking
	}
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, 20*time.Second, true, func(context.Context) (bool, error) {
		got = lacks()
		return slices.Contains(got, "MissingPermission machines.cluster.x-k8s.io in namespace across on the target stops") &&
			!slices.ContainsFunc(got, func(f string) bool { return strings.Contains(f, "leases") }), nil
	})
	if err != nil {
		t.Error("a right is taken out of the role and is not missed", got)
	}
	role := &rbacv1.ClusterRole{}
	take(t, o, role, "", "move-hook-target")
	for i, rule := range role.Rules {
		if slices.Contains(rule.Resources, "machines") {
			role.Rules[i].Verbs = append(rule.Verbs, "create")
		}
	}
	if err := o.Client().Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), time.Second, 20*time.Second, true, func(context.Context) (bool, error) {
		got = lacks()
		return len(got) == 0, nil
	})
	if err != nil {
		t.Error("with the printed roles something is missing", got)
	}
}
