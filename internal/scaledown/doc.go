// Package scaledown stops the providers of a management cluster while Clusters
// arrive there, and starts them again: the way for an API server without
// mutating admission policies. It scales their Deployments to zero and remembers
// on each how many replicas it had; their admission webhooks, which nobody serves
// meanwhile, are ignored where they would fail.
//
// What a Deployment or webhook configuration was is remembered in the very write
// that changes it. So a run that was killed anywhere is ended by the same command
// or undone by the other, and a second run writes nothing.
package scaledown
