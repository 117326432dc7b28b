package job_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/stack"
)

// TestSecrets_TheirDataDoNotReachThePod has a listener in the place of the API server:
// RBAC would let the pod read a Secret whole, so what it asks for is all that counts.
func TestSecrets_TheirDataDoNotReachThePod(t *testing.T) {
	const namespace, confidential = "confidential", "bytes-that-no-pod-may-see"
	system(t, world.Management)
	arrived(t, world.Management, namespace)
	if err := stack.FillSecrets(t.Context(), world, namespace, confidential); err != nil {
		t.Fatal(err)
	}
	l := stack.Must(stack.ListenTLS(world))(t)
	t.Cleanup(l.Close)
	account(t, world.Management, namespace, rights(t, "rbac"))
	p := podOf(t, world.Management, namespace).through(t, l)

	// The listener hears Secrets where they are read whole, in both encodings.
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		whole := stack.Must(client.New(&rest.Config{
			Host: l.URL, TLSClientConfig: rest.TLSClientConfig{CAData: l.CA()}, BearerToken: p.token,
			ContentConfig: rest.ContentConfig{ContentType: contentType},
		}, client.Options{}))(t)
		becomes(t, "the rights to hold", func(ctx context.Context) (bool, error) {
			err := whole.List(ctx, &corev1.SecretList{}, client.InNamespace(namespace))
			if apierrors.IsForbidden(err) {
				return false, nil
			}
			return true, err
		})
		if found, asked := l.Heard(confidential); !found || len(asked) == 0 {
			t.Fatalf("%s: the listener is deaf: %v", contentType, asked)
		}
	}

	r := p.run(t, "post", "-n", namespace, "--watch-after", "0s", "--timeout", "2m")
	enough(t, r)
	found, asked := l.Heard(confidential)
	if found {
		t.Errorf("data of a Secret was answered to\n%s", r)
	}
	for _, a := range asked {
		if !a.MetadataOnly() {
			t.Errorf("%s of Secrets accepts %q", a, a.Accept)
		}
	}
	for _, want := range []stack.SecretsRequest{
		{Method: http.MethodGet}, {Method: http.MethodGet, Watch: true}, {Method: http.MethodPatch, DryRun: true}, {Method: http.MethodPatch},
	} {
		if !slices.ContainsFunc(asked, func(a stack.SecretsRequest) bool { return a.String() == want.String() }) {
			t.Errorf("among %v is no %s: nothing is proven about it", asked, want)
		}
	}
}
