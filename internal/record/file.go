package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/move-hook/move-hook/pkg/graph"
)

// file is the form of --record FILE: the records of all Clusters of a pivot, to be
// read by people too.
type file struct {
	Version int       `json:"version"`
	Records []content `json:"records"`
}

// ToFile writes the records, sorted by Cluster, through a file beside it: path
// has the old or the new content and nothing between. The same records give the
// same bytes.
func ToFile(path string, snapshots []graph.Snapshot) error {
	f := file{Version: version}
	snapshots = slices.Clone(snapshots)
	slices.SortFunc(snapshots, func(a, b graph.Snapshot) int { return a.Cluster.Compare(b.Cluster) })
	for i := range snapshots {
		plain, err := json.Marshal(snapshots[i])
		if err != nil {
			return fmt.Errorf("encoding the record of %s: %w", snapshots[i].Cluster, err)
		}
		f.Records = append(f.Records, content{Version: version, Checksum: sum(plain), Snapshot: &snapshots[i]})
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the record: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing the record file: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(append(text, '\n'))
	if closing := tmp.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing the record file %s: %w", path, err)
	}
	return nil
}

// FromFile reads what ToFile wrote. The error names the file, and the Cluster
// where it is one Cluster's record that is wrong.
func FromFile(path string) ([]graph.Snapshot, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the record file: %w", err)
	}
	if info.Size() > maxContent {
		return nil, fmt.Errorf("%s is larger than %d MiB: no record is", path, maxContent>>20)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the record file: %w", err)
	}
	out, err := parseFile(text)
	if err != nil {
		return nil, fmt.Errorf("%s is no usable record file: %w", path, err)
	}
	return out, nil
}

func parseFile(text []byte) ([]graph.Snapshot, error) {
	var f file
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&f); err != nil {
		return nil, err
	}
	if f.Version != version {
		return nil, fmt.Errorf("it has version %d and this move-hook reads version %d", f.Version, version)
	}
	var out []graph.Snapshot
	for i, c := range f.Records {
		if c.Snapshot == nil {
			return nil, fmt.Errorf("record %d is empty", i)
		}
		plain, err := json.Marshal(c.Snapshot)
		if err != nil {
			return nil, err
		}
		if have := sum(plain); have != c.Checksum {
			return nil, fmt.Errorf("%s: the checksum is %s and should be %s: it was changed by hand or cut off", c.Snapshot.Cluster, short(have), short(c.Checksum))
		}
		if err := c.Snapshot.Validate(); err != nil {
			return nil, err
		}
		out = append(out, *c.Snapshot)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("it holds no record")
	}
	return out, nil
}
