// Package prefill works out the KubeadmControlPlane and the infrastructure machine
// template that adopt stand-alone control-plane Machines without replacing any.
//
// It is pure: Compose takes what was read and gives a Proposal; Judge adds what
// upstream's own comparison says of it. Nothing here reads, writes or knows the time.
// A Proposal says beside its objects what could not be known, in which fields the
// Machines differ from each other, and which would be replaced: whoever prints or
// applies it must say so too.
package prefill
