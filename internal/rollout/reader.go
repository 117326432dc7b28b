package rollout

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var errReadOnly = errors.New("a prediction only reads")

// reading is the client that upstream's functions are given: they take a whole one
// and only ever Get. Writes are errors. Metadata of CRDs and unstructured objects
// are read once: all Machines share a template and its CRD.
type reading struct {
	client.Client // nil: what is not overridden below is not to be called
	client.Reader

	// flight: Machines are read side by side and wait for the one that asks first.
	flight singleflight.Group

	mu    sync.Mutex
	known map[string]runtime.Object
	// failed is the first answer other than "not found": then nothing was judged.
	failed error
}

func newReading(r client.Reader) *reading {
	return &reading{Reader: r, known: map[string]runtime.Object{}}
}

// Get reads one object.
func (r *reading) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	name := fmt.Sprintf("%T %s %s", o, o.GetObjectKind().GroupVersionKind(), key)
	switch o.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
	default:
		return r.get(ctx, name, key, o, opts...)
	}
	found, err, _ := r.flight.Do(name, func() (any, error) {
		r.mu.Lock()
		known, ok := r.known[name]
		r.mu.Unlock()
		if ok {
			return known, nil
		}
		read := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // A copy is of the same type.
		if err := r.get(ctx, name, key, read, opts...); err != nil {
			return nil, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.known[name] = read
		return read, nil
	})
	if err != nil {
		return err
	}
	assign(o, found.(runtime.Object)) //nolint:forcetypeassert // It is what the function above returns.
	return nil
}

func (r *reading) get(ctx context.Context, name string, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, o, opts...)
	if err != nil && !apierrors.IsNotFound(err) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.failed == nil {
			r.failed = fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return err
}

// assign copies what was read before; only these two types are remembered.
func assign(to client.Object, from runtime.Object) {
	switch from := from.DeepCopyObject().(type) {
	case *unstructured.Unstructured:
		if to, ok := to.(*unstructured.Unstructured); ok {
			to.Object = from.Object
		}
	case *metav1.PartialObjectMetadata:
		if to, ok := to.(*metav1.PartialObjectMetadata); ok {
			*to = *from
		}
	}
}

// failure is why nothing can be judged, nil if everything was answered.
func (r *reading) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// List lists.
func (r *reading) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.Reader.List(ctx, list, opts...)
}

// Create is refused.
func (r *reading) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errReadOnly
}

// Delete is refused.
func (r *reading) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return errReadOnly
}

// Update is refused.
func (r *reading) Update(context.Context, client.Object, ...client.UpdateOption) error {
	return errReadOnly
}

// Patch is refused.
func (r *reading) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errReadOnly
}

// Apply is refused.
func (r *reading) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errReadOnly
}

// DeleteAllOf is refused.
func (r *reading) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errReadOnly
}

var _ client.Client = (*reading)(nil)
