package stack

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fault is a way in which a network or an API server fails a client.
type Fault string

// What a proxy can do to a request instead of answering it.
const (
	Conflict        Fault = "conflict"          // 409 to an update, patch or delete
	TooManyRequests Fault = "too many requests" // 429, to be tried again after a second
	ServerError     Fault = "server error"      // 500 or 503, at random
	Timeout         Fault = "timeout"           // 504 after a second
	ConnectionLoss  Fault = "connection loss"   // the request does not arrive
	LostResponse    Fault = "lost response"     // it takes effect, and the client does not hear of it
	WatchExpiry     Fault = "watch expiry"      // 410 to a watch or to the next page of a list
)

// Faults are all of them.
var Faults = []Fault{Conflict, TooManyRequests, ServerError, Timeout, ConnectionLoss, LostResponse, WatchExpiry}

// faults is what a proxy does at random.
type faults struct {
	random *rand.Rand
	rate   float64
	kinds  []Fault
	done   map[Fault]int
}

// Trouble has the proxy fail this share of all requests (0 to 1), discovery among
// them, by the given kinds; none of them, or a rate of 0, ends it. A kind that a
// request cannot suffer spares it.
func (p *APIProxy) Trouble(seed uint64, rate float64, kinds ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = faults{random: rand.New(rand.NewPCG(seed, seed)), rate: rate, kinds: kinds, done: map[Fault]int{}}
}

// Troubled says how often each kind was done since Trouble.
func (p *APIProxy) Troubled() map[Fault]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.faults.done)
}

// draw chooses the fault of one request, "" for none.
func (p *APIProxy) draw(r *http.Request, verb string) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &p.faults
	if len(f.kinds) == 0 || f.random.Float64() >= f.rate {
		return ""
	}
	kind := f.kinds[f.random.IntN(len(f.kinds))]
	switch kind {
	case Conflict:
		if !slices.Contains([]string{"update", "patch", "delete"}, verb) {
			return ""
		}
	case WatchExpiry:
		if verb != "watch" && !r.URL.Query().Has("continue") {
			return ""
		}
	case TooManyRequests, ServerError, Timeout, ConnectionLoss, LostResponse:
	}
	f.done[kind]++
	return kind
}

// fail does it to the request.
func (p *APIProxy) fail(w http.ResponseWriter, r *http.Request, asked *Request, kind Fault) {
	var status *apierrors.StatusError
	resource := schema.GroupResource{Group: asked.Group, Resource: asked.Resource}
	switch kind {
	case Conflict:
		status = apierrors.NewConflict(resource, asked.Name, errors.New("the proxy says so"))
	case TooManyRequests:
		status = apierrors.NewTooManyRequests("the proxy is busy", 1)
		w.Header().Set("Retry-After", "1")
	case ServerError:
		if status = apierrors.NewServiceUnavailable("the proxy is unwell"); time.Now().UnixNano()%2 == 0 {
			status = apierrors.NewInternalError(errors.New("the proxy says so"))
		}
	case Timeout:
		time.Sleep(time.Second)
		status = apierrors.NewTimeoutError("the proxy waited", 0)
		status.ErrStatus.Code = http.StatusGatewayTimeout
	case WatchExpiry:
		status = apierrors.NewResourceExpired("the proxy forgot this version")
	case ConnectionLoss:
		panic(http.ErrAbortHandler)
	case LostResponse:
		p.forward.ServeHTTP(&nowhere{header: http.Header{}}, r)
		panic(http.ErrAbortHandler)
	}
	answer(w, status.ErrStatus)
}

func answer(w http.ResponseWriter, status metav1.Status) {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // the client may be gone
}
