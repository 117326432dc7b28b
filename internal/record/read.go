package record

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

const maker = "the move or restore brings it; `move-hook pre` wrote it on the source"

// Read reads a Cluster's record. Without one the Expectation is zero; a record
// that is there and cannot be used is named in Partial, never taken for absent.
func Read(ctx context.Context, client typedcorev1.ConfigMapsGetter, cluster graph.ID) (adopt.Expectation, error) {
	have, err := list(ctx, client, cluster)
	if err != nil {
		return adopt.Expectation{}, err
	}
	return FromConfigMaps(cluster, slices.Collect(maps.Values(have))), nil
}

// FromSnapshot is a record that came from a file: it is open, and there is nothing
// to close.
func FromSnapshot(s *graph.Snapshot) adopt.Expectation { return adopt.Expectation{Snapshot: s} }

// Of gives the ConfigMaps of a Cluster's record as a graph has them, sorted: the
// record has to be read again only when one of these changed.
func Of(g *graph.Graph, cluster graph.ID) []adopt.Target {
	var out []adopt.Target
	for _, o := range g.Labelled(cluster) {
		if graph.IsRecord(o) && o.Labels[graph.RecordLabel] == LabelValue(cluster.Name) {
			out = append(out, adopt.Target{ID: o.ID, UID: o.UID, ResourceVersion: o.ResourceVersion, APIVersion: o.APIVersion})
		}
	}
	return out
}

// FromConfigMaps puts a Cluster's record together from its ConfigMaps, in any order.
func FromConfigMaps(cluster graph.ID, cms []*corev1.ConfigMap) adopt.Expectation {
	var e adopt.Expectation
	if len(cms) == 0 {
		return e
	}
	cms = slices.Clone(cms)
	slices.SortFunc(cms, func(a, b *corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) })
	closed := true
	for _, cm := range cms {
		e.Objects = append(e.Objects, adopt.Target{ID: idOf(cm), UID: cm.UID, ResourceVersion: cm.ResourceVersion, APIVersion: "v1"})
		_, done := cm.Annotations[graph.AdoptedAnnotation]
		closed = closed && done
	}
	parts, checksum, partial := assemble(cluster, cms)
	if len(partial) > 0 {
		e.Partial = partial
		return e
	}
	s, err := decode(parts, checksum)
	switch {
	case err != nil:
		e.Partial = []adopt.Missing{{Object: e.Objects[0].ID, What: fmt.Sprintf("cannot be read: %v", err), Maker: maker}}
	case s.Cluster != cluster:
		e.Partial = []adopt.Missing{{Object: e.Objects[0].ID, What: fmt.Sprintf("is the record of %s", s.Cluster), Maker: maker}}
	default:
		e.Snapshot, e.Closed = s, closed
	}
	return e
}

// assemble orders the parts of one generation and names everything that is in the
// way: parts that are missing, twice, or of another record.
func assemble(cluster graph.ID, cms []*corev1.ConfigMap) (parts [][]byte, checksum string, partial []adopt.Missing) {
	problem := func(id graph.ID, format string, args ...any) {
		partial = append(partial, adopt.Missing{Object: id, What: fmt.Sprintf(format, args...), Maker: maker})
	}
	first := cms[0]
	checksum = first.Data[checksumKey]
	n, err := strconv.Atoi(first.Data[partsKey])
	if err != nil || n < 1 || n > maxParts {
		problem(idOf(first), "does not say of how many parts the record is (%q)", first.Data[partsKey])
		return nil, "", partial
	}
	parts = make([][]byte, n)
	for _, cm := range cms {
		i, err := strconv.Atoi(cm.Data[partKey])
		switch {
		case cm.Data[checksumKey] != checksum || cm.Data[partsKey] != first.Data[partsKey]:
			problem(idOf(cm), "is of another record (checksum %s) than %s (checksum %s)", short(cm.Data[checksumKey]), first.Name, short(checksum))
		case err != nil || i < 0 || i >= n:
			problem(idOf(cm), "does not say which part of %d it is (%q)", n, cm.Data[partKey])
		case parts[i] != nil:
			problem(idOf(cm), "is part %d of the record, which is there twice", i)
		case len(cm.BinaryData[payloadKey]) == 0:
			problem(idOf(cm), "has no %s", payloadKey)
		default:
			parts[i] = cm.BinaryData[payloadKey]
		}
	}
	if len(partial) > 0 {
		return nil, "", partial
	}
	for i, part := range parts {
		if part == nil {
			problem(graph.ID{Kind: graph.ConfigMap.Kind, Namespace: cluster.Namespace, Name: Name(cluster.Name, i)}, "does not exist")
		}
	}
	return parts, checksum, partial
}

// Checksum is the checksum under which a record was stored; empty without one.
func Checksum(cms []*corev1.ConfigMap) string {
	if len(cms) == 0 {
		return ""
	}
	return cms[0].Data[checksumKey]
}

func idOf(cm *corev1.ConfigMap) graph.ID {
	return graph.ID{Kind: graph.ConfigMap.Kind, Namespace: cm.Namespace, Name: cm.Name}
}
