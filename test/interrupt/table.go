package interrupt

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// Row is a line of the table that a series of trials ends with. A result is a word,
// and more after a colon.
type Row struct {
	Point, Result string
}

// Table logs the rows and how often there is each result.
func Table(t *testing.T, rows []Row) {
	t.Helper()
	counts := map[string]int{}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\n", r.Point, r.Result)
		counts[strings.SplitN(r.Result, ":", 2)[0]]++
	}
	_ = w.Flush() // into memory
	t.Logf("%d points tried: %v\n%s", len(rows), counts, text.String())
}

// Each tries every point by its index, as many at a time as -parallel says, and
// gives the rows in the order of the points.
func Each(t *testing.T, points []Point, try func(t *testing.T, i int) Row) []Row {
	t.Helper()
	tried := make([]Row, len(points))
	t.Run("at", func(t *testing.T) {
		for i, p := range points {
			t.Run(p.String(), func(t *testing.T) {
				t.Parallel()
				tried[i] = Row{p.String(), "not recovered: the trial broke off"}
				tried[i] = try(t, i)
			})
		}
	})
	return tried
}

// Seeded is random, and logs how to repeat it.
func Seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, seed))
}
