package record

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"

	"github.com/move-hook/move-hook/pkg/graph"
)

const (
	fieldManager = "move-hook"
	// writeTries bounds how often a part is written again after somebody else wrote it.
	writeTries = 5
)

// Write stores a Cluster's record and removes what an earlier, longer one left.
// The same record again writes nothing; a closed record is opened again. It
// returns the checksum and the names of the ConfigMaps that it wrote. Killed
// between two parts it leaves a record that readers call partial; the next Write
// completes it.
func Write(ctx context.Context, client typedcorev1.ConfigMapsGetter, s graph.Snapshot, apiVersion string, owner types.UID) (checksum string, wrote []string, err error) {
	want, checksum, err := Objects(s, apiVersion, owner)
	if err != nil {
		return "", nil, err
	}
	have, err := list(ctx, client, s.Cluster)
	if err != nil {
		return "", nil, err
	}
	api := client.ConfigMaps(s.Cluster.Namespace)
	for _, cm := range want {
		did, err := put(ctx, api, have[cm.Name], cm)
		delete(have, cm.Name)
		if err != nil {
			return "", wrote, fmt.Errorf("writing the record ConfigMap %s/%s: %w", cm.Namespace, cm.Name, err)
		}
		if did {
			wrote = append(wrote, cm.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if err := remove(ctx, api, have[name], metav1.DeleteOptions{}); err != nil {
			return "", wrote, fmt.Errorf("removing the surplus record ConfigMap %s/%s: %w", s.Cluster.Namespace, name, err)
		}
	}
	return checksum, wrote, nil
}

// Delete removes a Cluster's record and returns the names of its ConfigMaps. With
// dryRun it says what it would remove. No record is no error.
func Delete(ctx context.Context, client typedcorev1.ConfigMapsGetter, cluster graph.ID, dryRun bool) (gone []string, err error) {
	have, err := list(ctx, client, cluster)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		o := metav1.DeleteOptions{}
		if dryRun {
			o.DryRun = []string{metav1.DryRunAll}
		}
		if err := remove(ctx, client.ConfigMaps(cluster.Namespace), have[name], o); err != nil {
			return gone, fmt.Errorf("removing the record ConfigMap %s/%s: %w", cluster.Namespace, name, err)
		}
		gone = append(gone, name)
	}
	return gone, nil
}

// remove deletes this copy. One that is gone already is no error.
func remove(ctx context.Context, api typedcorev1.ConfigMapInterface, cm *corev1.ConfigMap, o metav1.DeleteOptions) error {
	o.Preconditions = &metav1.Preconditions{UID: &cm.UID}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return api.Delete(ctx, cm.Name, o) })
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// put makes a ConfigMap what is wanted; have may be nil. It says whether it wrote.
func put(ctx context.Context, api typedcorev1.ConfigMapInterface, have, want *corev1.ConfigMap) (bool, error) {
	for try := 1; ; try++ {
		var err error
		if have == nil {
			_, err = api.Create(ctx, want, metav1.CreateOptions{FieldManager: fieldManager})
		} else {
			if !isRecordOf(have, want) {
				return false, fmt.Errorf("there is a ConfigMap of that name which is no record of Cluster %s: rename or remove it", want.Data[clusterKey])
			}
			next := merged(have, want)
			if equality.Semantic.DeepEqual(have, next) {
				return false, nil
			}
			_, err = api.Update(ctx, next, metav1.UpdateOptions{FieldManager: fieldManager})
		}
		again := apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || (have != nil && apierrors.IsNotFound(err))
		if !again || try == writeTries {
			return err == nil, err
		}
		switch have, err = api.Get(ctx, want.Name, metav1.GetOptions{}); {
		case apierrors.IsNotFound(err):
			have = nil
		case err != nil:
			return false, err
		}
	}
}

// isRecordOf: a ConfigMap that has the wanted name, but somebody else's content, is
// not overwritten.
func isRecordOf(have, want *corev1.ConfigMap) bool {
	return have.Labels[graph.RecordLabel] == want.Labels[graph.RecordLabel] || have.Data[clusterKey] == want.Data[clusterKey]
}

// merged is have with the wanted content and marks, and open. Labels, annotations
// and owners that others put there stay.
func merged(have, want *corev1.ConfigMap) *corev1.ConfigMap {
	next := have.DeepCopy()
	next.Data, next.BinaryData = want.Data, want.BinaryData
	if next.Labels == nil {
		next.Labels = map[string]string{}
	}
	maps.Copy(next.Labels, want.Labels)
	delete(next.Annotations, graph.AdoptedAnnotation)
	owner := want.OwnerReferences[0]
	next.OwnerReferences = slices.DeleteFunc(next.OwnerReferences, func(r metav1.OwnerReference) bool {
		// Our own reference with an old UID or version.
		same := graph.GroupOf(r.APIVersion) == graph.GroupOf(owner.APIVersion) && r.Kind == owner.Kind && r.Name == owner.Name
		return same && (r.UID != owner.UID || r.APIVersion != owner.APIVersion)
	})
	if !slices.ContainsFunc(next.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner.UID }) {
		next.OwnerReferences = append(next.OwnerReferences, owner)
	}
	return next
}

func list(ctx context.Context, client typedcorev1.ConfigMapsGetter, cluster graph.ID) (map[string]*corev1.ConfigMap, error) {
	found, err := client.ConfigMaps(cluster.Namespace).List(ctx, metav1.ListOptions{LabelSelector: graph.RecordLabel + "=" + LabelValue(cluster.Name)})
	if err != nil {
		return nil, fmt.Errorf("listing the record ConfigMaps of %s: %w", cluster, err)
	}
	out := map[string]*corev1.ConfigMap{}
	for i := range found.Items {
		out[found.Items[i].Name] = &found.Items[i]
	}
	return out, nil
}
