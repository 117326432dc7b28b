package bare_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/scaledown"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
	"github.com/move-hook/move-hook/test/stack"
)

const providerLabel = "cluster.x-k8s.io/provider"

// target is a server of its own: what is scaled down is so for all of it.
func target(t *testing.T) *stack.Management {
	t.Helper()
	m := stack.Must(stack.Start(t.Context(), stack.Options{Name: "scaled", Bare: true}))(t)
	t.Cleanup(m.Stop)
	return m
}

// provided gives a server Deployments, those that matter less among them.
func provided(t *testing.T, m *stack.Management) {
	t.Helper()
	stop := stack.Must(m.RunDeployments(t.Context()))(t)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	list := deploymentsOf(t, m)
	big, off, foreign := list[0].DeepCopy(), list[0].DeepCopy(), list[0].DeepCopy()
	big.Name, big.Spec.Replicas = "big", ptr.To[int32](3)
	off.Name, off.Spec.Replicas = "off-by-its-user", ptr.To[int32](0)
	foreign.Name, foreign.Namespace = "not-in-the-inventory", "elsewhere"
	for _, d := range []*appsv1.Deployment{big, off, foreign} {
		d.ObjectMeta = metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name, Labels: d.Labels}
		if err := m.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	hooks := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "provider", Labels: map[string]string{providerLabel: "x"}},
		Webhooks:   []admissionv1.ValidatingWebhook{stack.Webhook("strict.example.com", admissionv1.Fail), stack.Webhook("lax.example.com", admissionv1.Ignore)},
	}
	theirs := hooks.DeepCopy()
	theirs.Name, theirs.Labels = "somebody-elses", nil
	for _, h := range []client.Object{hooks, theirs} {
		if err := m.Client().Create(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
}

func deploymentsOf(t *testing.T, m *stack.Management) []appsv1.Deployment {
	t.Helper()
	list := &appsv1.DeploymentList{}
	if err := m.Client().List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// standing is what Down and Up may change, and what they may not.
func standing(t *testing.T, m *stack.Management) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, d := range deploymentsOf(t, m) {
		all["Deployment "+d.Namespace+"/"+d.Name] = []any{*d.Spec.Replicas, d.Annotations[graph.ReplicasAnnotation], d.Annotations[labels.Held] != ""}
	}
	list := &admissionv1.ValidatingWebhookConfigurationList{}
	if err := m.Client().List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for _, w := range list.Items {
		state := []any{w.Annotations[graph.WebhooksAnnotation]}
		for _, h := range w.Webhooks {
			state = append(state, h.Name+" "+string(*h.FailurePolicy)+" "+*h.ClientConfig.URL)
		}
		all["webhooks "+w.Name] = state
	}
	return all
}

// dying opens the server for a process that is killed after n writes: then the
// context ends.
func dying(t *testing.T, m *stack.Management, n int32) (context.Context, scaledown.Providers) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	t.Cleanup(kill)
	cfg := m.RESTConfig()
	var left atomic.Int32
	left.Store(n)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && left.Add(-1) < 0 {
				kill()
				return nil, errors.New("killed")
			}
			return next.RoundTrip(r)
		})
	})
	return ctx, scaledown.Providers{Cluster: stack.Must(management.OpenConfig(cfg, "scaled"))(t)}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestScaleDown_DownAndUpFromEveryKill(t *testing.T) {
	m := target(t)
	p := scaledown.Providers{Cluster: stack.Must(management.OpenConfig(m.RESTConfig(), "scaled"))(t)}
	if writes, err := p.Down(t.Context(), false); !errors.Is(err, scaledown.ErrNoProviders) || len(writes) > 0 || !strings.Contains(err.Error(), providerLabel) {
		t.Fatalf("without Deployments: %v, %v", writes, err)
	}
	hook(t, 4, "arm", "--with=scale-down", "--kubeconfig", m.Kubeconfig())
	provided(t, m)
	before := standing(t, m)

	writes := stack.Must(p.Down(t.Context(), true))(t)
	if diff := cmp.Diff(before, standing(t, m)); diff != "" {
		t.Errorf("the dry run changed something:\n%s", diff)
	}
	want := []flow.Write{"deployment.apps/big scaled to 0 (dry run)", "validatingwebhookconfiguration.admissionregistration.k8s.io/provider ignored where it fails (dry run)"}
	for _, w := range want {
		if !slices.Contains(writes, w) {
			t.Errorf("%q is not among %q", w, writes)
		}
	}
	steps := len(writes)
	if steps != 6 { // four providers, big, the webhooks
		t.Fatalf("%d writes: %q", steps, writes)
	}

	begin := time.Now().Truncate(time.Second)
	stack.Must(p.Down(t.Context(), false))(t)
	down := standing(t, m)
	for _, d := range deploymentsOf(t, m) {
		switch mark := d.Annotations[graph.ReplicasAnnotation]; d.Name {
		case "not-in-the-inventory":
			if *d.Spec.Replicas == 0 || mark != "" {
				t.Errorf("%s was scaled", d.Name)
			}
		case "off-by-its-user":
			if mark != "" {
				t.Errorf("%s was marked", d.Name)
			}
		default:
			if *d.Spec.Replicas != 0 || d.Status.Replicas != 0 || mark == "" {
				t.Errorf("%s: %d replicas, %d run, remembers %q", d.Name, *d.Spec.Replicas, d.Status.Replicas, mark)
			}
		}
	}
	if s := stack.Must(p.State(t.Context()))(t); !s.Down || s.Since.Before(begin) {
		t.Errorf("%+v", s)
	}
	if r := hook(t, 0, "status", "--to-kubeconfig", m.Kubeconfig()); !strings.Contains(r.stdout, "The providers of the target are scaled to zero since ") {
		t.Errorf("status does not tell\n%s", r)
	}
	if writes := stack.Must(p.Down(t.Context(), false))(t); len(writes) > 0 {
		t.Errorf("the second time it wrote %q", writes)
	}
	stack.Must(p.Up(t.Context(), false))(t)
	if diff := cmp.Diff(before, standing(t, m)); diff != "" {
		t.Errorf("after down and up (-before +after):\n%s", diff)
	}
	if writes := stack.Must(p.Up(t.Context(), false))(t); len(writes) > 0 {
		t.Errorf("the second time it wrote %q", writes)
	}

	for n := range steps {
		ctx, killed := dying(t, m, int32(n))
		// Fewer, where a request was refused because a Deployment's controller wrote meanwhile.
		if writes, err := killed.Down(ctx, false); err == nil || len(writes) > n {
			t.Errorf("killed after %d: %v, %q", n, err, writes)
		}
		stack.Must(p.Down(t.Context(), false))(t)
		if diff := cmp.Diff(down, standing(t, m)); diff != "" {
			t.Errorf("down again after a kill at %d:\n%s", n, diff)
		}
		ctx, killed = dying(t, m, int32(n))
		if _, err := killed.Up(ctx, false); err == nil {
			t.Errorf("killed after %d: no error", n)
		}
		if s := stack.Must(p.State(t.Context()))(t); !s.Down {
			t.Errorf("%d of %d writes of the way up are made, and it counts as up", n, steps)
		}
		stack.Must(p.Up(t.Context(), false))(t)
		if diff := cmp.Diff(before, standing(t, m)); diff != "" {
			t.Errorf("up again after a kill at %d:\n%s", n, diff)
		}
		// And a half-way down that is undone.
		ctx, killed = dying(t, m, int32(n))
		_, _ = killed.Down(ctx, false)
		stack.Must(p.Up(t.Context(), false))(t)
		if diff := cmp.Diff(before, standing(t, m)); diff != "" {
			t.Errorf("undone after a kill at %d:\n%s", n, diff)
		}
	}
}

func TestScaleDown_WhatOthersDidMeanwhile(t *testing.T) {
	m := target(t)
	p := scaledown.Providers{Cluster: stack.Must(management.OpenConfig(m.RESTConfig(), "scaled"))(t)}
	provided(t, m)
	stack.Must(p.Down(t.Context(), false))(t)
	// Who may scale up and may not touch webhooks is refused, and nothing is done by halves.
	cfg := m.RESTConfig()
	user("half")(cfg)
	half := stack.Must(management.OpenConfig(cfg, "scaled"))(t)
	grantOn(t, m, "half", []rbacv1.PolicyRule{
		{APIGroups: []string{"apiextensions.k8s.io", "clusterctl.cluster.x-k8s.io"}, Resources: []string{"*"}, Verbs: []string{"list"}},
		{APIGroups: []string{appsv1.GroupName}, Resources: []string{"deployments"}, Verbs: []string{"list", "patch"}},
	}, func(ctx context.Context) error { _, err := scaledown.Providers{Cluster: half}.State(ctx); return err })
	if r, err := pivot.Disarm(t.Context(), pivot.DisarmOptions{Target: half, All: true}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "webhookconfigurations") || len(r.Writes) > 0 {
		t.Errorf("who may not touch webhooks: %v, %q", err, r.Writes)
	}
	list := deploymentsOf(t, m)
	patch := func(d *appsv1.Deployment, body string) {
		t.Helper()
		if err := m.Client().Patch(t.Context(), d.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
			t.Fatal(err)
		}
	}
	var scaled, broken *appsv1.Deployment
	for i := range list {
		switch list[i].Name {
		case "big":
			scaled = &list[i]
		case "infrastructure-docker":
			broken = &list[i]
		}
	}
	// Somebody scaled up to two: that is what they want.
	patch(scaled, `{"spec":{"replicas":2}}`)
	patch(broken, `{"metadata":{"annotations":{"`+graph.ReplicasAnnotation+`":"many"}}}`)
	if _, err := p.Up(t.Context(), false); err == nil || !strings.Contains(err.Error(), "infrastructure-docker") || !strings.Contains(err.Error(), `"many"`) {
		t.Errorf("got %v", err)
	}
	patch(broken, `{"metadata":{"annotations":{"`+graph.ReplicasAnnotation+`":"1"}}}`)
	stack.Must(p.Up(t.Context(), false))(t)
	for _, d := range deploymentsOf(t, m) {
		if d.Name == "big" && (*d.Spec.Replicas != 2 || len(d.Annotations) > 0) {
			t.Errorf("big: %d replicas, annotations %v", *d.Spec.Replicas, d.Annotations)
		}
	}
}

func TestScaleDown_PostHoldsThenScalesUpThenReleases(t *testing.T) {
	m := target(t)
	c := stack.Must(management.OpenConfig(m.RESTConfig(), "scaled"))(t)
	p := scaledown.Providers{Cluster: c}
	provided(t, m)
	// A Cluster that was there before is nobody's business.
	const ns = "fleet"
	arrive(t, m, ns, "old")
	complete(t, m, ns, "old")
	rebuild(t, m, ns, "old")
	old := get(t, c, id(graph.Cluster, ns, "old")).ResourceVersion
	// Creation is stamped in whole seconds: the next must not be the Cluster's.
	next := get(t, c, id(graph.Cluster, ns, "old")).Created.Add(time.Second)
	<-time.After(time.Until(next))
	before := standing(t, m)
	// Armed, given up, armed again.
	hook(t, 0, "arm", "--with=scale-down", "--kubeconfig", m.Kubeconfig())
	hook(t, 0, "disarm", "--kubeconfig", m.Kubeconfig())
	if diff := cmp.Diff(before, standing(t, m)); diff != "" {
		t.Errorf("arm and disarm:\n%s", diff)
	}
	hook(t, 0, "arm", "--with=scale-down", "--kubeconfig", m.Kubeconfig())

	arrive(t, m, ns, "c1")
	complete(t, m, ns, "c1")
	arrive(t, m, ns, "c2")
	arrive(t, m, "elsewhere", "x")
	post := launch(t, "post", "--kubeconfig", m.Kubeconfig(), "-n", ns, "--settle", "1s", "--watch-after", "1s", "--timeout", "5m")
	md := func(name string) *graph.Object { return get(t, c, id(graph.MachineDeployment, ns, name+"-md-0")) }
	down := func() bool { return stack.Must(p.State(context.WithoutCancel(t.Context())))(t).Down }
	eventually(t, post, "c1 held", func() bool { return labels.IsHeld(labels.MetaOf(md("c1"))) })
	if len(md("c1").Owners) != 1 || !down() {
		t.Errorf("held before its owners were right, or the providers run: %v", md("c1").Owners)
	}
	complete(t, m, ns, "c2")
	// A Cluster of another namespace keeps the providers down.
	eventually(t, post, "told", func() bool { return strings.Contains(post.String(), "Cluster elsewhere/x arrived meanwhile") })
	if !labels.IsHeld(labels.MetaOf(md("c2"))) || !down() {
		t.Error("c2 is not held, or the providers run")
	}
	if err := m.Client().Delete(t.Context(), stack.Cluster("x").InNamespace("elsewhere").Objects()[0]); err != nil {
		t.Fatal(err)
	}
	eventually(t, post, "scaled up", func() bool { return !down() })
	for _, name := range []string{"c1", "c2"} {
		if !labels.IsHeld(labels.MetaOf(md(name))) {
			t.Errorf("%s was released before its status was rebuilt", name)
		}
		rebuild(t, m, ns, name)
	}
	if code := post.ended(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, name := range []string{"c1", "c2"} {
		if !adopted(t, c, ns, name) {
			t.Errorf("%s is not adopted", name)
		}
	}
	if diff := cmp.Diff(before, standing(t, m)); diff != "" {
		t.Errorf("the providers are not as before:\n%s", diff)
	}
	if now := get(t, c, id(graph.Cluster, ns, "old")).ResourceVersion; now != old {
		t.Error("the Cluster that was there before was written")
	}
	if !strings.Contains(post.String(), "deployment.apps/big scaled to 3") {
		t.Error("nothing says that the providers were scaled up")
	}
}
