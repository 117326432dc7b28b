package job_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/test/interrupt"
	"github.com/move-hook/move-hook/test/stack"
)

// Where the target was armed with --with=scale-down, the component adds what scales
// the providers up again. They are down for the whole management cluster, so the runs
// follow one another, and all are about the same two Clusters.
func TestRole_WhereTheProvidersAreScaledDown(t *testing.T) {
	m := stack.Must(stack.Start(t.Context(), stack.Options{Name: "scaled", Bare: true}))(t)
	t.Cleanup(m.Stop)
	system(t, m)
	base, more := rights(t, "rbac"), rights(t, "scaled-down")
	each := lacking(t, more)
	account(t, m, "without", base)
	for _, less := range each {
		account(t, m, less.account(), slices.Concat(base, less.rest))
	}
	account(t, m, "with-all", slices.Concat(base, more))

	provided(t, m)
	before := providers(t, m)
	arm(t, m)
	const namespace = "restored"
	// No record and no mark comes with them: that they came while nobody ran is all that tells.
	synthesized(t, m, namespace, "c1", "c2")
	orphaned(t, m, namespace)
	args := []string{"post", "-n", namespace, "--settle", "1s", "--watch-after", "0s", "--timeout"}

	t.Run("without the component", func(t *testing.T) {
		// The log says it after 10 seconds, as "without list deployments" has it.
		r := podOf(t, m, "without").run(t, append(args, "6s")...)
		if r.code != 3 || strings.Contains(r.termination, "\n") ||
			strings.Count(r.termination, "whether the providers are scaled down cannot be seen: ") != 1 ||
			!strings.Contains(r.termination, `cannot list resource "deployments"`) || !strings.Contains(r.termination, wayOut) {
			t.Errorf("its last words are not one line with what is lacking, and the way out\n%s", r)
		}
	})
	for _, less := range each {
		t.Run("without "+less.verb+" "+less.resource, func(t *testing.T) {
			arm(t, m) // The webhooks, where a run before has come as far as that.
			p := podOf(t, m, less.account())
			if less.verb == "get" {
				p = p.through(t, inTheWay(t, m))
			}
			lacks := fmt.Sprintf("cannot %s resource %q", less.verb, less.resource)
			r := p.runUntil(t, lacks, append(args, "1m")...)
			if r.code != 3 || !strings.Contains(r.stderr, lacks) || !strings.Contains(r.stderr, wayOut) || !strings.Contains(r.termination, lacks) {
				t.Errorf("it does not say that it may not %s %s: that is superfluous, or not told\n%s", less.verb, less.resource, r)
			}
			if !down(providers(t, m)) {
				t.Errorf("the providers run\n%s", r)
			}
		})
	}
	t.Run("all", func(t *testing.T) {
		arm(t, m)
		rebuilt(t, m, namespace)
		enough(t, podOf(t, m, "with-all").through(t, inTheWay(t, m)).run(t, append(args, "1m")...))
		if diff := cmp.Diff(before, providers(t, m)); diff != "" {
			t.Errorf("the providers are not as they were before arm (-before +after):\n%s", diff)
		}
	})
}

// wayOut is what a post without rights names.
const wayOut = "give post the rights of config/scaled-down, or run move-hook disarm"

func arm(t *testing.T, m *stack.Management) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), world.hook, "arm", "--with=scale-down", "--kubeconfig", m.Kubeconfig()).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// right is one verb of one resource, and what the others come to.
type right struct {
	verb, resource string
	rest           []rbacv1.PolicyRule
}

// account is the name of who lacks it.
func (r right) account() string { return "less-" + r.verb + "-" + r.resource }

// lacking are the rights that these rules come to, or a sample of them.
func lacking(t *testing.T, rules []rbacv1.PolicyRule) []right {
	t.Helper()
	var single []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				single = append(single, rbacv1.PolicyRule{APIGroups: rule.APIGroups, Resources: []string{resource}, Verbs: []string{verb}})
			}
		}
	}
	var each []right
	for i, rule := range single {
		each = append(each, right{rule.Verbs[0], rule.Resources[0], slices.Delete(slices.Clone(single), i, i+1)})
	}
	if os.Getenv("MOVE_HOOK_SOAK") == "" {
		// Who may not list Deployments does no more than who has nothing of the component.
		each = slices.DeleteFunc(each, func(r right) bool { return r.verb == "list" && r.resource == "deployments" })
		interrupt.Seeded(t).Shuffle(len(each), func(i, j int) { each[i], each[j] = each[j], each[i] })
		each = each[:min(len(each), 3)]
	}
	return each
}

// provided gives a server the providers' Deployments and webhooks, of both sorts.
func provided(t *testing.T, m *stack.Management) {
	t.Helper()
	stop := stack.Must(m.RunDeployments(context.WithoutCancel(t.Context())))(t)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	of := metav1.ObjectMeta{Name: "provider", Labels: map[string]string{"cluster.x-k8s.io/provider": "x"}}
	hook := stack.Webhook("strict.example.com", admissionv1.Fail)
	for _, o := range []client.Object{
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: of, Webhooks: []admissionv1.ValidatingWebhook{hook}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: of, Webhooks: []admissionv1.MutatingWebhook{{
			Name: hook.Name, FailurePolicy: hook.FailurePolicy, SideEffects: hook.SideEffects, AdmissionReviewVersions: hook.AdmissionReviewVersions,
			ClientConfig: hook.ClientConfig, Rules: hook.Rules,
		}}},
	} {
		if err := m.Client().Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// providers is what arm and post change of them, in words.
func providers(t *testing.T, m *stack.Management) map[string]string {
	t.Helper()
	deployments := &appsv1.DeploymentList{}
	validating, mutating := &admissionv1.ValidatingWebhookConfigurationList{}, &admissionv1.MutatingWebhookConfigurationList{}
	for _, list := range []client.ObjectList{deployments, validating, mutating} {
		if err := m.Client().List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]string{}
	for _, d := range deployments.Items {
		all["Deployment "+d.Name] = fmt.Sprintf("%d replicas, had %s", *d.Spec.Replicas, d.Annotations[graph.ReplicasAnnotation])
	}
	for _, w := range validating.Items {
		all["validating "+w.Name] = fmt.Sprint(*w.Webhooks[0].FailurePolicy, w.Annotations[graph.WebhooksAnnotation])
	}
	for _, w := range mutating.Items {
		all["mutating "+w.Name] = fmt.Sprint(*w.Webhooks[0].FailurePolicy, w.Annotations[graph.WebhooksAnnotation])
	}
	return all
}

// rebuilt plays the bootstrap controller, whose status keeps Clusters waiting until
// then. It does not matter here that it comes before the Deployments are up.
func rebuilt(t *testing.T, m *stack.Management, namespace string) {
	t.Helper()
	configs := &bootstrapv1.KubeadmConfigList{}
	if err := m.Client().List(t.Context(), configs, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range configs.Items {
		configs.Items[i].Status.DataSecretName = configs.Items[i].Name
		if err := m.Client().Status().Update(t.Context(), &configs.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
}

// down: at least one Deployment is at zero.
func down(providers map[string]string) bool {
	for name, words := range providers {
		if strings.HasPrefix(name, "Deployment ") && strings.HasPrefix(words, "0 replicas") {
			return true
		}
	}
	return false
}

// inTheWay is a listener that has somebody else write to a Deployment just before it
// is scaled up for the first time: what is sent then is refused as a conflict.
func inTheWay(t *testing.T, m *stack.Management) *stack.Listener {
	t.Helper()
	l := stack.Must(stack.ListenTLS(m))(t)
	t.Cleanup(l.Close)
	var first sync.Once
	l.Before(func(r *http.Request) {
		if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/deployments/") {
			return
		}
		first.Do(func() {
			parts := strings.Split(r.URL.Path, "/")
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: parts[len(parts)-3], Name: path.Base(r.URL.Path)}}
			body := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/written":%q}}}`, time.Now())
			if err := m.Client().Patch(context.WithoutCancel(t.Context()), d, client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
				t.Error(err)
			}
		})
	})
	return l
}
