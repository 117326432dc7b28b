package clusterctl

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// MoveOptions says what to move and where its output goes.
type MoveOptions struct {
	From, To Kubeconfig
	// Namespace is what clusterctl moves, whole. Required: left empty clusterctl
	// would take the one of the kubeconfig's context, which may not be ours.
	Namespace string
	// DryRun is clusterctl's own: it reads the source and writes nowhere.
	DryRun bool
	// Extra are the user's flags for clusterctl, as written after `--`.
	Extra []string
	// Stdout and Stderr receive clusterctl's lines; nil discards them.
	Stdout, Stderr io.Writer
	// Grace is how long clusterctl may go on after SIGINT before it is killed;
	// 10 s when zero.
	Grace time.Duration
}

// FlagError refuses a flag after `--`.
type FlagError struct {
	Flag string
	// Why says what to do instead.
	Why string
}

// Error is one line: the flag and what to do instead.
func (e *FlagError) Error() string {
	return fmt.Sprintf("flag %s cannot be handed to clusterctl: %s", e.Flag, e.Why)
}

// ours are the flags that move-hook sets itself; the user gives them before `--`.
var ours = []string{"--kubeconfig", "--kubeconfig-context", "--to-kubeconfig", "--to-kubeconfig-context", "--namespace", "-n", "--dry-run"}

// others make `clusterctl move` something else than a move between two clusters.
var others = []string{"--to-directory", "--from-directory", "--help", "-h"}

// CheckExtra refuses flags after `--` that would make clusterctl move something
// else than what was prepared, and for the linked library those it does not know.
// The error is a *FlagError.
func (b Binary) CheckExtra(extra []string) error {
	for _, arg := range extra {
		name, _, _ := strings.Cut(arg, "=")
		// pflag also reads "-nfleet" as -n fleet.
		if strings.HasPrefix(arg, "-n") {
			name = "-n"
		}
		switch {
		case slices.Contains(ours, name):
			return &FlagError{Flag: name, Why: "give it to move-hook, before --"}
		case slices.Contains(others, name):
			return &FlagError{Flag: name, Why: "move-hook move moves between two management clusters; run `move-hook pre`, clusterctl and `move-hook post` one by one for anything else"}
		}
	}
	if b.Linked() {
		_, err := parseLinked(extra)
		return err
	}
	return nil
}

// CommandLine is what Move runs, quoted for a shell. For the linked library it is
// the command that does the same.
func (b Binary) CommandLine(o MoveOptions) string {
	program := b.Path
	if b.Linked() {
		program = "clusterctl"
	}
	words := append([]string{program}, arguments(o)...)
	for i, word := range words {
		words[i] = quote(word)
	}
	return strings.Join(words, " ")
}

func arguments(o MoveOptions) []string {
	args := []string{"move", "--namespace", o.Namespace}
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	add("--kubeconfig", o.From.Path)
	add("--kubeconfig-context", o.From.Context)
	add("--to-kubeconfig", o.To.Path)
	add("--to-kubeconfig-context", o.To.Context)
	if o.DryRun {
		args = append(args, "--dry-run")
	}
	return append(args, o.Extra...)
}

// quote makes one word of a POSIX shell.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
