package interrupt_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/move-hook/move-hook/test/interrupt"
	"github.com/move-hook/move-hook/test/stack"
)

// moved is a Cluster that clusterctl has moved and nobody has adopted; file has its record.
func moved(t *testing.T) (tr *trial, file string) {
	t.Helper()
	tr = begin(t)
	file = filepath.Join(t.TempDir(), "record")
	if code := tr.Run(t, nil, "pre", "--kubeconfig", tr.Source.Kubeconfig(), "--to-kubeconfig", tr.Target.Kubeconfig(), "-n", tr.Namespace, "--record", file); code != 0 {
		t.Fatalf("pre ends with exit code %d", code)
	}
	stack.Must(stack.Move(t.Context(), world.source, world.target, tr.Namespace))(t)
	return tr, file
}

// exits runs the program and wants this exit code and these words.
func (tr *trial) exits(t *testing.T, code int, args []string, words ...string) {
	t.Helper()
	got := tr.Run(t, nil, args...)
	if got != code {
		t.Errorf("%v ends with exit code %d, not %d", args, got, code)
	}
	for _, w := range words {
		if !strings.Contains(tr.Said(), w) {
			t.Errorf("%v does not say %q", args, w)
		}
	}
}

func (tr *trial) isMoved(t *testing.T) {
	t.Helper()
	if err := errors.Join(tr.neverBoth(), interrupt.Same("the target is not what an uninterrupted move leaves", uninterrupted(t).after, tr.state(t, world.target))); err != nil {
		t.Error(err)
	}
}

// TestGone_TheSourceVanishedAfterTheMove: the target and the record are enough.
func TestGone_TheSourceVanishedAfterTheMove(t *testing.T) {
	uninterrupted(t)
	for name, more := range map[string]func(file string) []string{
		"with the record on the target": func(string) []string { return nil },
		"with the record in a file":     func(file string) []string { return []string{"--record", file} },
	} {
		t.Run(name, func(t *testing.T) {
			tr, file := moved(t)
			tr.Source.Cut()
			if more(file) != nil {
				tr.dropRecords(t)
			}
			// Nothing is adopted yet, and verify says so without the source.
			tr.exits(t, 1, tr.onTargetAlone("verify", more(file)...))
			tr.exits(t, 0, tr.onTargetAlone("post", slices.Concat(more(file), []string{"--watch-after", "0s", "--timeout", "1m"})...))
			tr.exits(t, 0, tr.onTargetAlone("verify", more(file)...))
			tr.isMoved(t)
		})
	}
}

// TestGone_ResumeWithoutTheSource: it takes the user's word, and never less.
func TestGone_ResumeWithoutTheSource(t *testing.T) {
	whole := uninterrupted(t)
	timeout := []string{"--watch-after", "0s", "--timeout", "1m"}
	for name, resume := range map[string]func(*trial) []string{
		"named": func(tr *trial) []string { return tr.args("resume", "--other-side-is-gone") },
		"not named": func(tr *trial) []string {
			return append(tr.onTargetAlone("resume", "--other-side-is-gone"), timeout...)
		},
	} {
		t.Run("the target is whole, the source is "+name, func(t *testing.T) {
			tr := begin(t)
			tr.run(t, &whole.deleting, "move")
			before := tr.state(t, world.target)
			tr.Source.Cut()
			for _, verb := range []string{"resume", "move"} {
				tr.exits(t, 5, tr.args(verb), "move-hook resume --other-side-is-gone")
			}
			if err := interrupt.Same("something was changed", before, tr.state(t, world.target)); err != nil {
				t.Error(err)
			}
			tr.exits(t, 0, resume(tr))
			tr.isMoved(t)
		})
	}
	t.Run("the target lacks objects", func(t *testing.T) {
		tr := begin(t)
		tr.run(t, &whole.creating, "move")
		before := tr.state(t, world.target)
		tr.Source.Cut()
		tr.exits(t, 4, tr.args("resume", "--other-side-is-gone"))
		if err := errors.Join(tr.neverBoth(), interrupt.Same("something was changed", before, tr.state(t, world.target))); err != nil {
			t.Error(err)
		}
	})
}

// TestGone_RollbackWithoutTheTarget: the same, the other way round.
func TestGone_RollbackWithoutTheTarget(t *testing.T) {
	whole := uninterrupted(t)
	for name, c := range map[string]struct {
		at   interrupt.Point
		code int
	}{
		"the source is whole":      {whole.creating, 0},
		"the source lacks objects": {whole.deleting, 4},
	} {
		t.Run(name, func(t *testing.T) {
			tr := begin(t)
			tr.run(t, &c.at, "move")
			before := tr.state(t, world.source)
			tr.Target.Cut()
			tr.exits(t, 5, tr.args("rollback"), "move-hook rollback --other-side-is-gone")
			if err := interrupt.Same("something was changed", before, tr.state(t, world.source)); err != nil {
				t.Error(err)
			}
			tr.exits(t, c.code, tr.args("rollback", "--other-side-is-gone"))
			want := before
			if c.code == 0 {
				want = tr.before
			}
			if err := errors.Join(tr.neverBoth(), interrupt.Same("the source is not what it should be", want, tr.state(t, world.source))); err != nil {
				t.Error(err)
			}
		})
	}
}

// dropRecords deletes the records that the move brought to the target.
func (tr *trial) dropRecords(t *testing.T) {
	t.Helper()
	for _, o := range stack.Must(stack.ReadAll(t.Context(), world.target, tr.Namespace))(t) {
		if interrupt.IsRecord(o) {
			if err := world.target.Client().Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
}
