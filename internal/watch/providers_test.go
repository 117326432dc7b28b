package watch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/scaledown"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

// deployments are a scaler in memory.
type deployments struct {
	mu      sync.Mutex
	state   scaledown.State
	outside []graph.ID
	err     error
	ups     []time.Time
	// refused is what every attempt to scale up comes to; nil for none.
	refused error
}

func (d *deployments) State(context.Context) (scaledown.State, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state, d.err
}

func (d *deployments) Up(context.Context, bool) ([]flow.Write, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ups = append(d.ups, time.Now())
	if d.refused != nil {
		return nil, d.refused
	}
	if len(d.ups) == 1 {
		return nil, errCut // the first attempt is killed half way
	}
	d.state = scaledown.State{}
	return nil, nil
}

func (d *deployments) ArrivedOutside(_ context.Context, _ time.Time, known map[graph.ID]bool) ([]graph.ID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.outside), func(id graph.ID) bool { return known[id] }), nil
}

// decided is what the planner says of a Cluster that consists of nothing else.
func decided(t *testing.T, cluster graph.Object, s adopt.State) adopt.Plan {
	t.Helper()
	var b graph.Builder
	for _, kind := range []graph.GroupKind{graph.Cluster, graph.Secret, graph.Machine, graph.MachineSet, graph.MachineDeployment, graph.MachinePool} {
		b.Kind(graph.KindInfo{GroupKind: kind, Namespaced: true, APIVersion: "v1"})
		b.Listed(kind, "")
	}
	cluster.ID, cluster.UID = one, "u"
	b.Add(cluster)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	s.Cluster, s.Graph, s.Now = one, g, time.Now()
	return adopt.Decide(s)
}

// stands is a Cluster of which only controllers are missing.
func stands(t *testing.T) passed {
	t.Helper()
	p := decided(t, graph.Object{}, adopt.State{Named: true, ControllersDown: true})
	if !p.AwaitsControllers() {
		t.Fatalf("it says\n%s", p)
	}
	return passed{plan: p, mine: true}
}

// watched runs loop and providers for a while.
func watched(t *testing.T, s *script, d *deployments, events func(p *providers)) *providers {
	t.Helper()
	p := &providers{scaler: d, loop: s.loop}
	ctx, stop := context.WithCancel(t.Context())
	p.look(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.run(ctx, 2) })
	running.Go(func() { p.run(ctx) })
	events(p)
	stop()
	running.Wait()
	return p
}

func TestProviders_UpWhenEveryClusterAwaitsOnlyThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiting := stands(t)
		d := &deployments{state: scaledown.State{Down: true}, outside: []graph.ID{one, two}}
		arrived := time.Now().Add(time.Minute)
		s := scripted(func(cluster graph.ID, _ int) (passed, error) {
			switch {
			case cluster == three:
				return passed{plan: adopt.Plan{Phase: adopt.Adopted}}, nil // of no pivot
			case cluster == two && time.Now().Before(arrived):
				return in(adopt.Deferred), nil
			}
			return waiting, nil
		})
		for _, c := range []graph.ID{one, two, three} {
			s.add(c)
		}
		p := watched(t, s, d, func(*providers) { <-time.After(2 * time.Minute) })
		if len(d.ups) != 2 {
			t.Fatalf("scaled up %d times: once killed, once whole", len(d.ups))
		}
		if d.ups[0].Before(arrived.Add(s.settle)) {
			t.Errorf("scaled up %s after the last arrival", d.ups[0].Sub(arrived))
		}
		if down, _ := p.down(); down {
			t.Error("passes still think that the controllers are down")
		}
	})
}

func TestProviders_StayDown(t *testing.T) {
	for name, c := range map[string]struct {
		two     func(waiting passed) (passed, error)
		outside []graph.ID
		words   string
	}{
		"while a Cluster is refused":   {two: func(passed) (passed, error) { return in(adopt.Blocked), nil }},
		"while another post holds one": {two: func(passed) (passed, error) { return passed{}, &heldError{cluster: two} }},
		"while nothing has arrived":    {},
		"while Clusters arrive that nobody adopts": {
			two:     func(waiting passed) (passed, error) { return waiting, nil },
			outside: []graph.ID{clusterID("other", "x")}, words: "Cluster other/x arrived meanwhile and nobody adopts it here",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				waiting := stands(t)
				d := &deployments{state: scaledown.State{Down: true}, outside: c.outside}
				s := scripted(func(cluster graph.ID, _ int) (passed, error) {
					if cluster == two {
						return c.two(waiting)
					}
					return waiting, nil
				})
				if c.two != nil {
					s.add(one)
					s.add(two)
				}
				watched(t, s, d, func(*providers) { <-time.After(5 * time.Minute) })
				if len(d.ups) > 0 {
					t.Errorf("scaled up")
				}
				told := 0
				for _, u := range s.said {
					if c.words != "" && strings.Contains(u.Message, c.words) {
						told++
					}
				}
				if c.words != "" && told != 1 {
					t.Errorf("told %d times: %v", told, s.said)
				}
			})
		})
	}
}

// told is how often something was said.
func (s *script) told(words string) (n int) {
	s.loop.mu.Lock()
	defer s.loop.mu.Unlock()
	for _, u := range s.said {
		if strings.Contains(u.Message, words) {
			n++
		}
	}
	return n
}

func TestProviders_WhoCannotLookSaysSoWhenItMatters(t *testing.T) {
	unmarked := passed{plan: adopt.Plan{Phase: adopt.Adopted}}
	for name, c := range map[string]struct {
		first, then passed
		want        int
	}{
		"status is awaited":             {in(adopt.Deferred), in(adopt.AwaitingStatus), 1},
		"nothing tells who has arrived": {in(adopt.Deferred), unmarked, 1},
		"something else is awaited":     {unmarked, in(adopt.Deferred), 0},
		"what was pivoted is adopted":   {in(adopt.Deferred), in(adopt.Adopted), 0},
		"there is no Cluster":           {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &deployments{err: errors.New("deployments.apps is forbidden")}
				changes := time.Now().Add(time.Second)
				s := scripted(func(graph.ID, int) (passed, error) {
					if time.Now().Before(changes) {
						return c.first, nil
					}
					return c.then, nil
				})
				if c.first.plan.Phase != "" {
					s.add(one)
					time.AfterFunc(2*time.Second, func() { s.add(one) })
				}
				p := watched(t, s, d, func(*providers) { <-time.After(2 * time.Minute) })
				if n := s.told("is forbidden"); n != c.want {
					t.Errorf("told %d times: %v", n, s.said)
				}
				r := &run{o: Options{Cluster: &management.Cluster{}}, loop: s.loop, providers: p}
				result := r.result(errTimeout)
				if got := strings.Count(result.Message, "is forbidden; if they are, "+rightsAway); got != c.want {
					t.Errorf("the result says it %d times: %s", got, result.Message)
				}
				if err := r.failure(); err != nil {
					t.Errorf("it is not known, and it failed: %v", err)
				}
			})
		})
	}
}

func TestProviders_WhoMayNotScaleUpSaysWhatIsLacking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiting := stands(t)
		no := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "capi", errors.New("cannot patch"))
		d := &deployments{state: scaledown.State{Down: true}, refused: no}
		s := scripted(func(graph.ID, int) (passed, error) { return waiting, nil })
		s.add(one)
		p := watched(t, s, d, func(*providers) { <-time.After(2 * time.Minute) })
		if n := s.told("cannot patch; " + rightsAway); n != 1 || len(d.ups) < 2 {
			t.Errorf("told %d times, tried %d times: %v", n, len(d.ups), s.said)
		}
		r := &run{o: Options{Cluster: &management.Cluster{}}, loop: s.loop, providers: p}
		if result := r.result(errTimeout); result.Outcome != flow.Deferred || !strings.Contains(result.Message, "cannot patch; "+rightsAway) {
			t.Errorf("the result is %s: %s", result.Outcome, result.Message)
		}
		if err := r.failure(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), rightsAway) {
			t.Errorf("it ends with %v", err)
		}
		// Somebody else has scaled them up.
		p.state.Down = false
		if err := r.failure(); err != nil || strings.Contains(r.result(errTimeout).Message, "cannot patch") {
			t.Errorf("they run, and it ends with %v", err)
		}
	})
}

// TestLoop_AdoptedWithoutRecord: what was held without a record carries no sign of
// the pivot any more when it is adopted, and counts as adopted still.
func TestLoop_AdoptedWithoutRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := decided(t, graph.Object{
			Annotations: map[string]string{graph.ReleasedAnnotation: time.Now().UTC().Format(time.RFC3339)},
			Facts:       graph.Facts{InfrastructureProvisioned: true},
		}, adopt.State{})
		after := decided(t, graph.Object{}, adopt.State{})
		if !last.Closes() || after.Phase != adopt.Adopted || partOfPivot(after) {
			t.Fatalf("they say\n%s\n%s", last, after)
		}
		s := scripted(func(_ graph.ID, pass int) (passed, error) {
			switch pass {
			case 1:
				return passed{plan: last, mine: true, wrote: true}, nil
			case 4:
				return passed{plan: after, gone: true}, nil
			}
			return passed{plan: after}, nil
		})
		s.add(one)
		if err := s.until(t, time.Minute); err != nil {
			t.Fatal(err)
		}
		r := &run{loop: s.loop}
		if got := r.result(nil); len(got.Clusters) != 1 || got.Clusters[0].Phase != adopt.Adopted || len(got.Clusters[0].Notes) > 0 {
			t.Errorf("%+v", got)
		}
		for range 3 {
			result, err := s.pass(t.Context(), one)
			s.note(one, result, err)
			in, _ := s.census()
			if want := map[bool]int{true: 0, false: 1}[s.passes[one] >= 4]; in[adopt.Adopted] != want {
				t.Errorf("after pass %d %d Clusters are adopted", s.passes[one], in[adopt.Adopted])
			}
		}
	})
}
