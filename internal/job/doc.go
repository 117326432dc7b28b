// Package job runs post on a management cluster as the Job of config/, for a move
// whose operator does not want to be waited for. The Job goes on, whatever becomes of
// the move that made it.
package job
