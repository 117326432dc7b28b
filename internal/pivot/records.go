package pivot

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/record"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

// recordStore is where the records of a management cluster's Clusters are.
type recordStore interface {
	read(ctx context.Context, cluster graph.ID) (adopt.Expectation, error)
	// write stores a record and returns its checksum and what was written; the same
	// record again writes nothing.
	write(ctx context.Context, s graph.Snapshot, owner *graph.Object) (checksum string, wrote []string, err error)
}

// configMaps is the recordStore of a real management cluster.
type configMaps struct{ cluster *management.Cluster }

func (c configMaps) read(ctx context.Context, cluster graph.ID) (adopt.Expectation, error) {
	return record.Read(ctx, c.cluster.Clientset().CoreV1(), cluster)
}

func (c configMaps) write(ctx context.Context, s graph.Snapshot, owner *graph.Object) (string, []string, error) {
	return record.Write(ctx, c.cluster.Clientset().CoreV1(), s, owner.APIVersion, owner.UID)
}

// record writes every Cluster's record beside it.
func (p *preparation) record(ctx context.Context) (end bool, err error) {
	for _, cluster := range p.scope.Clusters {
		owner, ok := p.scope.Graph.Object(cluster)
		if !ok {
			continue
		}
		s := p.scope.Snapshot(cluster)
		p.snapshots[cluster] = s
		maps, checksum, err := record.Objects(s, owner.APIVersion, owner.UID)
		if err != nil {
			return true, err
		}
		p.checksums[cluster] = checksum
		for _, m := range maps {
			p.configMaps[cluster] = append(p.configMaps[cluster], m.Name)
		}
		wrote, err := p.store(ctx, s, owner)
		for _, name := range wrote {
			p.wrote(flow.Wrote(graph.ID{Kind: graph.ConfigMap.Kind, Namespace: cluster.Namespace, Name: name}, "written", p.o.DryRun))
		}
		if err != nil {
			return true, err
		}
	}
	return false, nil
}

// store writes a record, or tells what it would write.
func (p *preparation) store(ctx context.Context, s graph.Snapshot, owner *graph.Object) ([]string, error) {
	if !p.o.DryRun {
		_, wrote, err := p.records.write(ctx, s, owner)
		return wrote, err
	}
	have, err := p.records.read(ctx, s.Cluster)
	if err != nil {
		return nil, err
	}
	if have.Snapshot != nil && !have.Closed && sameSnapshot(*have.Snapshot, s) {
		return nil, nil
	}
	return p.configMaps[s.Cluster], nil
}

func sameSnapshot(a, b graph.Snapshot) bool {
	one, errOne := json.Marshal(a)
	two, errTwo := json.Marshal(b)
	return errOne == nil && errTwo == nil && bytes.Equal(one, two)
}

// file writes the records to the file as well.
func (p *preparation) file(context.Context) (end bool, err error) {
	if p.o.RecordFile == "" || p.o.DryRun {
		return false, nil
	}
	if err := record.ToFile(p.o.RecordFile, p.all()); err != nil {
		return true, err
	}
	p.result.RecordFile = p.o.RecordFile
	p.o.Progress.Say(flow.Update{Time: time.Now(), Message: "The record was written to " + p.o.RecordFile})
	return false, nil
}

// all are the records of this run, sorted by Cluster.
func (p *preparation) all() []graph.Snapshot {
	var all []graph.Snapshot
	for _, cluster := range slices.SortedFunc(maps.Keys(p.snapshots), graph.ID.Compare) {
		all = append(all, p.snapshots[cluster])
	}
	return all
}

// checksumOf is a record's checksum; it does not depend on who owns the record.
func checksumOf(s graph.Snapshot) string {
	_, checksum, err := record.Objects(s, "", "")
	if err != nil {
		// A snapshot that was read or taken can be encoded.
		return ""
	}
	return checksum
}
