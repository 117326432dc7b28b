// Package clusterctl runs `clusterctl move`: the user's own binary where there
// is one, because its version belongs to their providers and their habits, else
// the library that is linked into move-hook.
//
// It decides nothing about a pivot. Output is passed through line by line as it
// comes; a failure is a *RunError with a command line that can be pasted.
package clusterctl
