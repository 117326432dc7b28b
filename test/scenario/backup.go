package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
	"github.com/move-hook/move-hook/test/stack"
)

// Backup is what a backup tool keeps of a namespace: objects without status,
// without owner references, and without anything that only one API server knows.
type Backup []*unstructured.Unstructured

// TakeBackup reads the namespace.
func TakeBackup(ctx context.Context, m Management, namespace string) (Backup, error) {
	objects, err := stack.ReadAll(ctx, m, namespace)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		o.SetOwnerReferences(nil)
		o.SetUID("")
		o.SetResourceVersion("")
		o.SetGeneration(0)
		o.SetCreationTimestamp(metav1.Time{})
		o.SetManagedFields(nil)
		delete(o.Object, "status")
	}
	return objects, nil
}

// Find gives the object "Kind/name".
func (b Backup) Find(name string) (*unstructured.Unstructured, error) {
	i := slices.IndexFunc(b, func(o *unstructured.Unstructured) bool { return nameOf(o) == name })
	if i < 0 {
		return nil, fmt.Errorf("the backup has no %s", name)
	}
	return b[i], nil
}

// Without leaves out what is named "Kind/name".
func (b Backup) Without(names ...string) Backup {
	return slices.DeleteFunc(slices.Clone(b), func(o *unstructured.Unstructured) bool { return slices.Contains(names, nameOf(o)) })
}

// HoldClusters has the Clusters arrive held, as `move-hook arm` would see to.
func (b Backup) HoldClusters() Backup {
	held := slices.Clone(b)
	for i, o := range held {
		if o.GetKind() != stack.Clusters.Kind {
			continue
		}
		change := labels.Hold(labels.Meta{Annotations: o.GetAnnotations()}, labels.Holder{Who: "by hand", Since: time.Now()})
		held[i] = o.DeepCopy()
		held[i].SetAnnotations(change.Apply(labels.Meta{Annotations: o.GetAnnotations()}).Annotations)
	}
	return held
}

// Unprepared is the backup as it would be had move-hook never looked at the source.
func (b Backup) Unprepared() Backup {
	var out Backup
	for _, o := range b {
		if _, ok := o.GetLabels()[graph.RecordLabel]; ok {
			continue
		}
		annotations := o.GetAnnotations()
		if _, held := annotations[labels.Held]; held {
			delete(annotations, labels.Paused)
		}
		o = o.DeepCopy()
		o.SetAnnotations(withoutOurs(annotations))
		o.SetLabels(withoutOurs(o.GetLabels()))
		out = append(out, o)
	}
	return out
}

func withoutOurs(m map[string]string) map[string]string {
	maps.DeleteFunc(m, func(key, _ string) bool { return strings.HasPrefix(key, "pivot.cluster.x-k8s.io/") })
	return m
}

// Shuffled is in another order, the same for the same seed.
func (b Backup) Shuffled(random *rand.Rand) Backup {
	shuffled := slices.Clone(b)
	random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	return shuffled
}

// Restore creates the objects in their order, and their namespace; what somebody
// has made meanwhile it overwrites. Between two
// of them it may wait: `pause` says how long.
func (b Backup) Restore(ctx context.Context, m Management, pause func() time.Duration) error {
	for _, o := range b {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.GetNamespace()}}
		if err := m.Client().Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		err := m.Client().Create(ctx, o.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			err = overwrite(ctx, m, o)
		}
		if err != nil {
			return fmt.Errorf("restoring %s: %w", nameOf(o), err)
		}
		if pause == nil {
			continue
		}
		select {
		case <-time.After(pause()):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// overwrite gives what is there the content of the backup, as restore tools do when
// they are told to. A ClusterResourceSetBinding is made by its controller as soon as
// Cluster and ClusterResourceSet are there; that it applies its resources once more is
// harmless, what must not be lost is the record of what was applied before.
func overwrite(ctx context.Context, m Management, o *unstructured.Unstructured) error {
	text, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	return patch(ctx, m, o, string(text))
}

// Remove takes everything out of a namespace and leaves the machines alone: the
// Clusters are paused first, so that no controller acts on a deletion.
func Remove(ctx context.Context, m Management, namespace string) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		objects, err := stack.ReadAll(ctx, m, namespace)
		if err != nil || len(objects) == 0 {
			return err == nil, err
		}
		// Clusters last: of an object without its Cluster nobody knows that it is paused.
		slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return clusterLast(a) - clusterLast(b) })
		for _, o := range objects {
			if o.GetKind() == stack.Clusters.Kind {
				err = errors.Join(err, patch(ctx, m, o, `{"spec":{"paused":true}}`))
			}
		}
		for _, o := range objects {
			err = errors.Join(err, Delete(ctx, m, o))
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("removing namespace %s from the %s: %w", namespace, m.Name(), err)
	}
	return nil
}

func clusterLast(o *unstructured.Unstructured) int {
	if o.GetKind() == stack.Clusters.Kind {
		return 1
	}
	return 0
}

// Delete removes one object at once, whatever its finalizers. It may be gone already.
func Delete(ctx context.Context, m Management, o *unstructured.Unstructured) error {
	if err := patch(ctx, m, o, `{"metadata":{"finalizers":null}}`); err != nil {
		return err
	}
	return client.IgnoreNotFound(m.Client().Delete(ctx, o.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

func patch(ctx context.Context, m Management, o *unstructured.Unstructured, merge string) error {
	return client.IgnoreNotFound(m.Client().Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(merge))))
}

func nameOf(o *unstructured.Unstructured) string { return o.GetKind() + "/" + o.GetName() }
