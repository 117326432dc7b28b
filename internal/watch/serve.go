package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/move-hook/move-hook/internal/pivot/flow"
)

// Service says how a run that stays is looked at, and whether it shares its work
// with others.
type Service struct {
	// MetricsAddress and HealthAddress are listened on; empty or "0" for not at all.
	MetricsAddress, HealthAddress string
	// LeaderElect lets one of several processes work while the others stand by.
	LeaderElect bool
}

// Serve is Run until ctx ends: new Clusters are adopted as they come, and those
// that were adopted are again when they are pivoted again. The outcome is Done if
// everything that takes part in a pivot is adopted at the end.
func Serve(ctx context.Context, o Options, s Service) (Result, error) {
	o.Watch, o.Timeout, o.DryRun = true, 0, false
	o.Holder = cmp.Or(o.Holder, Identity())
	o.Progress = oneAtATime(o.Progress)
	begin := time.Now()
	sv := &service{o: o, contact: &contact{}, meter: newMeter()}
	sv.term = sv.work
	sv.result = Result{Outcome: flow.Done, Namespace: o.Namespace, Clusters: []ClusterResult{}, Message: "this process stood by"}
	closeAll, err := sv.listen(s)
	if err != nil {
		return Result{}, err
	}
	defer closeAll()
	if s.LeaderElect {
		err = sv.elect(ctx)
	} else {
		err = sv.term(ctx)
	}
	if ctx.Err() != nil {
		err = nil
	}
	sv.result.Seconds = time.Since(begin).Seconds()
	return sv.result, err
}

// service is one call of Serve. A term is the time in which this process works.
type service struct {
	o       Options
	contact *contact
	meter   *meter
	// term works until its context ends, or the API fails for good.
	term func(context.Context) error

	mu sync.Mutex
	// run is the present term's; nil while standing by.
	run    *run
	result Result
}

// work is one term. It begins with nothing but what is on the API server.
func (s *service) work(ctx context.Context) error {
	r := newRun(s.o, s.contact, s.meter)
	s.present(r)
	err := r.run(ctx)
	s.present(nil)
	s.result = r.result(err)
	if err != nil && ctx.Err() == nil {
		return err
	}
	return nil // the term has ended because it was told to
}

func (s *service) present(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run = r
	if r == nil {
		s.meter.loop.Store(nil)
		return
	}
	s.meter.loop.Store(r.loop)
}

// ready is nil once everything that is watched was read, and while the API server
// answers. Who stands by watches nothing and is ready to take over.
func (s *service) ready() error {
	if err := s.contact.present(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil && !s.run.synced.Load() {
		return errors.New("not everything that is watched has been read yet")
	}
	return nil
}

// listen serves metrics and health. An address that cannot be had is the command
// line's fault.
func (s *service) listen(o Service) (closeAll func(), err error) {
	var servers []*http.Server
	closeAll = func() {
		for _, server := range servers {
			_ = server.Close()
		}
	}
	for _, at := range []struct {
		address string
		mux     *http.ServeMux
	}{{o.MetricsAddress, s.metrics()}, {o.HealthAddress, s.health()}} {
		if at.address == "" || at.address == "0" {
			continue
		}
		listener, err := net.Listen("tcp", at.address)
		if err != nil {
			closeAll()
			return nil, flow.Usage(fmt.Errorf("serving metrics and health: %w", err))
		}
		server := &http.Server{Handler: at.mux, ReadHeaderTimeout: 10 * time.Second}
		servers = append(servers, server)
		go func() { _ = server.Serve(listener) }()
	}
	return closeAll, nil
}

func (s *service) metrics() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/metrics", s.meter.handler())
	return mux
}

// health answers whether this process lives, and whether it does its work.
func (s *service) health() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

// say tells something about the process.
func (s *service) say(text string) { s.o.Progress.Say(flow.Update{Time: time.Now(), Message: text}) }

// oneAtATime keeps what different terms and the election say apart.
func oneAtATime(p flow.Progress) flow.Progress {
	var mu sync.Mutex
	return func(u flow.Update) {
		mu.Lock()
		defer mu.Unlock()
		p.Say(u)
	}
}
