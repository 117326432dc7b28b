package pivot

import (
	"fmt"
	"strings"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/pkg/graph"
)

// ReadExpected reads a folder that `clusterctl move --to-directory` wrote as what
// is expected on the target: a record of each Cluster in it, good for adopting by.
// Manifests as people keep them say who refers to whom and not who owned whom, so
// they are refused: the record would say that nobody owns anything.
func ReadExpected(dir string) ([]graph.Snapshot, []management.Warning, error) {
	expected, warnings, err := fromFolder(dir)
	if err != nil {
		return nil, nil, err
	}
	if len(expected) == 0 {
		return nil, nil, fmt.Errorf("%s holds no Cluster", dir)
	}
	for i := range expected {
		if id, ok := ownerless(&expected[i]); ok {
			return nil, nil, fmt.Errorf("%s tells no owner of %s: it must be a folder that `clusterctl move --to-directory` wrote", dir, id)
		}
	}
	return expected, warnings, nil
}

// fromFolder takes every object of the folder for moved: that is why it was written.
func fromFolder(dir string) ([]graph.Snapshot, []management.Warning, error) {
	g, warnings, err := management.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	written := func(id graph.ID) bool { _, ok := g.Object(id); return ok }
	var all []graph.Snapshot
	for _, cluster := range g.OfKind(graph.Cluster) {
		all = append(all, unpaused(g.SnapshotOf(cluster.ID, written)))
	}
	return all, warnings, nil
}

// ownerless finds an object that always has an owner and does not tell it.
func ownerless(s *graph.Snapshot) (graph.ID, bool) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		switch n.GroupKind() {
		case graph.Machine, graph.MachineSet, graph.MachineDeployment, graph.MachinePool:
		default:
			if n.Group != graph.ControlPlaneGroup || strings.HasSuffix(n.Kind, "Template") {
				continue
			}
		}
		if len(n.Owners) == 0 {
			return n.ID, true
		}
	}
	return graph.ID{}, false
}
