package rollout

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// With reads as r does, and finds an object that does not exist yet: a template that
// is to be created together with the control plane that is asked about. Nil adds nothing.
func With(r client.Reader, o *unstructured.Unstructured) client.Reader {
	if o == nil {
		return r
	}
	return overlay{r, o}
}

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
