package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/pkg/graph"
)

const (
	prefix      = "move-hook-record-"
	payloadKey  = "record.json.gz"
	checksumKey = "checksum"
	partKey     = "part"
	partsKey    = "parts"
	clusterKey  = "cluster"
	// maxParts is more than maxContent can be packed into.
	maxParts = 400
	maxLabel = 63
	maxName  = 253
)

// Name is the name of a Cluster's record ConfigMap. Further parts have a number
// behind it, and a hash of the Cluster's name: "move-hook-record-prod-1" is the
// record of a Cluster prod-1, which may well be prod's neighbour. A name too long
// for Kubernetes is cut and told apart by a hash.
func Name(cluster string, part int) string {
	suffix := ""
	if part > 0 {
		suffix = fmt.Sprintf("-%d-%s", part, digest(cluster)[:8])
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
	tail := "-" + digest(s)[:16]
	return s[:room-len(tail)] + tail
}

func digest(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
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
