package interrupt_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/stack"
)

// rebuilds is the status that a move loses and controllers write anew.
var rebuilds = []struct {
	kind     schema.GroupVersionKind
	resource string
	there    []string // the field that shows that it was written
	patch    string
}{
	{stack.Clusters, "clusters", []string{"status", "initialization", "infrastructureProvisioned"},
		`{"status":{"initialization":{"infrastructureProvisioned":true,"controlPlaneInitialized":true},` +
			`"conditions":[{"type":"ControlPlaneInitialized","status":"True","reason":"Initialized","message":"","lastTransitionTime":"1970-01-01T00:00:00Z"}]}}`},
	{stack.Machines, "machines", []string{"status", "nodeRef"}, `{"status":{"nodeRef":{"name":"n"}}}`},
	{stack.KubeadmConfigs, "kubeadmconfigs", []string{"status", "dataSecretName"}, `{"status":{"dataSecretName":"NAME"}}`},
}

func has(o *unstructured.Unstructured, field []string) bool {
	_, there, err := unstructured.NestedFieldNoCopy(o.Object, field...)
	return there && err == nil
}

// play has m rebuild the status of its objects until ctx ends, as its controllers
// would. seen hears of every Cluster that comes or changes.
func play(ctx context.Context, m *stack.Management, seen func(cluster client.ObjectKey)) error {
	c, err := dynamic.NewForConfig(m.RESTConfig())
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(c, 0)
	for _, r := range rebuilds {
		see := func(object any) {
			o := object.(*unstructured.Unstructured)
			if r.kind == stack.Clusters {
				seen(client.ObjectKeyFromObject(o))
			}
			if !has(o, r.there) {
				patch := strings.ReplaceAll(r.patch, "NAME", o.GetName())
				// It may be gone again: then there is nothing to rebuild.
				_ = m.Client().Status().Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
			}
		}
		informer := factory.ForResource(r.kind.GroupVersion().WithResource(r.resource)).Informer()
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, now any) { see(now) }}); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return nil
}

// rebuilt waits until every object of the source has its status.
func (tr *trial) rebuilt(t *testing.T) {
	t.Helper()
	for range 600 {
		missing := 0
		for _, r := range rebuilds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(r.kind.GroupVersion().WithKind(r.kind.Kind + "List"))
			if err := world.source.Client().List(t.Context(), list, client.InNamespace(tr.Namespace)); err != nil {
				t.Fatal(err)
			}
			for i := range list.Items {
				if !has(&list.Items[i], r.there) {
					missing++
				}
			}
		}
		if missing == 0 {
			return
		}
		wait(t.Context(), 50*time.Millisecond)
	}
	t.Fatal("the status of the source is not written")
}

// watchBoth remembers when both copies of a Cluster are unpaused. It looks when one
// has changed: at the target before and after the source.
func watchBoth(ctx context.Context, cluster client.ObjectKey) {
	if live(ctx, world.target, cluster) && live(ctx, world.source, cluster) && live(ctx, world.target, cluster) {
		world.both.LoadOrStore(cluster.Namespace, time.Now().Format(time.TimeOnly))
	}
}

func live(ctx context.Context, m *stack.Management, key client.ObjectKey) bool {
	c := &clusterv1.Cluster{}
	if m.Client().Get(ctx, key, c) != nil {
		return false
	}
	return c.Spec.Paused == nil || !*c.Spec.Paused
}
