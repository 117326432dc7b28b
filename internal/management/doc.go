// Package management is one management cluster: what kinds it serves, which
// objects there are, and the few writes that move-hook makes. It also reads a
// folder of manifests as if it were one.
//
// Everything is read as metadata, except the kinds whose spec or status a
// decision needs. Secrets are metadata on every path: their data never reaches
// this process. Every write carries the UID and resourceVersion that its decision
// was made on. client-go stays in here, in internal/watch and in internal/record.
package management
