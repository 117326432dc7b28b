package graph

// Snapshot is the ownership graph of one Cluster as it was at one moment, in a
// form that outlives the management cluster: identities instead of UIDs, sorted,
// without Secret data. internal/record wraps it in an envelope.
type Snapshot struct {
	Cluster ID             `json:"cluster"`
	Nodes   []SnapshotNode `json:"nodes"`
}

// SnapshotNode is one object of a Snapshot.
type SnapshotNode struct {
	ID
	// UID is the UID the object had where the snapshot was taken: only good for
	// recognising that copy, never for comparing owners.
	UID        string            `json:"uid,omitempty"`
	APIVersion string            `json:"apiVersion"`
	Owners     []SnapshotOwner   `json:"owners,omitempty"`
	Refs       []Ref             `json:"refs,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	// Annotations are kept because clusterctl's delete-for-move patch destroys those
	// of the source copy. A Secret's last-applied-configuration is left out: it holds data.
	Annotations map[string]string `json:"annotations,omitempty"`
	// PausedByUser: paused by annotation or spec.paused without our mark.
	PausedByUser bool  `json:"pausedByUser,omitempty"`
	Facts        Facts `json:"facts,omitzero"`
	// Moves: clusterctl takes this object along. False for what is recorded only
	// because a spec refers to it.
	Moves bool `json:"moves"`
}

// SnapshotOwner is one owner reference by identity, with its attributes.
type SnapshotOwner struct {
	ID
	APIVersion         string `json:"apiVersion"`
	Controller         *bool  `json:"controller,omitempty"`
	BlockOwnerDeletion *bool  `json:"blockOwnerDeletion,omitempty"`
}
