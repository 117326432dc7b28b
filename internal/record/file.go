package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/move-hook/move-hook/pkg/graph"
)

// file is the form of --record FILE: the records of all Clusters of a pivot, to be
// read by people too.
type file struct {
	Version int          `json:"version"`
	Records []fileRecord `json:"records"`
}

// fileRecord is one record, and the checksum that it has in ConfigMaps too. It is
// checked as it was written, before anything in it is looked at.
type fileRecord struct {
	Checksum string          `json:"checksum"`
	Record   json.RawMessage `json:"record"`
}

// ToFile writes the records, sorted by Cluster, through a file beside it: path
// has the old or the new content and nothing between. The same records give the
// same bytes.
func ToFile(path string, snapshots []graph.Snapshot) error {
	text, err := encodeFile(snapshots)
	if err != nil {
		return err
	}
	if err := replace(path, text); err != nil {
		return fmt.Errorf("writing the record file %s: %w", path, err)
	}
	return nil
}

func encodeFile(snapshots []graph.Snapshot) ([]byte, error) {
	snapshots = slices.Clone(snapshots)
	slices.SortFunc(snapshots, func(a, b graph.Snapshot) int { return a.Cluster.Compare(b.Cluster) })
	f := file{Version: version}
	for i := range snapshots {
		text, checksum, err := plain(&snapshots[i])
		if err != nil {
			return nil, err
		}
		f.Records = append(f.Records, fileRecord{checksum, text})
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the record: %w", err)
	}
	return append(text, '\n'), nil
}

func replace(path string, text []byte) error {
	// CreateTemp makes it readable for its owner only: a record tells names of
	// everything that a Cluster is made of.
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // It is gone once it was renamed.
	_, err = tmp.Write(text)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// FromFile reads what ToFile wrote. The error names the file, and the record where
// it is one Cluster's that is wrong.
func FromFile(path string) ([]graph.Snapshot, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the record file: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s is no record file: it must be a regular file of at most %d MiB", path, maxFile>>20)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the record file: %w", err)
	}
	out, err := decodeFile(text)
	if err != nil {
		return nil, fmt.Errorf("%s is no usable record file: %w", path, err)
	}
	return out, nil
}

func decodeFile(text []byte) ([]graph.Snapshot, error) {
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	if f.Version != version {
		return nil, fmt.Errorf("it has version %d and this move-hook reads version %d: use the move-hook that wrote it", f.Version, version)
	}
	if len(f.Records) == 0 {
		return nil, errors.New("it holds no record")
	}
	seen := map[graph.ID]bool{}
	var out []graph.Snapshot
	for i, r := range f.Records {
		var compact bytes.Buffer
		if err := json.Compact(&compact, r.Record); err != nil {
			return nil, fmt.Errorf("record %d: %w", i+1, err)
		}
		s, err := parse(compact.Bytes(), r.Checksum)
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", i+1, err)
		}
		if seen[s.Cluster] {
			return nil, fmt.Errorf("record %d: there is another one of %s", i+1, s.Cluster)
		}
		seen[s.Cluster] = true
		out = append(out, *s)
	}
	return out, nil
}
