// Package watch is the loop of `move-hook post`: it watches a management cluster
// and lets adopt.Pass run for every Cluster that takes part in a pivot, whenever
// something about that Cluster changed, until each is adopted or blocked.
//
// It decides nothing. It remembers what it said, never what it did: killed
// anywhere and started again it reads the server and goes on.
//
// How it is put together: one reflector a kind (and namespace) feeds the store;
// the store keeps graph.Objects and hands out one immutable Graph a namespace;
// handlers map a changed object to Cluster keys; a rate-limited queue gives keys
// to workers; the world joins store, record, Lease and management.Cluster to the
// adopt.World that a pass needs.
package watch
