// Package preflight names everything that would go wrong in a pivot before anything
// is touched. It judges what internal/pivot has read of the source, and of the target
// where one is given, and reads nothing itself: values in, findings out.
//
// Each kind of fault has a check in a file of its own, a row in IDs, and with it a row
// in docs/pivot.md. Run is the whole of it; the command preflight and the first steps
// of `pre` and `move` call it with the same Input.
package preflight
