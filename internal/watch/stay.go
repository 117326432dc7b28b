package watch

import (
	"context"
	"fmt"
	"time"
)

// start opens the watches. A run that stays tries it again where a server that has
// answered before does not; one that never answered is more likely the wrong one.
func (r *run) start(ctx context.Context) error {
	for {
		err := r.streams.start(ctx)
		if err == nil || !r.o.Watch || answered(err) || !r.contact.known() {
			return err
		}
		r.contact.report(err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(lastRelist):
		}
	}
}

// unfinished: something may still arrive whose kind has to be found first.
func (r *run) unfinished() bool {
	done, _ := r.loop.finished()
	return !done || r.o.Watch
}

// giveUp ends the run once the API server has been away for too long. One that
// stays says so and waits for it to come back.
func (r *run) giveUp(ctx context.Context, stop context.CancelCauseFunc) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	away := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			err := r.contact.lost()
			switch {
			case err != nil && !r.o.Watch:
				stop(fmt.Errorf("watching %s: %w", r.o.Cluster.Name(), err))
				return
			case err != nil && !away:
				r.loop.message(fmt.Sprintf("watching %s: %v", r.o.Cluster.Name(), err), true)
			case err == nil && away:
				r.loop.message(r.o.Cluster.Name()+" answers again", false)
			}
			away = err != nil
		}
	}
}
