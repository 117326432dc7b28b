package rollout

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

// PredictProposed predicts for a control plane that need not exist yet. template is
// the one that is to be created together with it; nil where the one that it names
// exists.
func PredictProposed(ctx context.Context, source Source, cluster *clusterv1.Cluster, controlPlane *controlplanev1.KubeadmControlPlane,
	template *unstructured.Unstructured, machines []*clusterv1.Machine) (map[graph.ID]adopt.Rollout, error) {
	types, err := scheme()
	if err != nil {
		return nil, err
	}
	reader := source.Reader(types)
	if template != nil {
		reader = overlay{reader, template}
	}
	return Predict(ctx, reader, cluster, controlPlane, machines)
}

// overlay finds an object that does not exist yet.
type overlay struct {
	client.Reader
	object *unstructured.Unstructured
}

// Get answers for the object in whatever version is asked for: upstream compares no
// template's spec, only which one it is.
func (v overlay) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	u, ok := o.(*unstructured.Unstructured)
	gvk := o.GetObjectKind().GroupVersionKind()
	if !ok || key != client.ObjectKeyFromObject(v.object) || gvk.GroupKind() != v.object.GroupVersionKind().GroupKind() {
		return v.Reader.Get(ctx, key, o, opts...)
	}
	u.Object = v.object.DeepCopy().Object
	u.SetGroupVersionKind(gvk)
	return nil
}
