package scenario_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestPreflight_UpstreamsWebhooksAreAsked offers Clusters to a target with upstream's
// webhooks: they take what upstream's controllers have made, and what they would
// refuse is told before the move.
func TestPreflight_UpstreamsWebhooksAreAsked(t *testing.T) {
	offered := func(namespace string) (found []string) {
		r, err := world.env.Hook(t.Context(), "preflight", "--kubeconfig", world.source.Kubeconfig(), "--to-kubeconfig", world.target.Kubeconfig(),
			"-n", namespace, "-o", "json")
		var result struct {
			Findings []struct{ ID, Object, Message string }
		}
		if err != nil || json.Unmarshal([]byte(r.Stdout), &result) != nil {
			t.Fatal(err, r)
		}
		for _, f := range result.Findings {
			switch f.ID {
			case "RefusedByTarget", "OfferUnsure", "NameClash", "KindMissing", "VersionMissing", "KindUnlabelled", "ProviderMissing", "ProviderOlder",
				"QuotaExceeded", "NamespaceTerminating", "MissingPermission":
				found = append(found, f.ID+" "+f.Object+": "+f.Message)
			}
		}
		return found
	}
	for _, name := range []string{"classy", "folder"} {
		key := ready(t, name)
		if found := offered(key.Namespace); len(found) > 0 {
			t.Errorf("nothing is wrong with %s, and preflight says: %v", key, found)
		}
	}
	key := ready(t, "folder")
	unjudged(t, "validation.machinehealthcheck.cluster.x-k8s.io")
	cluster := &clusterv1.Cluster{}
	if err := world.source.Client().Get(t.Context(), key, cluster); err != nil {
		t.Fatal(err)
	}
	mhc := &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "hasty", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: key.Name, UID: cluster.UID}}},
		Spec: clusterv1.MachineHealthCheckSpec{ClusterName: key.Name, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"nobody": "has"}},
			Checks: clusterv1.MachineHealthCheckChecks{NodeStartupTimeoutSeconds: ptr.To[int32](5)}},
	}
	// The API server learns of the changed webhooks a moment after they are stored.
	err := utilwait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		return world.source.Client().Create(ctx, mhc.DeepCopy()) == nil, nil
	})
	if err != nil {
		t.Fatal("the source does not take it without its webhook either")
	}
	t.Cleanup(func() { _ = world.source.Client().Delete(context.Background(), mhc) })
	found := offered(key.Namespace)
	if len(found) != 1 || !strings.HasPrefix(found[0], "RefusedByTarget MachineHealthCheck "+key.Namespace+"/hasty: ") || !strings.Contains(found[0], "nodeStartupTimeoutSeconds") {
		t.Errorf("upstream's webhook would refuse one object, and preflight says: %v", found)
	}
}

// TestPreflight_NothingIsSaidOfWhatIsWell looks at every kind of cluster as upstream's
// controllers leave it: what is found is what the cluster was made for.
func TestPreflight_NothingIsSaidOfWhatIsWell(t *testing.T) {
	want := map[string][]string{
		"folder":  nil,
		"outside": nil, // an external etcd, certificates of its user, a ClusterResourceSet, a MachineHealthCheck
		"lonely":  nil, // no control plane
		"classy":  {"StaysOnBothSides ClusterClass classes/quick"},
		"overlap": {"OverlappingSelectors MachineDeployment overlap/overlap-md-0", "OverlappingSelectors MachineDeployment overlap/overlap-md-1"},
	}
	for name := range want {
		go fleet[name].create(t.Context()) // ready gets the error
	}
	for name, want := range want {
		key := ready(t, name)
		cluster := &clusterv1.Cluster{}
		if err := world.source.Client().Get(t.Context(), key, cluster); err != nil {
			t.Fatal(err)
		}
		if ptr.Deref(cluster.Spec.Paused, false) {
			want = append([]string{"Paused Cluster " + key.String()}, want...) // as another test has left it
		}
		var got []string
		look := func() bool {
			r, err := world.env.Hook(t.Context(), "preflight", "--kubeconfig", world.source.Kubeconfig(), "-n", key.Namespace, "-o", "json")
			var result struct {
				Findings []struct{ ID, Object, Message string }
			}
			if err != nil || json.Unmarshal([]byte(r.Stdout), &result) != nil {
				t.Fatal(err, r)
			}
			got = nil
			settling := false
			for _, f := range result.Findings {
				got = append(got, f.ID+" "+f.Object)
				settling = settling || f.ID == "InFlight"
			}
			return !settling
		}
		// A cluster that has only just become ready may have a rollout in its status yet.
		waitFor(t, time.Minute, name+" to be settled", look)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// unjudged takes a validating webhook off the source until the test ends.
func unjudged(t *testing.T, name string) {
	t.Helper()
	list := &admissionv1.ValidatingWebhookConfigurationList{}
	if err := world.source.Client().List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		with := &list.Items[i]
		without := with.DeepCopy()
		without.Webhooks = slices.DeleteFunc(without.Webhooks, func(w admissionv1.ValidatingWebhook) bool { return w.Name == name })
		if len(without.Webhooks) == len(with.Webhooks) {
			continue
		}
		if err := world.source.Client().Patch(t.Context(), without, client.MergeFrom(with)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			with.ResourceVersion = without.ResourceVersion
			if err := world.source.Client().Patch(context.Background(), with.DeepCopy(), client.MergeFrom(without)); err != nil {
				t.Error(err)
			}
		})
		return
	}
	t.Fatalf("there is no webhook %s", name)
}
