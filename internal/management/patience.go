package management

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// outage is how long a server that has answered before may not be reached: about
	// what a restart takes.
	outage = 20 * time.Second
	// tries bounds how often is asked what may well end alike for ever: a server that
	// never answered; one that answers, and has a webhook or an aggregated API that is down.
	tries = 4
	// firstDelay and lastDelay lie between two tries, with half of it by chance.
	firstDelay = 100 * time.Millisecond
	lastDelay  = 2 * time.Second
)

// patience sends a request again that the server did not hear or could not answer
// now. That is safe for writes too, which the server may have heard: a patch or a
// deletion carries the UID and where it matters the resourceVersion that it is for,
// and who creates expects that there is one already. A watch that fails is its reader's
// matter, and an answer that says when to come again (429) is client-go's.
type patience struct {
	heard atomic.Bool
}

func (p *patience) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Has("watch") {
			return answeredWithin(outage, next, r)
		}
		if r.Body != nil && r.GetBody == nil {
			return next.RoundTrip(r)
		}
		start, delay := time.Now(), firstDelay
		for try := 1; ; try++ {
			answer, err := next.RoundTrip(r)
			if err == nil {
				p.heard.Store(true)
			}
			isOutage := err != nil && p.heard.Load() && time.Since(start) < outage
			if !passing(answer, err) || (!isOutage && try >= tries) || r.Context().Err() != nil {
				return answer, err
			}
			again, bodyErr := renewed(r)
			if bodyErr != nil {
				return answer, errors.Join(err, bodyErr)
			}
			timer := time.NewTimer(delay/2 + rand.N(delay))
			select {
			case <-r.Context().Done():
				timer.Stop()
				return answer, err
			case <-timer.C:
			}
			if answer != nil {
				// Read to its end, or the connection could not be used again.
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
			r, delay = again, min(2*delay, lastDelay)
		}
	})
}

// passing says that the same request may get another answer soon.
func passing(answer *http.Response, err error) bool {
	if err != nil {
		return true
	}
	switch answer.StatusCode {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return answer.Header.Get("Retry-After") == ""
	}
	return false
}

// renewed is the request with its body from the start.
func renewed(r *http.Request) (*http.Request, error) {
	again := r.Clone(r.Context())
	if r.GetBody == nil {
		return again, nil
	}
	var err error
	again.Body, err = r.GetBody()
	return again, err
}

// answeredWithin gives a watch up whose answer does not begin: a server begins it
// at once, and one that was lost on its way would be waited for as long as the watch
// may last. What follows after that is quiet as long as nothing happens.
func answeredWithin(limit time.Duration, next http.RoundTripper, r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(limit, func() { cancel(fmt.Errorf("no answer to a watch within %s", limit)) })
	answer, err := next.RoundTrip(r.WithContext(ctx))
	timer.Stop()
	if err != nil {
		cancel(nil)
		return nil, err
	}
	answer.Body = &cancelled{answer.Body, cancel}
	return answer, nil
}

// cancelled is a body that ends its request when it is closed.
type cancelled struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *cancelled) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}
