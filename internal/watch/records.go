package watch

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/move-hook/move-hook/internal/record"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

// records reads the records of Clusters: the ConfigMaps whole, and only those,
// and only when the store has seen them change.
type records struct {
	client typedcorev1.ConfigMapsGetter
	// file are the records of --record FILE, by Cluster.
	file map[graph.ID]*graph.Snapshot
	// found is told every record that was read, once for each version.
	found func(*graph.Snapshot)

	mu    sync.Mutex
	known map[graph.ID]readRecord
}

type readRecord struct {
	versions string
	adopt.Expectation
}

func newRecords(client typedcorev1.ConfigMapsGetter, file []graph.Snapshot, found func(*graph.Snapshot)) *records {
	r := &records{client: client, file: map[graph.ID]*graph.Snapshot{}, found: found, known: map[graph.ID]readRecord{}}
	for i := range file {
		r.file[file[i].Cluster] = &file[i]
	}
	return r
}

// of gives a Cluster's record: the one beside it, else the one of the file. The
// file also stands in for a record of which parts are missing.
func (r *records) of(ctx context.Context, cluster graph.ID, g *graph.Graph) (adopt.Expectation, error) {
	e, err := r.beside(ctx, cluster, g)
	if err != nil {
		return adopt.Expectation{}, err
	}
	if given := r.file[cluster]; given != nil && e.Snapshot == nil {
		return adopt.Expectation{Snapshot: given, Objects: e.Objects}, nil
	}
	return e, nil
}

func (r *records) beside(ctx context.Context, cluster graph.ID, g *graph.Graph) (adopt.Expectation, error) {
	seen := configMapsOf(g, cluster)
	versions := versionsOf(seen)
	r.mu.Lock()
	known, ok := r.known[cluster]
	r.mu.Unlock()
	if ok && known.versions == versions {
		return known.Expectation, nil
	}
	var maps []*corev1.ConfigMap
	for _, o := range seen {
		m, err := r.client.ConfigMaps(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return adopt.Expectation{}, fmt.Errorf("reading the record ConfigMap %s/%s: %w", o.Namespace, o.Name, err)
		}
		maps = append(maps, m)
	}
	e := record.FromConfigMaps(cluster, maps)
	if e.Snapshot != nil {
		r.found(e.Snapshot)
	}
	r.mu.Lock()
	r.known[cluster] = readRecord{versions: versions, Expectation: e}
	r.mu.Unlock()
	return e, nil
}

// configMapsOf are the ConfigMaps of a Cluster's record that the store has seen.
func configMapsOf(g *graph.Graph, cluster graph.ID) []*graph.Object {
	label := record.LabelValue(cluster.Name)
	var found []*graph.Object
	for _, o := range g.Labelled(clusterID(cluster.Namespace, label)) {
		if graph.IsRecord(o) && o.Labels[graph.RecordLabel] == label {
			found = append(found, o)
		}
	}
	return found
}

func versionsOf(seen []*graph.Object) string {
	var b strings.Builder
	for _, o := range seen {
		fmt.Fprintf(&b, "%s %s %s\n", o.Name, o.UID, o.ResourceVersion)
	}
	return b.String()
}
