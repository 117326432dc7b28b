package arm_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/policy"
	"github.com/move-hook/move-hook/pkg/labels"
	"github.com/move-hook/move-hook/test/stack"
)

// everything is one Cluster with each kind that the arm knows, and a MachineSet
// and Machines as a restore brings them.
func everything(ns, name string) []client.Object {
	return append(stack.Cluster(name).InNamespace(ns).ControlPlane(3).Workers("md-0", 2).MachinePool("mp-0", 1).HealthCheck().UserCertificates().Objects(),
		machineSet(ns, name+"-md-0-x"), machine(ns, name+"-cp-x", true), machine(ns, name+"-md-0-x-y", false))
}

func machineSet(ns, name string) *clusterv1.MachineSet {
	selector := map[string]string{"set": name}
	return &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: clusterv1.MachineSetSpec{
		ClusterName: "c", Selector: metav1.LabelSelector{MatchLabels: selector},
		Template: clusterv1.MachineTemplateSpec{ObjectMeta: clusterv1.ObjectMeta{Labels: selector}, Spec: machine(ns, name, false).Spec},
	}}
}

func machine(ns, name string, controlPlane bool) *clusterv1.Machine {
	all := stack.Cluster("c").InNamespace(ns).StandAloneControlPlane(1).Objects()
	m := all[len(all)-1].(*clusterv1.Machine)
	m.Name = name
	if !controlPlane {
		delete(m.Labels, clusterv1.MachineControlPlaneLabel)
	}
	return m
}

// stamp is what the arm does to an object.
type stamp struct{ held, pending bool }

// stampOf reads it, and fails on any mark that is none of ours or not whole.
func stampOf(t *testing.T, o client.Object) stamp {
	t.Helper()
	m := meta(t, o)
	view := labels.Meta{Labels: m.GetLabels(), Annotations: m.GetAnnotations()}
	holder, held := labels.HolderOf(view)
	if held && (holder.Who != "move-hook arm" || time.Since(holder.Since).Abs() > time.Hour || view.Annotations[labels.Paused] != "" || !labels.PausedByAnnotation(view)) {
		t.Errorf("%T %s: held by %+v: %v", o, o.GetName(), holder, view.Annotations)
	}
	wantLabels, wantAnnotations := maps.Clone(o.GetLabels()), maps.Clone(o.GetAnnotations())
	if held {
		wantAnnotations = labels.Change{SetAnnotations: map[string]string{labels.Paused: "", labels.Held: holder.String()}}.Apply(labels.Meta{Annotations: wantAnnotations}).Annotations
	}
	if labels.IsPending(view) {
		wantLabels = labels.MarkPending(labels.Meta{}).Apply(labels.Meta{Labels: wantLabels}).Labels
	}
	if diff := cmp.Diff(wantLabels, view.Labels) + cmp.Diff(wantAnnotations, view.Annotations); diff != "" && (len(wantLabels)+len(view.Labels) > 0) {
		t.Errorf("%T %s has other marks than the arm's: %s", o, o.GetName(), diff)
	}
	return stamp{held, labels.IsPending(view)}
}

// wanted says what the arm has to do to an arriving object of a kind.
func wanted(o client.Object) stamp {
	switch o := o.(type) {
	case *clusterv1.Cluster, *clusterv1.MachineDeployment, *clusterv1.MachineSet, *clusterv1.MachinePool, *clusterv1.MachineHealthCheck:
		return stamp{held: true}
	case *controlplanev1.KubeadmControlPlane:
		return stamp{held: true, pending: true}
	case *clusterv1.Machine:
		_, controlPlane := o.Labels[clusterv1.MachineControlPlaneLabel]
		return stamp{pending: controlPlane}
	}
	return stamp{}
}

// arrives creates objects as somebody and demands what becomes of each.
func arrives(t *testing.T, by client.Client, want func(client.Object) stamp, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := by.Create(t.Context(), o.DeepCopyObject().(client.Object)); err != nil {
			t.Fatalf("%T %s: %v", o, o.GetName(), err)
		}
		if got := stampOf(t, o); got != want(o) {
			t.Errorf("%T %s: %+v, want %+v", o, o.GetName(), got, want(o))
		}
	}
}

func nothing(client.Object) stamp { return stamp{} }

func TestArm_StampsWhatArrivesAndNothingElse(t *testing.T) {
	const ns = "arm-stamps"
	namespace(t, ns)
	before := everything(ns, "before")
	if err := world.Create(t.Context(), before...); err != nil {
		t.Fatal(err)
	}
	versions := versionsOf(t, before)
	arm(t, policy.ArmOptions{Scope: policy.Scope{Namespace: ns}})
	arrives(t, world.Client(), wanted, everything(ns, "c")...)

	if diff := cmp.Diff(versions, versionsOf(t, before)); diff != "" {
		t.Errorf("what was there before changed: %s", diff)
	}
	for _, o := range before {
		touched := o.DeepCopyObject().(client.Object)
		if err := world.Client().Patch(t.Context(), touched, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"theirs":"x"}}}`))); err != nil {
			t.Fatal(err)
		}
		o.SetAnnotations(map[string]string{"theirs": "x"})
		if got := stampOf(t, o); got != (stamp{}) {
			t.Errorf("%T %s was there before and is stamped when somebody writes it: %+v", o, o.GetName(), got)
		}
	}
}

func versionsOf(t *testing.T, objects []client.Object) map[string]string {
	out := map[string]string{}
	for _, o := range objects {
		out[fmt.Sprintf("%T %s", o, o.GetName())] = meta(t, o).GetResourceVersion()
	}
	return out
}

func TestArm_WhatItsUserPausedIsLeftAlone(t *testing.T) {
	const ns = "arm-paused"
	namespace(t, ns)
	arm(t, policy.ArmOptions{Scope: policy.Scope{Namespace: ns}})
	for value, name := range map[string]string{"": "empty", "by me": "value"} {
		objects := everything(ns, name)
		for _, o := range objects {
			o.SetAnnotations(map[string]string{labels.Paused: value})
		}
		arrives(t, world.Client(), nothing, objects...)
	}
	paused := stack.Cluster("spec").InNamespace(ns).Paused().ControlPlane(1).Workers("md-0", 1).Objects()
	arrives(t, world.Client(), func(o client.Object) stamp {
		if _, ok := o.(*clusterv1.Cluster); ok {
			return stamp{}
		}
		return wanted(o)
	}, paused...)

	// A hold that came along keeps its holder, and is made whole where somebody took
	// the pause off.
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	travelled := labels.Holder{Who: "move-hook", Since: since}.String()
	for name, annotations := range map[string]map[string]string{
		"whole": {labels.Paused: "", labels.Held: travelled}, "half": {labels.Held: travelled},
	} {
		all := stack.Cluster("held-" + name).InNamespace(ns).ControlPlane(1).Objects()
		kcp := all[len(all)-1]
		kcp.SetAnnotations(annotations)
		if err := world.Client().Create(t.Context(), kcp.DeepCopyObject().(client.Object)); err != nil {
			t.Fatal(err)
		}
		m := meta(t, kcp)
		if diff := cmp.Diff(map[string]string{labels.Paused: "", labels.Held: travelled}, m.GetAnnotations()); diff != "" || m.GetLabels()[labels.Adoption] != labels.Pending {
			t.Errorf("%s: labels %v, annotations %s", name, m.GetLabels(), diff)
		}
	}
}

func TestArm_WhatAProviderMakesIsNoArrival(t *testing.T) {
	const ns, other = "arm-providers", "arm-backup-tool"
	namespace(t, ns)
	arm(t, policy.ArmOptions{Scope: policy.Scope{Namespace: ns}, HoldOwners: true})
	for account, want := range map[string]func(client.Object) stamp{
		"capi-system:capi-manager": nothing, "capi-kubeadm-control-plane-system:capi-kubeadm-control-plane-manager": nothing,
		other + ":restore": wanted,
	} {
		user := "system:serviceaccount:" + account
		mayAll(t, user)
		_, name, _ := strings.Cut(account, ":")
		arrives(t, as(t, func(cfg *rest.Config) { cfg.Impersonate.UserName = user }), want, everything(ns, name)...)
	}
}

// mayAll gives a user every right.
func mayAll(t *testing.T, user string) {
	t.Helper()
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(user, ":", "-")},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}}
	if err := world.Client().Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	somebody := as(t, func(cfg *rest.Config) { cfg.Impersonate.UserName = user })
	eventually(t, "the rights of "+user, func(ctx context.Context) error { return somebody.List(ctx, &clusterv1.ClusterList{}) })
}

func TestArm_Scopes(t *testing.T) {
	const here, there = "arm-here", "arm-there"
	s := arm(t, policy.ArmOptions{Scope: policy.Scope{Namespace: here}}) // before the namespace exists
	namespace(t, here)
	namespace(t, there)
	arrives(t, world.Client(), wanted, everything(here, "c")...)
	arrives(t, world.Client(), nothing, everything(there, "c")...)

	// A second scope beside the first, proven by a probe of its own.
	restored := policy.Scope{Selector: "velero.io/restore-name in (one,two),!skip"}
	arm(t, policy.ArmOptions{Scope: restored})
	labelled := func(name string, set map[string]string) []client.Object {
		objects := everything(there, name)
		for _, o := range objects {
			all := map[string]string{}
			maps.Copy(all, o.GetLabels())
			maps.Copy(all, set)
			o.SetLabels(all)
		}
		return objects
	}
	arrives(t, world.Client(), wanted, labelled("selected", map[string]string{"velero.io/restore-name": "two"})...)
	arrives(t, world.Client(), nothing, labelled("skipped", map[string]string{"velero.io/restore-name": "two", "skip": ""})...)
	arrives(t, world.Client(), nothing, everything(there, "unlabelled")...)

	// And all: an object that three bindings select is stamped once.
	arm(t, policy.ArmOptions{HoldOwners: true})
	arm(t, policy.ArmOptions{Scope: policy.Scope{Namespace: there}, HoldOwners: true})
	arrives(t, world.Client(), wanted, labelled("thrice", map[string]string{"velero.io/restore-name": "one"})...)

	var scopes []string
	for _, a := range stack.Must(s.Arms(t.Context()))(t) {
		scopes = append(scopes, fmt.Sprint(a.Scope(), a.HoldOwners, a.Partial, a.Expired))
	}
	if diff := cmp.Diff([]string{
		"all namespaces, objects labelled !skip,velero.io/restore-name in (one,two) false false false",
		"all namespaces true false false", "namespace arm-here false false false", "namespace arm-there true false false",
	}, scopes, cmp.Transformer("sorted", func(s []string) []string { return slices.Sorted(slices.Values(s)) })); diff != "" {
		t.Error(diff)
	}
	// One scope goes, the others stay.
	wrote := stack.Must(s.Disarm(t.Context(), restored.Is))(t)
	if len(wrote) != 2 || !strings.Contains(string(wrote[0]), "binding") {
		t.Errorf("%q", wrote)
	}
	if arms := stack.Must(s.Arms(t.Context()))(t); len(arms) != 3 {
		t.Errorf("%+v", arms)
	}
}
