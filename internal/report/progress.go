package report

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// maxRows bounds the redrawn block: a block taller than the terminal cannot be redrawn.
const maxRows = 12

// Progress shows how Clusters come along. On a terminal it is a block that is
// redrawn in place (Cluster, phase, time in it, what it waits for); elsewhere it
// is one plain line a change, so that a log stays readable.
//
// It is safe for concurrent use. Everything else that is written to the same
// terminal must go through Around, or the block is drawn over it.
type Progress struct {
	out     io.Writer
	results io.Writer
	style   Style
	redraw  bool
	log     *slog.Logger
	width   func() int
	now     func() time.Time

	mu       sync.Mutex
	standing map[graph.ID]standing
	drawn    int // lines of the block that are on the screen
	closed   bool
	around   []*lineWriter
}

type standing struct {
	phase adopt.Phase
	about string
	since time.Time
}

// ProgressOptions say where and how progress is printed.
type ProgressOptions struct {
	// Results takes the lines about single writes, as kubectl prints them; nil means
	// that they go where progress goes. It may be the same terminal.
	Results io.Writer
	// Redraw: out is a terminal that understands cursor movement.
	Redraw bool
	// Log takes every update as one record with fields of its own, instead of lines.
	Log *slog.Logger
	// Width is the terminal's width in columns; nil or zero means 80.
	Width func() int
	// Now is the clock for elapsed times; nil is time.Now.
	Now   func() time.Time
	Style Style
}

// NewProgress makes a printer for out, which is usually stderr.
func NewProgress(out io.Writer, o ProgressOptions) *Progress {
	p := &Progress{out: out, results: o.Results, style: o.Style, redraw: o.Redraw && o.Log == nil, log: o.Log, width: o.Width, now: o.Now,
		standing: map[graph.ID]standing{}}
	if p.now == nil {
		p.now = time.Now
	}
	if p.results == nil {
		p.results = out
	}
	return p
}

// Show takes one update of a flow; it is a flow.Progress.
func (p *Progress) Show(u flow.Update) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return
	case p.log != nil:
		p.record(u)
		return
	}
	if u.Step != "" {
		p.above(func() { fmt.Fprintln(p.out, p.style.dress(heading, u.Step)) })
	}
	if u.Message != "" {
		p.above(func() { fmt.Fprintln(p.out, p.message(u)) })
	}
	if u.Wrote != "" {
		p.above(func() { fmt.Fprintln(p.results, u.Wrote) })
	}
	if u.Phase != "" {
		p.phase(u)
	}
}

// record is Show for a machine that reads.
func (p *Progress) record(u flow.Update) {
	var about []any
	if !u.Cluster.IsZero() {
		about = append(about, "cluster", path(u.Cluster))
	}
	switch {
	case u.Warning:
		p.log.Warn(u.Message, about...)
	case u.Message != "":
		p.log.Info(u.Message, about...)
	}
	for _, said := range []string{u.Step, string(u.Wrote)} {
		if said != "" {
			p.log.Info(said, about...)
		}
	}
	if u.Phase == "" {
		return
	}
	was, seen := p.standing[u.Cluster]
	is := standing{phase: u.Phase, about: About(u.Waiting, u.Refusals)}
	p.standing[u.Cluster] = is
	if !seen || was != is {
		p.log.Info(sentence(u.Cluster, is), append(about, "phase", string(is.phase), "why", is.about)...)
	}
}

func (p *Progress) message(u flow.Update) string {
	text := u.Message
	if !u.Cluster.IsZero() && !strings.HasPrefix(text, u.Cluster.String()) {
		text = u.Cluster.String() + ": " + text
	}
	if u.Warning {
		return p.style.dress(waits, "warning:") + " " + text
	}
	return text
}

// phase shows where a Cluster stands now; what was said before is not said again.
func (p *Progress) phase(u flow.Update) {
	was, seen := p.standing[u.Cluster]
	is := standing{phase: u.Phase, about: About(u.Waiting, u.Refusals), since: was.since}
	if !seen || was.phase != is.phase {
		is.since = p.now()
	}
	p.standing[u.Cluster] = is
	switch {
	case p.redraw:
		p.draw()
	case !seen || was.phase != is.phase || was.about != is.about:
		fmt.Fprintln(p.out, sentence(u.Cluster, is))
	}
}

// Animate redraws every second, so that elapsed times move, until ctx ends.
// Without a redrawn block it returns at once.
func (p *Progress) Animate(ctx context.Context) {
	if !p.redraw {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		}
	}
}

// Close takes the block off the screen and writes what Around still holds.
// Results are printed after it. Further calls of Show print nothing.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.erase()
	for _, w := range p.around {
		w.flush()
	}
}

// Around returns a writer to w that keeps clear of the block: whole lines are
// written above it. Without a redrawn block it is w itself.
func (p *Progress) Around(w io.Writer) io.Writer {
	if !p.redraw {
		return w
	}
	lw := &lineWriter{p: p, w: w}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.around = append(p.around, lw)
	return lw
}

// lineWriter holds back an unfinished line: the block needs a line of its own.
type lineWriter struct {
	p    *Progress
	w    io.Writer
	rest []byte
}

func (l *lineWriter) Write(b []byte) (int, error) {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	l.rest = append(l.rest, b...)
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	if end == 0 {
		return len(b), nil
	}
	var err error
	l.p.above(func() { _, err = l.w.Write(l.rest[:end]) })
	l.rest = slices.Clone(l.rest[end:])
	return len(b), err
}

func (l *lineWriter) flush() {
	if len(l.rest) > 0 {
		// Closing: a terminal that cannot be written to has nobody to tell.
		_, _ = l.w.Write(append(l.rest, '\n'))
		l.rest = nil
	}
}

// above lets f write where the block is and draws the block again below.
func (p *Progress) above(f func()) {
	p.erase()
	f()
	if p.redraw && !p.closed {
		p.draw()
	}
}

func (p *Progress) erase() {
	if p.drawn > 0 {
		fmt.Fprintf(p.out, "\x1b[%dA\x1b[J", p.drawn)
		p.drawn = 0
	}
}

func (p *Progress) draw() {
	if p.closed || len(p.standing) == 0 {
		return
	}
	var b bytes.Buffer
	out := &sticky{w: &b}
	p.block().write(out, p.style)
	p.erase()
	p.drawn = bytes.Count(b.Bytes(), []byte("\n"))
	// A terminal that cannot be written to has nobody to tell.
	_, _ = p.out.Write(b.Bytes())
}

// block is the table as it is to be drawn: what still moves comes first, and
// what does not fit is counted.
func (p *Progress) block() *columns {
	ids := slices.SortedFunc(maps.Keys(p.standing), func(a, b graph.ID) int {
		if d := settled(p.standing[a].phase) - settled(p.standing[b].phase); d != 0 {
			return d
		}
		return a.Compare(b)
	})
	t := &columns{head: []string{"CLUSTER", "PHASE", "FOR", "WAITING FOR"}}
	room := 80
	if p.width != nil {
		if w := p.width(); w > 0 {
			room = w
		}
	}
	names, shown := 0, min(len(ids), maxRows)
	for _, id := range ids[:shown] {
		names = max(names, len(path(id)))
	}
	more := ""
	if left := len(ids) - shown; left > 0 {
		more = "and " + itoa(left) + " more"
	}
	names = max(min(names, room/3), len(more), len(t.head[0]))
	// 15 columns for the longest phase, 5 for the time, three gaps, one spare.
	rest := max(room-names-15-5-3*len(gap)-1, 12)
	for _, id := range ids[:shown] {
		s := p.standing[id]
		t.add(cell{text: shorten(path(id), names)}, cell{string(s.phase), paintOfPhase(s.phase)},
			cell{elapsed(p.now().Sub(s.since)), quiet}, cell{text: shorten(s.about, rest)})
	}
	if more != "" {
		t.add(cell{more, quiet}, cell{}, cell{}, cell{})
	}
	return t
}

// settled orders phases for the block: what ended sinks to the bottom.
func settled(p adopt.Phase) int {
	switch p {
	case adopt.Adopted:
		return 1
	case adopt.Deferred, adopt.Blocked, adopt.Adopting, adopt.AwaitingStatus, adopt.Releasing, adopt.Watching:
		return 0
	}
	return 0
}

func paintOfPhase(p adopt.Phase) paint {
	switch p {
	case adopt.Adopted:
		return good
	case adopt.Blocked:
		return wrong
	case adopt.Deferred, adopt.AwaitingStatus, adopt.Watching:
		return waits
	case adopt.Adopting, adopt.Releasing:
		return plain
	}
	return plain
}

// sentence is the line for a log: "Cluster fleet/c1 is deferred: …".
func sentence(cluster graph.ID, s standing) string {
	line := cluster.String() + " is " + string(s.phase)
	if s.about != "" {
		line += ": " + s.about
	}
	return line
}

// About says in one line why a Cluster is refused or what it waits for; empty
// where its phase says it all. Objects of one kind that wait for the same are
// counted: "Machine fleet/c1-cp-0 (and 2 more) has no status.nodeRef yet".
func About(waiting []adopt.Missing, refusals []finding.Finding) string {
	var parts []string
	for _, f := range refusals {
		parts = append(parts, f.Object+": "+f.Message+values(f))
	}
	type sameWait struct {
		kind        graph.GroupKind
		what, maker string
	}
	first, more := []adopt.Missing{}, map[sameWait]int{}
	for _, m := range waiting {
		same := sameWait{m.Object.GroupKind(), m.What, m.Maker}
		if _, known := more[same]; known {
			more[same]++
			continue
		}
		more[same] = 0
		first = append(first, m)
	}
	for _, m := range first {
		if n := more[sameWait{m.Object.GroupKind(), m.What, m.Maker}]; n > 0 {
			m.What = "(and " + itoa(n) + " more) " + m.What
		}
		parts = append(parts, m.String())
	}
	return some(parts, 3)
}

// some joins the first n parts and counts the rest.
func some(parts []string, n int) string {
	if len(parts) > n+1 {
		parts = append(slices.Clone(parts[:n]), "and "+itoa(len(parts)-n)+" more")
	}
	return strings.Join(parts, "; ")
}

// path is namespace/name, or the name alone.
func path(id graph.ID) string {
	if id.Namespace == "" {
		return id.Name
	}
	return id.Namespace + "/" + id.Name
}

// elapsed is a duration as people say it: 12s, 3m05s, 2h10m.
func elapsed(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	switch {
	case d < time.Minute:
		return itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}
