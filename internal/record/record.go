// Package record is the envelope of a graph.Snapshot: how the ownership graph of
// a Cluster is stored as ConfigMaps beside it, so that every way of moving carries
// it, and in a file. It trusts nothing that it reads: size, checksum and shape are
// checked before a decision sees the content.
package record

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/move-hook/move-hook/pkg/graph"
)

const (
	// version of the envelope. A reader refuses a later one.
	version = 1
	// maxPart bounds one ConfigMap's payload in bytes: the API server takes 1 MiB in all.
	maxPart = 900 << 10
	// maxContent bounds what the payload of one Cluster may unpack to, in bytes: some
	// 100,000 objects, and little enough for a pod.
	maxContent = 64 << 20
	// maxFile bounds a record file, which has many Clusters and is its user's own.
	maxFile = 256 << 20
)

// content is what is stored. Sorted and without times, so that the same snapshot
// gives the same bytes.
type content struct {
	Version  int             `json:"version"`
	Snapshot *graph.Snapshot `json:"snapshot"`
}

// plain is the JSON of a record; its checksum is the record's, however it is stored.
func plain(s *graph.Snapshot) (text []byte, checksum string, err error) {
	text, err = json.Marshal(content{Version: version, Snapshot: s})
	if err != nil {
		return nil, "", fmt.Errorf("encoding the record of %s: %w", s.Cluster, err)
	}
	return text, sum(text), nil
}

// encode gives the payload in parts and the checksum of the record.
func encode(s graph.Snapshot) (parts [][]byte, checksum string, err error) {
	text, checksum, err := plain(&s)
	if err != nil {
		return nil, "", err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, "", fmt.Errorf("packing the record of %s: %w", s.Cluster, err)
	}
	return slices.Collect(slices.Chunk(packed.Bytes(), maxPart)), checksum, nil
}

// decode puts the parts together and checks them.
func decode(parts [][]byte, checksum string) (*graph.Snapshot, error) {
	r, err := gzip.NewReader(bytes.NewReader(bytes.Join(parts, nil)))
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxContent+1))
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	if len(text) > maxContent {
		return nil, fmt.Errorf("it unpacks to more than %d MiB", maxContent>>20)
	}
	return parse(text, checksum)
}

// parse checks the JSON of a record against its checksum, and its shape.
func parse(text []byte, checksum string) (*graph.Snapshot, error) {
	if have := sum(text); have != checksum {
		return nil, fmt.Errorf("its checksum is %s and should be %s: it was changed or cut off", short(have), short(checksum))
	}
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, err
	}
	// Before the rest is looked at: a later version may have another shape.
	if head.Version != version {
		return nil, fmt.Errorf("it has version %d and this move-hook reads version %d: use the move-hook that wrote it", head.Version, version)
	}
	var c content
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	if c.Snapshot == nil {
		return nil, errors.New("it holds no snapshot")
	}
	if err := c.Snapshot.Validate(); err != nil {
		return nil, err
	}
	return c.Snapshot, nil
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func short(checksum string) string {
	return checksum[:min(len(checksum), 12)]
}
