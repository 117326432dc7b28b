package bare_test

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/stack"
)

// confidential is what every Secret of the test holds.
const confidential = "bytes-that-no-answer-may-carry"

func TestSecrets_AreReadAsMetadataOnly(t *testing.T) {
	const cluster, namespace = "c-00000", stack.SyntheticNamespace
	stack.Must(stack.Synthetic(t.Context(), world.Management, 1))(t)
	if err := stack.FillSecrets(t.Context(), world, namespace, confidential); err != nil {
		t.Fatal(err)
	}
	if err := stack.Provisioned(t.Context(), world, namespace); err != nil {
		t.Fatal(err)
	}
	l := stack.Must(stack.Listen(world))(t)
	t.Cleanup(l.Close)

	// The listener hears Secrets where they are read whole, in both encodings.
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		whole := stack.Must(client.New(&rest.Config{Host: l.URL, ContentConfig: rest.ContentConfig{ContentType: contentType}}, client.Options{}))(t)
		if err := whole.List(t.Context(), &corev1.SecretList{}, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		if found, asked := l.Heard(confidential); !found || len(asked) != 1 {
			t.Fatalf("%s: the listener is deaf: %v", contentType, asked)
		}
	}

	kubeconfig := serverKubeconfig(t, l.URL)
	at := []string{"--kubeconfig", kubeconfig, "-n", namespace}
	check := func(want func(stack.SecretsRequest) bool, code int, args ...string) {
		t.Helper()
		r := hook(t, code, append(args, at...)...)
		found, asked := l.Heard(confidential)
		if found {
			t.Errorf("data of a Secret was answered to\n%s", r)
		}
		var wanted int
		for _, a := range asked {
			if !a.MetadataOnly() {
				t.Errorf("%s: %s of Secrets accepts %q", strings.Join(args, " "), a, a.Accept)
			}
			if want(a) {
				wanted++
			}
		}
		if wanted == 0 {
			t.Errorf("%s: among %d requests for Secrets is none of those that this is about: nothing is proven", strings.Join(args, " "), len(asked))
		}
	}
	list := func(a stack.SecretsRequest) bool { return a.Method == http.MethodGet && !a.Watch }
	check(list, 0, "graph")
	check(list, 0, "graph", "-o", "json")
	check(list, 0, "verify")
	// After a pivot, Secrets have the UIDs of the source: that post repairs.
	hook(t, 0, append([]string{"pre"}, at...)...)
	makeStale(t, namespace, cluster+"-ca")
	l.Heard(confidential)
	check(func(a stack.SecretsRequest) bool { return a.Method == http.MethodPatch && a.DryRun }, 0, "post", "--dry-run", "--timeout", "1m")
	check(func(a stack.SecretsRequest) bool { return a.Watch }, 0, "post", "--dry-run", "--timeout", "1m")
}

// makeStale gives the owners of a Secret the UIDs of other copies.
func makeStale(t *testing.T, namespace, name string) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := world.Client().Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	for i := range secret.OwnerReferences {
		secret.OwnerReferences[i].UID = "of-another-copy"
	}
	if len(secret.OwnerReferences) == 0 || secret.Labels[clusterv1.ClusterNameLabel] == "" {
		t.Fatalf("Secret %s has no owner or does not say its Cluster", name)
	}
	if err := world.Client().Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}
