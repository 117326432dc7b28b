package interrupt_test

import (
	"fmt"
	"testing"

	"github.com/move-hook/move-hook/test/interrupt"
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
	var rows []interrupt.Row
	for _, first := range []interrupt.Point{whole.creating, whole.deleting} {
		var once writes
		try := func(t *testing.T, second *interrupt.Point) interrupt.Row {
			tr := begin(t)
			if code := tr.run(t, &first, "move"); code != -1 {
				t.Fatalf("move was not killed, it ended with exit code %d", code)
			}
			tr.Source.Forget()
			tr.Target.Forget()
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
			return interrupt.Row{Point: name, Result: result}
		}
		t.Run(fmt.Sprintf("%s of move", first), func(t *testing.T) {
			rows = append(rows, try(t, nil))
			t.Logf("that %s writes %d times on the source and %d times on the target", verb, once.source, once.target)
			points := once.points(t, 2)
			rows = append(rows, interrupt.Each(t, points, func(t *testing.T, i int) interrupt.Row { return try(t, &points[i]) })...)
		})
	}
	interrupt.Table(t, rows)
}
