package watch

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

func ask(t *testing.T, h http.Handler, path string) (int, string) {
	t.Helper()
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return answer.Code, answer.Body.String()
}

// measured are our own metrics as they are scraped.
func measured(t *testing.T, s *service) string {
	t.Helper()
	_, body := ask(t, s.metrics(), "/metrics")
	var lines []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "move_hook_") && !strings.HasPrefix(line, "move_hook_deferral_seconds_bucket") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func TestMetrics_SayWhatTheLoopKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := &service{meter: newMeter(), contact: &contact{}}
		s := scripted(func(cluster graph.ID, pass int) (passed, error) {
			switch p := in(adopt.Deferred); {
			case cluster == one && pass < 3:
				p.plan.Waiting = make([]adopt.Missing, 7)
				return p, nil
			case cluster == one:
				p = in(adopt.Watching)
				p.plan.Waiting = make([]adopt.Missing, 1)
				return p, nil
			case cluster == two:
				return in(adopt.Adopted), nil
			}
			return passed{plan: adopt.Plan{Phase: adopt.Adopted}}, nil // of no pivot
		})
		s.meter = sv.meter
		empty := measured(t, sv)
		sv.meter.loop.Store(s.loop)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.run(ctx, 2) })
		for _, c := range []graph.ID{one, two, three} {
			s.add(c)
		}
		<-time.After(time.Second)
		const before = `move_hook_awaited_objects 7
move_hook_clusters{phase="adopted"} 1
move_hook_clusters{phase="adopting"} 0
move_hook_clusters{phase="awaiting-status"} 0
move_hook_clusters{phase="blocked"} 0
move_hook_clusters{phase="deferred"} 1
move_hook_clusters{phase="releasing"} 0
move_hook_clusters{phase="watching"} 0
move_hook_deferral_seconds_sum 0
move_hook_deferral_seconds_count 0
move_hook_patches_total 0
`
		if diff := cmp.Diff(before, measured(t, sv)); diff != "" {
			t.Error(diff)
		}
		<-time.After(30 * time.Second)
		s.wrote(one, "x changed")
		after := strings.NewReplacer("objects 7", "objects 0", `"deferred"} 1`, `"deferred"} 0`, `"watching"} 0`, `"watching"} 1`,
			"sum 0", "sum 20", "count 0", "count 1", "total 0", "total 1").Replace(before)
		if diff := cmp.Diff(after, measured(t, sv)); diff != "" {
			t.Error(diff)
		}
		stop()
		running.Wait()
		// Who stands by again counts no Clusters; what was measured stays.
		sv.meter.loop.Store(nil)
		if got := measured(t, sv); strings.Contains(got, "} 1") || !strings.Contains(got, "total 1") || strings.Contains(empty, "} 1") {
			t.Errorf("standing by:\n%s", got)
		}
	})
}

func TestHealth_ReadyMeansReadAndHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{meter: newMeter(), contact: &contact{}}
		ready := func(want int, words string) {
			t.Helper()
			if code, _ := ask(t, s.health(), "/healthz"); code != http.StatusOK {
				t.Errorf("healthz: %d", code)
			}
			if code, body := ask(t, s.health(), "/readyz"); code != want || !strings.Contains(body, words) {
				t.Errorf("readyz: %d %s", code, body)
			}
		}
		ready(http.StatusServiceUnavailable, "has not answered yet")
		s.contact.report(nil)
		ready(http.StatusOK, "ok")
		r := &run{}
		s.run = r
		ready(http.StatusServiceUnavailable, "has been read")
		r.synced.Store(true)
		ready(http.StatusOK, "ok")
		s.contact.report(errCut)
		<-time.After(patience - time.Second)
		ready(http.StatusOK, "ok")
		<-time.After(time.Second)
		ready(http.StatusServiceUnavailable, "has not answered for 1m0s")
		s.contact.report(nil)
		ready(http.StatusOK, "ok")
	})
}

func TestServe_WaitsOutAnAbsence(t *testing.T) {
	cluster, err := management.OpenConfig(&rest.Config{Host: "http://target"}, "target")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var said []string
		r := &run{
			o: Options{Cluster: cluster, Watch: true}, contact: &contact{}, loop: newLoop(),
		}
		r.loop.progress = func(u flow.Update) { said = append(said, u.Message) }
		ctx, stop := context.WithCancelCause(t.Context())
		var running sync.WaitGroup
		running.Go(func() { r.giveUp(ctx, stop) })
		r.contact.report(errCut)
		<-time.After(time.Hour)
		r.contact.report(nil)
		<-time.After(time.Minute)
		if ctx.Err() != nil {
			t.Errorf("gave up: %v", context.Cause(ctx))
		}
		stop(nil)
		running.Wait()
		r.loop.queue.ShutDown()
		if len(said) != 2 || !strings.Contains(said[0], "has not answered for 1m0s") || said[1] != "target answers again" {
			t.Errorf("said %q", said)
		}
	})
}

func TestServe_DoneOnlyWhenAllThatIsKnownIsAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			answer func(graph.ID, int) (passed, error)
			want   flow.Outcome
		}{
			"adopted":        {func(graph.ID, int) (passed, error) { return in(adopt.Adopted), nil }, flow.Done},
			"of no pivot":    {func(graph.ID, int) (passed, error) { return passed{plan: adopt.Plan{Phase: adopt.Adopted}}, nil }, flow.Done},
			"deferred":       {func(graph.ID, int) (passed, error) { return in(adopt.Deferred), nil }, flow.Deferred},
			"being watched":  {func(graph.ID, int) (passed, error) { return in(adopt.Watching), nil }, flow.Deferred},
			"blocked":        {func(graph.ID, int) (passed, error) { return in(adopt.Blocked), nil }, flow.Blocked},
			"a pass failed":  {func(graph.ID, int) (passed, error) { return passed{}, errCut }, flow.Deferred},
			"nobody knows":   {nil, flow.Deferred},
			"nothing at all": {nil, flow.Done},
		} {
			s := scripted(c.answer)
			r := &run{o: Options{Watch: true}, loop: s.loop}
			if name != "nothing at all" {
				s.add(one)
			}
			if c.answer != nil {
				_ = s.until(t, time.Second)
			}
			s.queue.ShutDown()
			if got := r.result(context.Canceled).Outcome; got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
		}
	})
}
