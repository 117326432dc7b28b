package interrupt_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/move-hook/move-hook/test/interrupt"
	"github.com/move-hook/move-hook/test/stack"
)

// faultRate is the share of requests that fail.
const faultRate = 0.05

// runsAgain bounds how often a command that gave up is run again.
const runsAgain = 8

// TestP4_FaultsAtRandom moves a Cluster, or moves it half way and takes that back,
// while each side fails requests at random. A command may give up, and says so by its
// exit code; run again it comes to the end.
func TestP4_FaultsAtRandom(t *testing.T) {
	whole := uninterrupted(t)
	runs := 2
	if soak() {
		runs = 100
	}
	random := interrupt.Seeded(t)
	rows := make([]interrupt.Row, runs)
	t.Run("run", func(t *testing.T) {
		for i := range runs {
			seed := random.Uint64()
			// Each kind alone, then all together.
			kinds := stack.Faults
			if n := i % (len(stack.Faults) + 1); n < len(stack.Faults) && soak() {
				kinds = kinds[n : n+1]
			}
			back := i%2 == 1
			if soak() {
				back = i/len(stack.Faults)%2 == 1
			}
			t.Run(fmt.Sprint(i+1), func(t *testing.T) {
				t.Parallel()
				rows[i] = interrupt.Row{Point: fmt.Sprintf("run %d, seed %d, %v", i+1, seed, kinds), Result: "not recovered: the run broke off"}
				rows[i].Result = faulty(t, whole, seed, back, kinds)
			})
		}
	})
	interrupt.Table(t, rows)
}

func faulty(t *testing.T, whole writes, seed uint64, back bool, kinds []stack.Fault) string {
	t.Helper()
	tr := begin(t)
	trouble := func() {
		tr.Source.Trouble(seed, faultRate, kinds...)
		tr.Target.Trouble(seed+1, faultRate, kinds...)
	}
	verb, at := "move", (*interrupt.Point)(nil)
	judge := (*trial).isMovedFrom
	if back {
		// Half way, by chance of the seed while creating or deleting.
		at = []*interrupt.Point{&whole.creating, &whole.deleting}[seed%2]
		judge = (*trial).isRestored
		if tr.run(t, at, "move") != -1 {
			t.Fatal("the move was not killed")
		}
		verb = "rollback"
	}
	trouble()
	var codes []string
	for range runsAgain {
		code := tr.run(t, nil, verb)
		codes = append(codes, fmt.Sprint(code))
		if code == 0 {
			break
		}
		if code != 3 && code != 5 {
			t.Errorf("%s ends with exit code %d, as if nobody should try again", verb, code)
			break
		}
		if verb == "move" {
			verb = "resume"
		}
	}
	done := map[stack.Fault]int{}
	for _, p := range []*stack.APIProxy{tr.Source, tr.Target} {
		for kind, n := range p.Troubled() {
			done[kind] += n
		}
		p.Trouble(0, 0)
	}
	said := fmt.Sprintf("exit codes %s, %s", strings.Join(codes, " "), counted(done))
	if codes[len(codes)-1] != "0" {
		t.Errorf("%s never comes to its end: %s", verb, said)
		return "not recovered: " + said
	}
	if err := judge(tr, t, whole); err != nil {
		t.Error(err)
		return "not recovered: the end is another; " + said
	}
	return "recovered: " + said
}

func counted(done map[stack.Fault]int) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(done)) {
		all = append(all, fmt.Sprintf("%d × %s", done[kind], kind))
	}
	return strings.Join(all, ", ")
}

// TestP4_TargetRestartsDuringPost kills the target's API server while post writes,
// and starts it again.
func TestP4_TargetRestartsDuringPost(t *testing.T) {
	uninterrupted(t)
	tr, _ := moved(t)
	tr.Target.Forget()
	post := tr.start(t, tr.onTargetAlone("post", "--watch-after", "0s", "--timeout", "3m")...)
	for range 600 {
		if len(tr.work()) >= 5 {
			break
		}
		wait(t.Context(), 10*time.Millisecond)
	}
	before := len(tr.work())
	world.target.KillAPIServer()
	select {
	case <-post.over:
		t.Error("post ended although the API server was only away")
	case <-time.After(3 * time.Second):
	}
	if err := world.target.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code := post.ended(t); code != 0 {
		t.Errorf("post ends with exit code %d", code)
	}
	tr.isMoved(t)
	if after := len(tr.work()); before < 5 || after <= before {
		t.Errorf("post wrote %d times before the API server was killed and %d times in all: it was not killed half way", before, after)
	}
}
