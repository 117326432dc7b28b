package rollout

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

// Source is a management cluster as Ask needs it.
type Source interface {
	// Reader reads single objects live; a version that is not served is a
	// meta.NoKindMatchError.
	Reader(scheme *runtime.Scheme) client.Reader
}

// scheme has the types that are read.
func scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Answer is what Ask found out.
type Answer struct {
	Verdicts map[graph.ID]adopt.Rollout
	// Unknown is why nobody can say; Verdicts are then empty.
	Unknown string
}

// Ask reads a Cluster, its control plane and the Machines, and predicts. What the
// server will not show, or does not serve in the version that is judged, makes the
// Answer Unknown; the error is for a server that may answer later, and for objects
// that went meanwhile.
func Ask(ctx context.Context, source Source, cluster, controlPlane graph.ID, machines []graph.ID) (Answer, error) {
	types, err := scheme()
	if err != nil {
		return Answer{}, err
	}
	verdicts, err := ask(ctx, source.Reader(types), cluster, controlPlane, machines)
	if err != nil && (meta.IsNoMatchError(err) || apierrors.IsForbidden(err)) {
		return Answer{Unknown: err.Error()}, nil
	}
	return Answer{Verdicts: verdicts}, err
}

func ask(ctx context.Context, r client.Reader, cluster, controlPlane graph.ID, machines []graph.ID) (map[graph.ID]adopt.Rollout, error) {
	var c clusterv1.Cluster
	var k controlplanev1.KubeadmControlPlane
	if err := get(ctx, r, cluster, &c); err != nil {
		return nil, err
	}
	if err := get(ctx, r, controlPlane, &k); err != nil {
		return nil, err
	}
	ms := make([]*clusterv1.Machine, len(machines))
	for i, id := range machines {
		ms[i] = &clusterv1.Machine{}
		if err := get(ctx, r, id, ms[i]); err != nil {
			return nil, err
		}
	}
	return Predict(ctx, r, &c, &k, ms)
}

func get(ctx context.Context, r client.Reader, id graph.ID, into client.Object) error {
	if err := r.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, into); err != nil {
		return fmt.Errorf("reading %s: %w", id, err)
	}
	return nil
}
