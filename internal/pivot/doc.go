// Package pivot holds the flows of move-hook: Pre prepares the source of a pivot,
// Move runs a whole one, Verify judges the target, Status says where every
// Cluster stands.
//
// A flow is a list of named steps that run one after the other and stop at the
// first that ends it. Every step reads what is there before it writes, so that a
// flow can be killed anywhere and started again. How a flow ended is an Outcome
// inside its result; an error means that the API failed (or, with
// flow.ErrUsage, that the options do not fit together).
package pivot
