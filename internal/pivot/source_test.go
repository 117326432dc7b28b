package pivot

import (
	"context"
	"errors"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/move-hook/move-hook/internal/fleet"
	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/record"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// errKilled is what a write answers after which the process is no more.
var errKilled = errors.New("killed")

// cluster is a management cluster in memory: optimistic locking, records as
// ConfigMaps, and nothing else. It is the fast net under the scenarios on real ones.
type cluster struct {
	*fleet.Objects
	mu     sync.Mutex
	writes int
	// killAt makes the write of that number the last: it takes effect and nobody learns of it.
	killAt int
	// beforeRead runs before every read and may play controllers.
	beforeRead func(reads int)
	reads      int
}

func (c *cluster) Name() string { return "the test's source" }

func (c *cluster) Read(context.Context, management.Scope) (*graph.Graph, []management.Warning, error) {
	c.reads++
	if c.beforeRead != nil {
		c.beforeRead(c.reads)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Graph(), nil, nil
}

func (c *cluster) Clusters(context.Context, string) ([]graph.Object, error) {
	var found []graph.Object
	for _, o := range c.Graph().OfKind(graph.Cluster) {
		found = append(found, *o)
	}
	return found, nil
}

func (c *cluster) Apply(_ context.Context, a adopt.Action, dryRun bool) (adopt.Outcome, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killAt > 0 && c.writes >= c.killAt {
		return adopt.Moved, errKilled
	}
	t := a.Target()
	o, ok := c.All[t.ID]
	if !ok || o.UID != t.UID || o.ResourceVersion != t.ResourceVersion {
		return adopt.Moved, nil
	}
	if dryRun {
		return adopt.Applied, nil
	}
	change, ok := a.(adopt.ChangeMeta)
	if !ok {
		return adopt.Moved, errors.New("the source's flow changes labels and annotations only")
	}
	m := change.Change.Apply(labels.MetaOf(&o))
	o.Labels, o.Annotations = m.Labels, m.Annotations
	c.keep(o)
	return adopt.Applied, c.killed()
}

func (c *cluster) keep(o graph.Object) {
	c.Keep(o)
	c.writes++
}

func (c *cluster) killed() error {
	if c.killAt > 0 && c.writes >= c.killAt {
		return errKilled
	}
	return nil
}

// stored are the records as a real store keeps them.
type stored struct {
	*cluster
	maps map[string]*corev1.ConfigMap
}

func (s *stored) read(_ context.Context, of graph.ID) (adopt.Expectation, error) {
	var mine []*corev1.ConfigMap
	for _, m := range s.maps {
		if m.Labels[graph.RecordLabel] == record.LabelValue(of.Name) {
			mine = append(mine, m)
		}
	}
	return record.FromConfigMaps(of, mine), nil
}

func (s *stored) write(_ context.Context, snapshot graph.Snapshot, owner *graph.Object) (string, []string, error) {
	maps, checksum, err := record.Objects(snapshot, owner.APIVersion, owner.UID)
	if err != nil {
		return "", nil, err
	}
	var wrote []string
	for _, m := range maps {
		if have := s.maps[m.Name]; have != nil && have.Data["checksum"] == checksum {
			continue
		}
		if s.killAt > 0 && s.writes >= s.killAt {
			return "", wrote, errKilled
		}
		s.maps[m.Name] = m
		s.keep(graph.Object{ID: fleet.ID(graph.ConfigMap, m.Name), UID: "map", APIVersion: "v1", Labels: m.Labels, Owners: m.OwnerReferences})
		wrote = append(wrote, m.Name)
		if err := s.killed(); err != nil {
			return "", wrote, err
		}
	}
	return checksum, wrote, nil
}

func newCluster(side string) (*cluster, *stored) {
	c := &cluster{Objects: fleet.New(side)}
	return c, &stored{cluster: c, maps: map[string]*corev1.ConfigMap{}}
}

// state is what is on the objects, without versions: to compare two ways.
func (c *cluster) state() map[graph.ID][2]string {
	found := map[graph.ID][2]string{}
	for id, o := range c.All {
		found[id] = [2]string{changeString(o.Labels), changeString(o.Annotations)}
	}
	return found
}

func changeString(m map[string]string) string {
	keys := make([]string, 0, len(m))
	for k, v := range m {
		if k == labels.Held {
			v = "held"
		}
		keys = append(keys, k+"="+v)
	}
	slices.Sort(keys)
	out := ""
	for _, k := range keys {
		out += k + "\n"
	}
	return out
}
