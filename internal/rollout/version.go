package rollout

// ClusterAPIVersion is the Cluster API release whose verdict this package gives:
// that of the module that is compiled in (a test compares it with go.mod).
const ClusterAPIVersion = "v1.14.2"
