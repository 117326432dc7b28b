package arm_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/policy"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
	"github.com/move-hook/move-hook/test/stack"
)

// patch changes an object as somebody's kubectl would.
func patch(ctx context.Context, o client.Object, body string) error {
	return world.Client().Patch(ctx, o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(body)))
}

// denied demands the guard's words.
func denied(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("it was not denied; want %q", words)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("it does not say %q: %v", word, err)
		}
	}
}

// pending demands what of a namespace is pending; other tests leave theirs behind.
func pending(t *testing.T, s *policy.Store, want ...graph.ID) {
	t.Helper()
	var here []graph.ID
	for _, found := range stack.Must(s.Pending(t.Context()))(t) {
		if found.Namespace == "guard" {
			here = append(here, found)
		}
	}
	if diff := cmp.Diff(want, here); diff != "" {
		t.Errorf("pending: %s", diff)
	}
}

func id(gk graph.GroupKind, namespace, name string) graph.ID {
	return graph.ID{Group: gk.Group, Kind: gk.Kind, Namespace: namespace, Name: name}
}

func TestGuard(t *testing.T) {
	const ns = "guard"
	ctx := t.Context()
	pair := func(name string) (*controlplanev1.KubeadmControlPlane, *clusterv1.Machine) {
		all := stack.Cluster(name).InNamespace(ns).ControlPlane(3).Objects()
		m := machine(ns, name+"-cp-x", true)
		m.Spec.Version = "v1.34.0"
		m.Finalizers = []string{"theirs/x"}
		return all[len(all)-1].(*controlplanev1.KubeadmControlPlane), m
	}
	kcp, m := pair("c")
	free, freeMachine := pair("free")
	for _, o := range []client.Object{kcp, m} {
		o.SetLabels(labels.MarkPending(labels.Meta{}).Apply(labels.Meta{Labels: o.GetLabels()}).Labels)
	}
	kcp.Annotations = map[string]string{labels.Paused: "", labels.Held: "move-hook 2026-01-02T03:04:05Z"}
	if err := world.Create(ctx, kcp, m, free, freeMachine); err != nil {
		t.Fatal(err)
	}
	s := guard(t)
	eventually(t, "the guard is in force", func(ctx context.Context) error {
		if err := world.Client().Delete(ctx, kcp.DeepCopy(), client.DryRunAll); err == nil {
			return errors.New("a delete would not be denied")
		}
		return nil
	})
	pending(t, s, id(graph.Machine, ns, "c-cp-x"), id(graph.KubeadmControlPlane, ns, "c-cp"))

	giveUp := "Run move-hook post on the target; to give up instead, remove its label pivot.cluster.x-k8s.io/adoption and run move-hook disarm"
	const held = "KubeadmControlPlane guard/c-cp is being moved to another management cluster, held by move-hook 2026-01-02T03:04:05Z: "
	const marked = "Machine guard/c-cp-x is being moved to another management cluster, held by move-hook pre or arm: "
	for body, o := range map[string]client.Object{
		`{"spec":{"replicas":1}}`:         kcp,
		`{"spec":{"replicas":null}}`:      kcp,
		`{"spec":{"version":"v1.35.0"}}`:  kcp,
		`{"spec":{"version":"v1.35.0"} }`: m,
		// Nor together with the label.
		`{"spec":{"replicas":1},"metadata":{"labels":{"` + labels.Adoption + `":null}}}`: kcp,
	} {
		err := patch(ctx, o, body)
		what := held
		if o == m {
			what = marked
		}
		denied(t, err, what+"spec.replicas and spec.version do not change until adoption has ended", giveUp)
		if !apierrors.IsForbidden(err) {
			t.Errorf("reason %v", apierrors.ReasonForError(err))
		}
	}
	for o, what := range map[client.Object]string{kcp: held, m: marked} {
		denied(t, world.Client().Delete(ctx, o.DeepCopyObject().(client.Object)), what+"it is not deleted until adoption has ended", giveUp)
		denied(t, world.Client().DeleteAllOf(ctx, o.DeepCopyObject().(client.Object), client.InNamespace(ns), client.HasLabels{labels.Adoption}), "it is not deleted")
	}
	scale := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`))
	for _, o := range []*controlplanev1.KubeadmControlPlane{kcp, free} {
		denied(t, world.Client().SubResource("scale").Patch(ctx, o.DeepCopy(), scale), "change spec.replicas of the object itself, for example with kubectl patch")
	}

	// Everything else goes on, for those and for others.
	for body, o := range map[string]client.Object{
		`{"metadata":{"annotations":{"theirs":"x"},"labels":{"theirs":"x"}}}`:                                          kcp,
		`{"metadata":{"ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"C","name":"c","uid":"u"}]}}`: m,
		`{"spec":{"replicas":3,"rollout":{"after":"2026-01-02T03:04:05Z"}}}`:                                           kcp,
		`{"spec":{"replicas":1,"version":"v1.35.0"}}`:                                                                  free,
		`{"spec":{"version":"v1.35.0"}}`:                                                                               freeMachine,
	} {
		if err := patch(ctx, o, body); err != nil {
			t.Errorf("%s %s: %v", o.GetName(), body, err)
		}
	}
	status := m.DeepCopy()
	if err := world.Client().Get(ctx, client.ObjectKeyFromObject(m), status); err != nil {
		t.Fatal(err)
	}
	status.Status.NodeRef.Name = "node"
	if err := world.Client().Status().Update(ctx, status); err != nil {
		t.Error(err)
	}
	if err := world.Client().Delete(ctx, free); err != nil {
		t.Error(err)
	}

	// clusterctl announces its deletes, and then takes the finalizers off.
	announce := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/annotations","value":{"`+graph.DeleteForMoveAnnotation+`":""}}]`))
	for _, err := range []error{
		world.Client().Patch(ctx, m.DeepCopy(), announce), world.Client().Delete(ctx, m.DeepCopy()), patch(ctx, m, `{"metadata":{"finalizers":[]}}`),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := world.Client().Get(ctx, client.ObjectKeyFromObject(m), &clusterv1.Machine{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Machine is still there: %v", err)
	}

	// Without the label, nothing is denied.
	for _, body := range []string{`{"metadata":{"labels":{"` + labels.Adoption + `":null}}}`, `{"spec":{"replicas":1,"version":"v1.35.0"}}`} {
		if err := patch(ctx, kcp, body); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	if err := world.Client().Delete(ctx, kcp); err != nil {
		t.Error(err)
	}
	pending(t, s)
}
