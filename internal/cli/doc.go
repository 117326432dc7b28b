// Package cli is the command line of move-hook: a file a command with its
// options, its flags and one call, and an exit code from the outcome.
//
// Run takes streams and arguments and returns the exit code: nothing here reads
// os.Args or exits, so that every command is tested in-process as it is used.
// Results go to stdout, progress, logs and errors to stderr.
package cli
