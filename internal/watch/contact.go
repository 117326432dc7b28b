package watch

import (
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// patience is how long an API server may be away before the run gives up.
const patience = time.Minute

// contact notices that an API server does not answer any more. Every request of
// the watches reports here; one answer, also a refusal, ends the absence.
type contact struct {
	mu    sync.Mutex
	heard bool
	since time.Time
	last  error
}

// report takes the result of a request.
func (c *contact) report(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered(err) {
		c.heard, c.since, c.last = true, time.Time{}, nil
		return
	}
	if c.since.IsZero() {
		c.since = time.Now()
	}
	c.last = err
}

// lost is an error once nothing was answered for longer than our patience.
func (c *contact) lost() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() || time.Since(c.since) < patience {
		return nil
	}
	return fmt.Errorf("the API server has not answered for %s: %w", time.Since(c.since).Truncate(time.Second), c.last)
}

// present is nil while the server answers: it has done so, and is not lost.
func (c *contact) present() error {
	if !c.known() {
		return errors.New("the API server has not answered yet")
	}
	return c.lost()
}

// known: the server has answered at least once.
func (c *contact) known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// answered: the server is there, whatever it thinks of the request.
func answered(err error) bool {
	if err == nil {
		return true
	}
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code < 500 && !apierrors.IsTimeout(err)
}
