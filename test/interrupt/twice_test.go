package interrupt_test

import (
	"fmt"
	"testing"
)

// TestP4_ResumeKilledAnywhereThenResumed kills `move-hook resume` of a move that was
// killed while clusterctl created, or while it deleted.
func TestP4_ResumeKilledAnywhereThenResumed(t *testing.T) {
	killedTwice(t, "resume", (*trial).resumed)
}

// TestP4_RollbackKilledAnywhereThenRolledBack does the same to `move-hook rollback`.
func TestP4_RollbackKilledAnywhereThenRolledBack(t *testing.T) {
	killedTwice(t, "rollback", (*trial).rolledBack)
}

func killedTwice(t *testing.T, verb string, again func(*trial, *testing.T, writes) string) {
	whole := uninterrupted(t)
	var rows []row
	for _, first := range []point{whole.creating, whole.deleting} {
		var once writes
		try := func(t *testing.T, second *point) row {
			tr := begin(t)
			if code := tr.run(t, &first, "move"); code != -1 {
				t.Fatalf("move was not killed, it ended with exit code %d", code)
			}
			tr.source.Forget()
			tr.target.Forget()
			name := fmt.Sprintf("%s of move, then a whole %s", first, verb)
			if second != nil {
				tr.run(t, second, verb)
				name = fmt.Sprintf("%s of move, then %s of %s", first, second, verb)
			}
			result := again(tr, t, whole)
			if result != "recovered" {
				t.Errorf("%s, although nothing was adopted when it was killed", result)
			}
			if second == nil {
				once = tr.written()
			}
			return row{name, result}
		}
		t.Run(fmt.Sprintf("%s of move", first), func(t *testing.T) {
			rows = append(rows, try(t, nil))
			t.Logf("that %s writes %d times on the source and %d times on the target", verb, once.source, once.target)
			each(t, once.points(t, 2), &rows, func(t *testing.T, p point) row { return try(t, &p) })
		})
	}
	table(t, rows)
}
