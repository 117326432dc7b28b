package cli

import (
	"net/http"
	"time"

	"k8s.io/klog/v2"
)

// logRequests logs every request to the logger of its own context: writes from
// -v 1, reads from -v 2. Bodies are never logged.
func logRequests(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		level := 1
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			level = 2
		}
		logger := klog.FromContext(r.Context()).V(level)
		if !logger.Enabled() {
			return next.RoundTrip(r)
		}
		begin := time.Now()
		response, err := next.RoundTrip(r)
		values := []any{"method", r.Method, "path", r.URL.Path, "took", time.Since(begin).Round(time.Millisecond)}
		if err != nil {
			logger.Info("Request failed", append(values, "err", err.Error())...)
		} else {
			logger.Info("Request answered", append(values, "status", response.StatusCode)...)
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
