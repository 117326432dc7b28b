package watch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// script is a loop whose passes answer from a function of the Cluster and the
// number of the pass, and which counts them.
type script struct {
	*loop
	mu     sync.Mutex
	passes map[graph.ID]int
	said   []flow.Update
}

func scripted(answer func(cluster graph.ID, pass int) (passed, error)) *script {
	s := &script{loop: newLoop(), passes: map[graph.ID]int{}}
	s.settle = 5 * time.Second
	s.progress = func(u flow.Update) { s.said = append(s.said, u) }
	s.pass = func(_ context.Context, cluster graph.ID) (passed, error) {
		s.mu.Lock()
		s.passes[cluster]++
		n := s.passes[cluster]
		s.mu.Unlock()
		return answer(cluster, n)
	}
	return s
}

// until runs the loop until it is finished or the time is over.
func (s *script) until(t *testing.T, timeout time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	var running sync.WaitGroup
	work, stop := context.WithCancel(t.Context())
	running.Go(func() { s.run(work, 2) })
	err := s.wait(ctx, false)
	stop()
	running.Wait()
	return err
}

func in(phase adopt.Phase) passed { return passed{plan: adopt.Plan{Phase: phase}, mine: true} }

var one, two, three = clusterID("fleet", "c1"), clusterID("fleet", "c2"), clusterID("fleet", "c3")

func TestLoop_EndsWhenEveryClusterOfThePivotHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted(func(cluster graph.ID, pass int) (passed, error) {
			switch cluster {
			case one:
				return in(adopt.Adopted), nil
			case two:
				if pass < 3 {
					return in(adopt.Deferred), nil
				}
				return in(adopt.Adopted), nil
			default:
				return passed{plan: adopt.Plan{Phase: adopt.Adopted}}, nil
			}
		})
		s.add(one)
		s.add(two)
		s.add(three)
		begin := time.Now()
		if err := s.until(t, time.Minute); err != nil {
			t.Fatal(err)
		}
		// Two looks without an event lie between the first and the third pass.
		if took, want := time.Since(begin), lull+2*look; took != want {
			t.Errorf("took %s, want %s", took, want)
		}
	})
}

func TestLoop_NothingOfAPivotIsNeverFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted(func(graph.ID, int) (passed, error) {
			return passed{plan: adopt.Plan{Phase: adopt.Adopted}}, nil
		})
		s.add(one)
		if err := s.until(t, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestLoop_ARefusalHasToStandBeforeItEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted(func(_ graph.ID, pass int) (passed, error) {
			if pass == 1 {
				return in(adopt.Blocked), nil
			}
			return in(adopt.Adopted), nil
		})
		s.add(one)
		time.AfterFunc(2*time.Second, func() { s.add(one) })
		if err := s.until(t, time.Minute); err != nil {
			t.Fatal(err)
		}
		if got := s.clusters[one].last.plan.Phase; got != adopt.Adopted {
			t.Errorf("ended as %s", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := scripted(func(graph.ID, int) (passed, error) { return in(adopt.Blocked), nil })
		s.add(one)
		begin := time.Now()
		if err := s.until(t, time.Minute); err != nil {
			t.Fatal(err)
		}
		if took, want := time.Since(begin), lull+s.settle; took != want {
			t.Errorf("took %s, want %s", took, want)
		}
	})
}

func TestLoop_ADeferredClusterDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := scripted(func(cluster graph.ID, _ int) (passed, error) {
			if cluster == one {
				<-release
			}
			return in(adopt.Adopted), nil
		})
		s.add(one)
		s.add(two)
		s.add(three)
		time.AfterFunc(time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.passes[two] != 1 || s.passes[three] != 1 {
				t.Errorf("others were kept waiting: %v", s.passes)
			}
			close(release)
		})
		if err := s.until(t, time.Minute); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLoop_ABurstOfEventsIsOnePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted(func(graph.ID, int) (passed, error) { return in(adopt.Adopted), nil })
		for range 1000 {
			s.add(one)
		}
		if err := s.until(t, time.Minute); err != nil {
			t.Fatal(err)
		}
		if s.passes[one] != 1 {
			t.Errorf("%d passes", s.passes[one])
		}
	})
}

func TestLoop_TimeIsAwaitedExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		at := begin.Add(3 * time.Second)
		s := scripted(func(graph.ID, int) (passed, error) {
			if time.Now().Before(at) {
				return passed{plan: adopt.Plan{Phase: adopt.Watching, Again: at}, mine: true}, nil
			}
			return in(adopt.Adopted), nil
		})
		s.add(one)
		if err := s.until(t, time.Minute); err != nil {
			t.Fatal(err)
		}
		if !time.Now().Equal(at) || s.passes[one] != 2 {
			t.Errorf("ended after %s with %d passes", time.Since(begin), s.passes[one])
		}
	})
}

func TestLoop_NoHotLoop(t *testing.T) {
	for name, answer := range map[string]func(graph.ID, int) (passed, error){
		"errors":             func(graph.ID, int) (passed, error) { return passed{}, errors.New("boom") },
		"a cache that lags":  func(graph.ID, int) (passed, error) { p := in(adopt.Adopting); p.wrote = true; return p, nil },
		"another post holds": func(graph.ID, int) (passed, error) { return passed{}, &heldError{cluster: one, holder: "other"} },
		"a time in the past": func(graph.ID, int) (passed, error) {
			return passed{plan: adopt.Plan{Phase: adopt.Deferred, Again: time.Now().Add(-time.Hour)}, mine: true}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scripted(answer)
				s.add(one)
				if err := s.until(t, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				if s.passes[one] > 62 {
					t.Errorf("%d passes in a minute", s.passes[one])
				}
				if len(s.said) != 1 {
					t.Errorf("said %d times: %v", len(s.said), s.said)
				}
			})
		})
	}
}

func TestLoop_SaysEachChangeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		missing := func(what string) passed {
			p := in(adopt.Deferred)
			p.plan.Waiting = []adopt.Missing{{Object: one, What: what}}
			return p
		}
		s := scripted(func(_ graph.ID, pass int) (passed, error) {
			switch {
			case pass < 3:
				return missing("does not exist"), nil
			case pass == 3:
				return passed{}, errors.New("conflict")
			case pass < 6:
				return missing("status.nodeRef is not set"), nil
			}
			p := in(adopt.Adopted)
			p.plan.Notes = []finding.Finding{{ID: "ForeignOwner"}}
			return p, nil
		})
		s.add(one)
		if err := s.until(t, 5*time.Minute); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, u := range s.said {
			line := string(u.Phase) + u.Message
			for _, m := range u.Waiting {
				line += " " + m.What
			}
			got = append(got, line)
		}
		if diff := cmp.Diff([]string{"deferred does not exist", "conflict", "deferred status.nodeRef is not set", "adopted"}, got); diff != "" {
			t.Error(diff)
		}
		if spent := s.clusters[one].spent[adopt.Deferred]; spent < 3*look {
			t.Errorf("deferred for %s", spent)
		}
	})
}

func TestLoop_ADryRunLooksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted(func(graph.ID, int) (passed, error) { p := in(adopt.Adopting); p.wrote = true; return p, nil })
		s.once = true
		s.add(one)
		if err := s.until(t, time.Minute); err != nil {
			t.Fatal(err)
		}
		if s.passes[one] != 1 {
			t.Errorf("%d passes", s.passes[one])
		}
	})
}
