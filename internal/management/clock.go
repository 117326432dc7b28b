package management

import (
	"net/http"
	"sync/atomic"
	"time"
)

// slack is a difference between two clocks that may as well come from the Date
// header's whole seconds and from the time that an answer takes.
const slack = 2 * time.Second

// clock learns from the answers of an API server how far its clock is ahead of ours.
type clock struct {
	ahead atomic.Int64
}

func (c *clock) skew() time.Duration { return time.Duration(c.ahead.Load()) }

func (c *clock) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err == nil {
			c.learn(answer.Header.Get("Date"), time.Now())
		}
		return answer, err
	})
}

func (c *clock) learn(date string, now time.Time) {
	server, err := http.ParseTime(date)
	if err != nil {
		return
	}
	ahead := server.Sub(now)
	if ahead.Abs() <= slack {
		ahead = 0
	}
	c.ahead.Store(int64(ahead))
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip is the function itself.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
