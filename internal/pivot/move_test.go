package pivot

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/internal/clusterctl"
	"github.com/move-hook/move-hook/internal/fleet"
	"github.com/move-hook/move-hook/internal/job"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/watch"
	"github.com/move-hook/move-hook/pkg/graph"
)

// story is a move whose parts are told what to answer and write down that they ran.
type story struct {
	*moving
	ran []string
	// before, after are what status says before and after clusterctl ran.
	before, after []ClusterStatus
	moveErr       error
}

func (s *story) String() string                            { return "clusterctl v1.14.2 (test)" }
func (s *story) CheckExtra([]string) error                 { return nil }
func (s *story) CommandLine(clusterctl.MoveOptions) string { return "clusterctl move" }
func (s *story) Move(context.Context, clusterctl.MoveOptions) error {
	s.ran = append(s.ran, "clusterctl")
	s.before = s.after
	return s.moveErr
}

// aJob writes down what is asked of a Job, and ends as it is told.
type aJob struct {
	*story
	refused error
	ends    job.Result
}

func (j aJob) Install(context.Context, bool) error {
	j.ran = append(j.ran, "install")
	return j.refused
}

func (j aJob) Run(context.Context) (job.Result, error) {
	j.ran = append(j.ran, "job")
	return j.ends, nil
}

func tell(before, after []ClusterStatus) *story {
	s := &story{before: before, after: after}
	s.moving = &moving{o: MoveOptions{Namespace: "fleet"}, clusterctl: s}
	s.status = func(context.Context) (StatusResult, error) { return StatusResult{Clusters: s.before}, nil }
	s.pre = func(context.Context) (PreResult, []graph.Snapshot, error) {
		s.ran = append(s.ran, "pre")
		return PreResult{Outcome: flow.Done}, nil, nil
	}
	s.post = func(_ context.Context, clusters []graph.ID, _ []graph.Snapshot) (watch.Result, error) {
		s.ran = append(s.ran, "post of "+names(clusters))
		return watch.Result{Outcome: flow.Done}, nil
	}
	s.verify = func(_ context.Context, clusters []graph.ID, _ []graph.Snapshot) (VerifyResult, error) {
		s.ran = append(s.ran, "verify of "+names(clusters))
		return VerifyResult{Outcome: flow.Done}, nil
	}
	return s
}

func names(clusters []graph.ID) string {
	var all []string
	for _, c := range clusters {
		all = append(all, c.Name)
	}
	return strings.Join(all, ",")
}

// status is one line of a status: name, state, and words of copyOf for both sides.
func status(name string, state State, source, target string) ClusterStatus {
	return ClusterStatus{Cluster: fleet.ID(graph.Cluster, name), State: state, Detail: "as told", Source: copyOf(source), Target: copyOf(target)}
}

func TestMove_DoesWhatIsLeftToDo(t *testing.T) {
	here, there := status("c1", Untouched, "whole", ""), status("c1", Arrived, "", "whole pending")
	whole := []string{"pre", "clusterctl", "post of c1", "verify of c1"}
	interrupted := &clusterctl.RunError{ExitCode: -1, Interrupted: true, CommandLine: "clusterctl move"}
	for name, c := range map[string]struct {
		before, after []ClusterStatus
		change        func(*story)
		ran           []string
		outcome       flow.Outcome
		says          string
		err           string
	}{
		"a whole pivot": {before: []ClusterStatus{here}, after: []ClusterStatus{there}, ran: whole, outcome: flow.Done, says: "moved, adopted and verified: Cluster fleet/c1"},
		"a prepared source": {before: []ClusterStatus{status("c1", Prepared, "whole", "")}, after: []ClusterStatus{there}, ran: whole, outcome: flow.Done,
			says: "moved, adopted and verified"},
		"no Cluster":                            {outcome: flow.Findings, says: "nothing was moved"},
		"only Clusters that live on the target": {before: []ClusterStatus{status("c9", Untouched, "", "whole")}, outcome: flow.Findings, says: "nothing was moved"},
		"a finished pivot":                      {before: []ClusterStatus{status("c1", Verified, "", "whole")}, outcome: flow.Done, says: "nothing left to do"},
		"killed after clusterctl": {before: []ClusterStatus{there}, ran: []string{"post of c1", "verify of c1"}, outcome: flow.Done,
			says: "moved, adopted and verified"},
		"killed while adopting one, another still on the source": {before: []ClusterStatus{status("c2", Adopting, "", "whole"), here},
			after: []ClusterStatus{status("c2", Adopting, "", "whole"), there}, ran: []string{"pre", "clusterctl", "post of c1,c2", "verify of c1,c2"},
			outcome: flow.Done, says: "Clusters fleet/c1, fleet/c2"},
		"clusterctl was interrupted while creating": {before: []ClusterStatus{status("c1", Creating, "whole paused", "part paused")},
			outcome: flow.Blocked, says: "run `move-hook status`"},
		"the same, and its user unpaused the source": {before: []ClusterStatus{status("c1", Creating, "whole", "part paused")}, after: []ClusterStatus{there},
			ran: whole, outcome: flow.Done, says: "moved"},
		"clusterctl was interrupted while deleting": {before: []ClusterStatus{status("c1", Deleting, "part paused", "whole paused")},
			outcome: flow.Blocked, says: "run `move-hook status`"},
		"clusterctl was interrupted before it unpaused": {before: []ClusterStatus{status("c1", Arrived, "", "whole paused")},
			outcome: flow.Blocked, says: "run `move-hook status`"},
		"both sides live": {before: []ClusterStatus{status("c1", Split, "whole", "whole")}, outcome: flow.Blocked, says: "split"},
		"one stuck Cluster stops all: clusterctl moves the namespace": {before: []ClusterStatus{here, status("c2", Deleting, "part paused", "whole paused")},
			outcome: flow.Blocked, says: "Cluster fleet/c2 is deleting"},
		"findings stop before clusterctl": {before: []ClusterStatus{here}, change: func(s *story) {
			s.pre = func(context.Context) (PreResult, []graph.Snapshot, error) {
				return PreResult{Outcome: flow.Findings}, nil, nil
			}
		}, outcome: flow.Findings, says: "not ready to be moved"},
		"clusterctl moved nothing and said nothing": {before: []ClusterStatus{here}, after: []ClusterStatus{here},
			ran: []string{"pre", "clusterctl"}, outcome: flow.Findings, says: "clusterctl did not move everything"},
		"clusterctl left objects": {before: []ClusterStatus{here}, after: []ClusterStatus{status("c1", Deleting, "part", "whole")},
			ran: []string{"pre", "clusterctl"}, outcome: flow.Findings, says: "clusterctl did not move everything"},
		"clusterctl refused before it began": {before: []ClusterStatus{here}, after: []ClusterStatus{status("c1", Prepared, "whole", "")},
			change: func(s *story) {
				s.moveErr = &clusterctl.RunError{ExitCode: 1, LastLines: []string{"Error: provider missing"}}
			},
			ran: []string{"pre", "clusterctl"}, outcome: flow.Done, err: "provider missing"},
		"clusterctl failed half way": {before: []ClusterStatus{here}, after: []ClusterStatus{status("c1", Creating, "whole paused", "part paused")},
			change: func(s *story) {
				s.moveErr = &clusterctl.RunError{ExitCode: 1, LastLines: []string{"Error: webhook denied"}}
			},
			ran: []string{"pre", "clusterctl"}, outcome: flow.Blocked, says: "webhook denied"},
		"clusterctl was killed": {before: []ClusterStatus{here}, after: []ClusterStatus{status("c1", Deleting, "part paused", "whole paused")},
			change: func(s *story) { s.moveErr = interrupted }, ran: []string{"pre", "clusterctl"}, outcome: flow.Blocked, says: "interrupted"},
		"adoption is deferred": {before: []ClusterStatus{here}, after: []ClusterStatus{there}, change: func(s *story) {
			s.post = func(context.Context, []graph.ID, []graph.Snapshot) (watch.Result, error) {
				return watch.Result{Outcome: flow.Deferred, Message: "the time-out of 1m0s is over"}, nil
			}
		}, ran: []string{"pre", "clusterctl"}, outcome: flow.Deferred, says: "not all are adopted: the time-out"},
		"post is a Job": {before: []ClusterStatus{here}, after: []ClusterStatus{there},
			change: func(s *story) { s.job = aJob{story: s, ends: job.Result{Outcome: flow.Done}} },
			ran:    []string{"install", "pre", "clusterctl", "job", "verify of c1"}, outcome: flow.Done, says: "moved, adopted and verified"},
		"the Job could not run": {before: []ClusterStatus{here},
			change: func(s *story) { s.job = aJob{story: s, refused: errors.New("exceeds the limit")} },
			ran:    []string{"install"}, outcome: flow.Done, err: "exceeds the limit"},
		"the Job is blocked": {before: []ClusterStatus{here}, after: []ClusterStatus{there},
			change: func(s *story) {
				s.job = aJob{story: s, ends: job.Result{Outcome: flow.Blocked, Namespace: "system", Name: "post"}}
			},
			ran: []string{"install", "pre", "clusterctl", "job"}, outcome: flow.Blocked, says: "see what Job system/post says"},
		"there is nothing for a Job to do": {before: []ClusterStatus{status("c1", Verified, "", "whole")},
			change: func(s *story) { s.job = aJob{story: s} }, outcome: flow.Done, says: "nothing left to do"},
		"verify finds something": {before: []ClusterStatus{here}, after: []ClusterStatus{there}, change: func(s *story) {
			s.verify = func(context.Context, []graph.ID, []graph.Snapshot) (VerifyResult, error) {
				return VerifyResult{Outcome: flow.Findings}, nil
			}
		}, ran: []string{"pre", "clusterctl", "post of c1"}, outcome: flow.Findings, says: "not what the source was"},
		"a dry run": {before: []ClusterStatus{here}, after: []ClusterStatus{here}, change: func(s *story) { s.o.DryRun = true },
			ran: []string{"pre", "clusterctl"}, outcome: flow.Done, says: "dry run"},
		"names leave a Cluster out": {before: []ClusterStatus{here, status("c2", Untouched, "whole", "")}, change: func(s *story) {
			s.o.Names = []types.NamespacedName{{Namespace: "fleet", Name: "c1"}}
		}, outcome: flow.Done, err: "also Cluster fleet/c2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(c.before, c.after)
			if c.change != nil {
				c.change(s)
			}
			err := s.run(t.Context())
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("got error %v, want %q", err, c.err)
			}
			if diff := cmp.Diff(c.ran, s.ran); diff != "" {
				t.Error(diff)
			}
			if s.result.Outcome != c.outcome || !strings.Contains(s.result.Message, c.says) {
				t.Errorf("%s: %q, want %s: %q", s.result.Outcome, s.result.Message, c.outcome, c.says)
			}
		})
	}
}

func TestMove_NamesAreAUsageError(t *testing.T) {
	s := tell([]ClusterStatus{status("c1", Untouched, "whole", ""), status("c2", Untouched, "whole", "")}, nil)
	s.o.Names = []types.NamespacedName{{Namespace: "fleet", Name: "c1"}}
	if err := s.run(t.Context()); !errors.Is(err, flow.ErrUsage) {
		t.Errorf("got %v", err)
	}
}

func TestMove_EveryStateHasAPlan(t *testing.T) {
	for _, state := range States() {
		for _, sides := range [][2]string{{"whole", ""}, {"", "whole"}, {"whole", "whole"}, {"whole paused", "part paused"}} {
			got := plan([]ClusterStatus{status("c1", state, sides[0], sides[1])})
			n := len(got.move) + len(got.adopt) + len(got.done) + len(got.stuck)
			ignored := state == Absent || (state == Untouched || state == Prepared) && sides[0] == ""
			if n != 1 && !ignored || n != 0 && ignored {
				t.Errorf("%s on %q and %q: %d plans", state, sides[0], sides[1], n)
			}
		}
	}
}
