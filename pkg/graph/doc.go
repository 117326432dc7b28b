// Package graph is the ownership graph of Cluster API objects: who owns whom,
// who refers to whom, and what clusterctl would move.
//
// A Builder takes objects from any source (a management cluster, a folder of
// YAML, a record), Build turns them into a Graph that never changes, and
// everything else asks the Graph. The package reads nothing by itself, knows no
// clock and no client, and the same objects give the same answers byte for byte.
//
// Identity is group, kind, namespace and name. UIDs are attributes of one copy:
// they decide whether an owner reference is Live or Stale, never who the owner is.
package graph
