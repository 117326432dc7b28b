package watch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

const (
	// firstRetry and lastRetry bound the delay after an error or a write.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 30 * time.Second
	// look is how often an unfinished Cluster is looked at without any event: the
	// other side of the pivot is not watched.
	look = 10 * time.Second
	// lull lets a burst of changes to one Cluster end in one pass.
	lull = 100 * time.Millisecond
)

// passed is what one pass had to say.
type passed struct {
	plan adopt.Plan
	// checks explain the plan, where that is wanted.
	checks []adopt.Check
	// mine: the Cluster takes part in a pivot.
	mine bool
	// wrote: at least one action was tried.
	wrote bool
	// gone: the Cluster does not exist.
	gone bool
}

// loop gives Cluster keys to workers until every Cluster of a pivot has ended. It
// knows nothing of management clusters: pass does the work.
type loop struct {
	pass func(ctx context.Context, cluster graph.ID) (passed, error)
	// elsewhere says that what falls to other runs has ended; nil where all falls to this one.
	elsewhere func() bool
	// once: one pass for each Cluster is all there is to do (a dry run).
	once bool
	// settle is how long a refusal has to stand before it ends the run.
	settle   time.Duration
	progress flow.Progress
	// meter is told what is measured; nil for nothing.
	meter *meter

	queue workqueue.TypedRateLimitingInterface[graph.ID]
	// moved has room for one: it says that finished may answer differently.
	moved chan struct{}

	mu       sync.Mutex
	clusters map[graph.ID]*standing
	// common are the writes to what belongs to no Cluster.
	common []flow.Write
}

// standing is what is known of one Cluster's way. It is for saying and for
// ending the run; no pass reads it.
type standing struct {
	last   passed
	passes int
	err    error
	said   string
	writes []flow.Write
	notes  []finding.Finding // of the pass that closed the record
	checks []adopt.Check     // of the last pass that could be explained
	// foretold are the notes of the last pass before the release that are about what follows.
	foretold []finding.Finding
	// closed: it was adopted to the end. Without a record nothing on the server
	// tells it from a Cluster of no pivot any more.
	closed bool
	// first look, begin of the present phase, last change of any kind.
	first, since, changed time.Time
	spent                 map[adopt.Phase]time.Duration
}

func newLoop() *loop {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[graph.ID](firstRetry, lastRetry)
	return &loop{
		queue:    workqueue.NewTypedRateLimitingQueue[graph.ID](limiter),
		moved:    make(chan struct{}, 1),
		clusters: map[graph.ID]*standing{},
	}
}

// add makes a Cluster known, so that the run does not end before it was looked
// at, and queues it.
func (l *loop) add(cluster graph.ID) {
	l.mu.Lock()
	if l.clusters[cluster] == nil {
		now := time.Now()
		l.clusters[cluster] = &standing{first: now, since: now, changed: now, spent: map[adopt.Phase]time.Duration{}}
	}
	l.mu.Unlock()
	l.queue.AddAfter(cluster, lull)
}

// known says whether a Cluster was added.
func (l *loop) known(cluster graph.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clusters[cluster] != nil
}

// addAll queues every known Cluster of a namespace, or (empty) all.
func (l *loop) addAll(namespace string) {
	l.mu.Lock()
	known := slices.Collect(maps.Keys(l.clusters))
	l.mu.Unlock()
	for _, cluster := range known {
		if namespace == "" || cluster.Namespace == namespace {
			l.queue.AddAfter(cluster, time.Second)
		}
	}
}

// run works with n workers until ctx ends, and returns when the last has stopped.
func (l *loop) run(ctx context.Context, n int) {
	var workers sync.WaitGroup
	for range n {
		workers.Go(func() {
			for {
				cluster, closed := l.queue.Get()
				if closed {
					return
				}
				l.work(ctx, cluster)
				l.queue.Done(cluster)
			}
		})
	}
	<-ctx.Done()
	l.queue.ShutDown()
	workers.Wait()
}

func (l *loop) work(ctx context.Context, cluster graph.ID) {
	if ctx.Err() != nil {
		return
	}
	result, err := l.pass(ctx, cluster)
	if ctx.Err() != nil && err != nil {
		return
	}
	l.note(cluster, result, err)
	l.again(cluster, result, err)
	l.wake()
}

// wake lets wait ask again whether all is finished.
func (l *loop) wake() {
	select {
	case l.moved <- struct{}{}:
	default:
	}
}

// again decides when the Cluster is looked at next if nothing happens to it.
func (l *loop) again(cluster graph.ID, result passed, err error) {
	var held *heldError
	switch {
	case errors.As(err, &held):
		l.queue.Forget(cluster)
		l.queue.AddAfter(cluster, look)
		return
	case err != nil:
		l.queue.AddRateLimited(cluster)
		return
	case result.wrote && !l.once:
		// The watch brings what was written and usually wakes us before this; the
		// growing delay keeps a cache that lags behind from becoming a hot loop.
		l.queue.AddRateLimited(cluster)
	default:
		l.queue.Forget(cluster)
	}
	if at := result.plan.Again; !at.IsZero() {
		l.queue.AddAfter(cluster, max(time.Until(at), time.Second))
	}
	if result.mine && result.plan.Phase != adopt.Adopted {
		l.queue.AddAfter(cluster, look)
	}
}

// note keeps the result of a pass and says what is new about it.
func (l *loop) note(cluster graph.ID, result passed, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, now := l.clusters[cluster], time.Now()
	if s == nil {
		return
	}
	s.err = plain(err)
	if result.checks != nil {
		s.checks = result.checks
	}
	if err != nil {
		l.say(s, flow.Update{Cluster: cluster, Message: s.err.Error(), Warning: true}, s.err.Error())
		return
	}
	if s.closed && !result.mine && !result.gone {
		result.mine, result.plan.Notes = true, slices.DeleteFunc(slices.Clone(result.plan.Notes), outOfPivot)
	}
	s.closed = result.plan.Closes() || s.closed && result.mine && result.plan.Phase == adopt.Adopted
	if s.passes == 0 || s.last.plan.Phase != result.plan.Phase {
		if s.passes > 0 {
			s.spent[s.last.plan.Phase] += now.Sub(s.since)
			l.meter.left(s.last, now.Sub(s.since))
		}
		s.since, s.changed = now, now
	}
	s.last = result
	s.passes++
	p := result.plan
	if p.Phase == adopt.Adopting || p.Phase == adopt.AwaitingStatus || p.Phase == adopt.Releasing {
		if told := slices.DeleteFunc(slices.Clone(p.Notes), func(f finding.Finding) bool { return !adopt.Foretells(f) }); len(told) > 0 {
			s.foretold = told
		}
	}
	if p.Closes() {
		// What closes a record is told by its writes; the next pass says that it is
		// adopted, and judges nothing any more: these notes are the last.
		s.notes = p.Notes
	}
	if !result.mine || p.Closes() {
		return
	}
	l.say(s, flow.Update{Cluster: cluster, Phase: p.Phase, Waiting: p.Waiting, Refusals: p.Refusals, Notes: p.Notes}, sentence(p))
}

// plain makes one error of those of actions that ran side by side: that another
// run holds the Cluster if it is so, else the first.
func plain(err error) error {
	var held *heldError
	if errors.As(err, &held) {
		return held
	}
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) && len(several.Unwrap()) > 0 {
		return several.Unwrap()[0]
	}
	return err
}

// say tells once what has not been said last.
func (l *loop) say(s *standing, u flow.Update, words string) {
	if s.said == words {
		return
	}
	s.said, s.changed = words, time.Now()
	u.Time = s.changed
	l.progress.Say(u)
}

// message tells something about the whole run.
func (l *loop) message(text string, warning bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.progress.Say(flow.Update{Time: time.Now(), Message: text, Warning: warning})
}

// wrote keeps and tells a write.
func (l *loop) wrote(cluster graph.ID, w flow.Write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.clusters[cluster]; s != nil {
		s.writes = append(s.writes, w)
	}
	l.meter.wrote()
	l.progress.Say(flow.Update{Time: time.Now(), Cluster: cluster, Wrote: w})
}

// sentence is a plan in words, to see whether there is something new to say.
func sentence(p adopt.Plan) string {
	var b strings.Builder
	b.WriteString(string(p.Phase))
	for _, m := range p.Waiting {
		b.WriteString("\n" + m.String())
	}
	for _, list := range [][]finding.Finding{p.Refusals, p.Notes} {
		for _, f := range list {
			b.WriteString("\n" + f.String())
		}
	}
	return b.String()
}

// finished says that every Cluster was looked at, that at least one takes part in
// a pivot, and that all of those have ended; or that none takes part, and those that
// fall to other runs have ended. When only time is missing, later says when to ask
// again.
func (l *loop) finished() (done bool, later time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := false
	for _, s := range l.clusters {
		if s.passes == 0 || s.err != nil {
			return false, 0
		}
		if !s.last.mine {
			continue
		}
		seen = true
		switch phase := s.last.plan.Phase; {
		case l.once || phase == adopt.Adopted:
		case phase == adopt.Blocked:
			// A refusal may pass, as while something is just arriving.
			later = max(later, l.settle-time.Since(s.changed))
		default:
			return false, 0
		}
	}
	if !seen && l.elsewhere != nil {
		return l.elsewhere(), 0
	}
	return seen && later <= 0, later
}

// wait returns nil when all is finished, or the cause of ctx's end.
func (l *loop) wait(ctx context.Context, forever bool) error {
	for {
		done, later := l.finished()
		if done && !forever {
			return nil
		}
		var timer <-chan time.Time
		if later > 0 && !forever {
			timer = time.After(later)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.moved:
		case <-timer:
		}
	}
}
