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

	"github.com/move-hook/move-hook/pkg/graph"
)

const (
	// version of the envelope. A reader refuses a later one.
	version = 1
	// maxPart bounds one ConfigMap's payload in bytes: the API server takes 1 MiB in all.
	maxPart = 900 << 10
	// maxContent bounds what a payload may unpack to, in bytes.
	maxContent = 256 << 20
)

// content is what is stored. Sorted and without times, so that the same snapshot
// gives the same bytes.
type content struct {
	Version  int             `json:"version"`
	Checksum string          `json:"checksum,omitempty"`
	Snapshot *graph.Snapshot `json:"snapshot"`
}

// encode gives the payload in parts and the checksum of the snapshot.
func encode(s graph.Snapshot) (parts [][]byte, checksum string, err error) {
	plain, err := json.Marshal(content{Version: version, Snapshot: &s})
	if err != nil {
		return nil, "", fmt.Errorf("encoding the record of %s: %w", s.Cluster, err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(plain)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, "", fmt.Errorf("packing the record of %s: %w", s.Cluster, err)
	}
	for rest := packed.Bytes(); len(rest) > 0; {
		n := min(len(rest), maxPart)
		parts = append(parts, rest[:n])
		rest = rest[n:]
	}
	return parts, sum(plain), nil
}

// decode puts the parts together and checks them.
func decode(parts [][]byte, checksum string) (*graph.Snapshot, error) {
	r, err := gzip.NewReader(bytes.NewReader(bytes.Join(parts, nil)))
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxContent+1))
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	if len(plain) > maxContent {
		return nil, fmt.Errorf("it unpacks to more than %d MiB", maxContent>>20)
	}
	if have := sum(plain); have != checksum {
		return nil, fmt.Errorf("its checksum is %s and should be %s", short(have), short(checksum))
	}
	return parse(plain)
}

func parse(plain []byte) (*graph.Snapshot, error) {
	var c content
	if err := json.Unmarshal(plain, &c); err != nil {
		return nil, err
	}
	if c.Version != version {
		return nil, fmt.Errorf("it has version %d and this move-hook reads version %d: use the move-hook that wrote it", c.Version, version)
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
