package record

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

const (
	prefix       = "move-hook-record-"
	fieldManager = "move-hook"
	payloadKey   = "record.json.gz"
	checksumKey  = "checksum"
	partKey      = "part"
	partsKey     = "parts"
	clusterKey   = "cluster"
	maxLabel     = 63
	maxName      = 253
)

// Name is the name of a Cluster's record ConfigMap; further parts have a number
// behind it. A name too long for Kubernetes is cut and told apart by a hash.
func Name(cluster string, part int) string {
	suffix := ""
	if part > 0 {
		suffix = "-" + strconv.Itoa(part)
	}
	if room := maxName - len(prefix) - len(suffix); len(cluster) > room {
		cluster = hashed(cluster, room)
	}
	return prefix + cluster + suffix
}

// LabelValue is the value of the record's label: the Cluster's name, hashed where
// a label cannot hold it.
func LabelValue(cluster string) string {
	if len(cluster) <= maxLabel {
		return cluster
	}
	return hashed(cluster, maxLabel)
}

func hashed(s string, room int) string {
	h := sha256.Sum256([]byte(s))
	tail := "-" + hex.EncodeToString(h[:])[:16]
	return s[:room-len(tail)] + tail
}

// Objects are the ConfigMaps of a snapshot, in parts below the API server's
// limit, and its checksum. owner is the Cluster's live copy: the record is owned
// by it (not as controller) and labelled, so that clusterctl takes it along.
func Objects(s graph.Snapshot, apiVersion string, owner types.UID) ([]*corev1.ConfigMap, string, error) {
	parts, checksum, err := encode(s)
	if err != nil {
		return nil, "", err
	}
	var out []*corev1.ConfigMap
	for i, part := range parts {
		out = append(out, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: s.Cluster.Namespace, Name: Name(s.Cluster.Name, i),
				Labels: map[string]string{
					graph.MoveLabel:        "",
					graph.RecordLabel:      LabelValue(s.Cluster.Name),
					graph.ClusterNameLabel: LabelValue(s.Cluster.Name),
				},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: s.Cluster.Kind, Name: s.Cluster.Name, UID: owner}},
			},
			Data: map[string]string{
				clusterKey: s.Cluster.Name, checksumKey: checksum,
				partKey: strconv.Itoa(i), partsKey: strconv.Itoa(len(parts)),
			},
			BinaryData: map[string][]byte{payloadKey: part},
		})
	}
	return out, checksum, nil
}

// Write stores a Cluster's record and removes what an earlier, longer one left.
// The same record again writes nothing; a closed record is opened again. It
// returns the checksum and the names of the ConfigMaps that it wrote.
func Write(ctx context.Context, client typedcorev1.ConfigMapsGetter, s graph.Snapshot, apiVersion string, owner types.UID) (checksum string, wrote []string, err error) {
	want, checksum, err := Objects(s, apiVersion, owner)
	if err != nil {
		return "", nil, err
	}
	api := client.ConfigMaps(s.Cluster.Namespace)
	have, err := list(ctx, client, s.Cluster)
	if err != nil {
		return "", nil, err
	}
	for _, cm := range want {
		old, exists := have[cm.Name]
		delete(have, cm.Name)
		switch {
		case !exists:
			_, err = api.Create(ctx, cm, metav1.CreateOptions{FieldManager: fieldManager})
		case same(old, cm):
			continue
		default:
			next := old.DeepCopy()
			next.Data, next.BinaryData = cm.Data, cm.BinaryData
			next.OwnerReferences = cm.OwnerReferences
			if next.Labels == nil {
				next.Labels = map[string]string{}
			}
			maps.Copy(next.Labels, cm.Labels)
			delete(next.Annotations, graph.AdoptedAnnotation)
			_, err = api.Update(ctx, next, metav1.UpdateOptions{FieldManager: fieldManager})
		}
		if err != nil {
			return "", wrote, fmt.Errorf("writing the record ConfigMap %s/%s: %w", cm.Namespace, cm.Name, err)
		}
		wrote = append(wrote, cm.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		uid := have[name].UID
		err := api.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) {
			return "", wrote, fmt.Errorf("removing the surplus record ConfigMap %s/%s: %w", s.Cluster.Namespace, name, err)
		}
	}
	return checksum, wrote, nil
}

func same(have, want *corev1.ConfigMap) bool {
	if _, closed := have.Annotations[graph.AdoptedAnnotation]; closed {
		return false
	}
	for k, v := range want.Labels {
		if have.Labels[k] != v {
			return false
		}
	}
	return equality.Semantic.DeepEqual(have.Data, want.Data) &&
		equality.Semantic.DeepEqual(have.BinaryData, want.BinaryData) &&
		equality.Semantic.DeepEqual(have.OwnerReferences, want.OwnerReferences)
}

// Read reads a Cluster's record. Without one the Expectation is zero; a record
// that is there and cannot be used is named in Partial, never taken for absent.
func Read(ctx context.Context, client typedcorev1.ConfigMapsGetter, cluster graph.ID) (adopt.Expectation, error) {
	have, err := list(ctx, client, cluster)
	if err != nil {
		return adopt.Expectation{}, err
	}
	return FromConfigMaps(cluster, slices.Collect(maps.Values(have))), nil
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

// FromConfigMaps puts a Cluster's record together from its ConfigMaps, in any order.
func FromConfigMaps(cluster graph.ID, maps []*corev1.ConfigMap) adopt.Expectation {
	var e adopt.Expectation
	slices.SortFunc(maps, func(a, b *corev1.ConfigMap) int { return number(a, partKey) - number(b, partKey) })
	problem := func(part int, format string, args ...any) adopt.Expectation {
		e.Snapshot, e.Closed = nil, false
		e.Partial = append(e.Partial, adopt.Missing{
			Object: graph.ID{Kind: graph.ConfigMap.Kind, Namespace: cluster.Namespace, Name: Name(cluster.Name, part)},
			What:   fmt.Sprintf(format, args...), Maker: "the move or restore brings it; `move-hook pre` wrote it on the source",
		})
		return e
	}
	if len(maps) == 0 {
		return e
	}
	e.Closed = true
	var parts [][]byte
	for i, cm := range maps {
		e.Objects = append(e.Objects, adopt.Target{
			ID:  graph.ID{Kind: graph.ConfigMap.Kind, Namespace: cm.Namespace, Name: cm.Name},
			UID: cm.UID, ResourceVersion: cm.ResourceVersion, APIVersion: "v1",
		})
		_, closed := cm.Annotations[graph.AdoptedAnnotation]
		e.Closed = e.Closed && closed
		if cm.Data[checksumKey] != maps[0].Data[checksumKey] || cm.Data[partsKey] != maps[0].Data[partsKey] {
			return problem(number(cm, partKey), "is of another record than the part before it")
		}
		if number(cm, partKey) != i {
			return problem(i, "does not exist")
		}
		parts = append(parts, cm.BinaryData[payloadKey])
	}
	if n := number(maps[0], partsKey); len(parts) < n {
		return problem(len(parts), "does not exist")
	} else if len(parts) > n {
		return problem(n, "is there and the record has only %d parts", n)
	}
	snapshot, err := decode(parts, maps[0].Data[checksumKey])
	if err != nil {
		return problem(0, "cannot be read: %v", err)
	}
	if snapshot.Cluster != cluster {
		return problem(0, "is the record of %s", snapshot.Cluster)
	}
	e.Snapshot = snapshot
	return e
}

// Checksum is the checksum under which a record was stored; empty without one.
func Checksum(maps []*corev1.ConfigMap) string {
	if len(maps) == 0 {
		return ""
	}
	return maps[0].Data[checksumKey]
}

// number reads a count; what is no number sorts behind all parts.
func number(cm *corev1.ConfigMap, key string) int {
	n, err := strconv.Atoi(cm.Data[key])
	if err != nil || n < 0 {
		return 1 << 20
	}
	return n
}
