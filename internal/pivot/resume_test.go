package pivot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// An object has one fate for every way in which it can be on both sides.
func TestFate_EveryCombination(t *testing.T) {
	all := []presence{absent, there, leaving, dying, unseen}
	var got []string
	for _, win := range all {
		line := fmt.Sprintf("%-13s", win)
		for _, lose := range all {
			line += " " + fateOf(win, lose).String()
		}
		got = append(got, line)
	}
	want := []string{
		// The other side: absent, there, leaving, being deleted, unknown.
		"absent        lost copied copied copied unknown",
		"there         kept kept kept kept kept",
		"leaving       restored restored restored restored restored",
		"being deleted lost replaced replaced replaced unknown",
		"unknown       unknown unknown unknown unknown unknown",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// situations are all combinations of what can be on both sides and of the record.
func situations() []ClusterStatus {
	var all []ClusterStatus
	copies := []string{"-", ""}
	for _, extent := range []string{"whole", "part", "whole leaving"} {
		for _, pause := range []string{"", " paused"} {
			for _, marks := range []string{"", " held pending announced", " announced released"} {
				copies = append(copies, extent+pause+marks)
			}
		}
	}
	for _, source := range copies {
		for _, target := range copies {
			if source == "-" && target == "-" {
				continue
			}
			for _, record := range []string{"-", "source", "target", "target closed", "source closed", "source partial"} {
				for _, byUser := range []bool{false, true} {
					c := status("c1", "", source, target)
					c.Record = recordOf(record)
					if c.Record != nil && c.Record.Partial == "" {
						c.snapshot = &graph.Snapshot{Cluster: c.Cluster, Nodes: []graph.SnapshotNode{{ID: c.Cluster, PausedByUser: byUser}}}
					}
					c.State = judge(facts{cluster: c.Cluster, source: c.Source, target: c.Target, record: c.Record}).state
					c.Detail = fmt.Sprintf("source %q, target %q, record %q, paused by user %t", source, target, record, byUser)
					all = append(all, c)
				}
			}
		}
	}
	return all
}

func in(ids []graph.ID, c ClusterStatus) bool { return slices.Contains(ids, c.Cluster) }

func TestResume_EverySituationHasAPlanThatDoesNoHarm(t *testing.T) {
	counts := map[string]int{}
	for _, c := range situations() {
		p := plan([]ClusterStatus{c})
		fail := func(what string) { t.Errorf("%s is %s: %s", c.Detail, c.State, what) }
		plans := 0
		for name, has := range map[string]bool{"move": in(p.move, c), "finish": in(p.finish, c), "adopt": in(p.adopt, c), "done": in(p.done, c), "stuck": len(p.stuck) > 0} {
			if has {
				plans++
				counts[name]++
			}
		}
		switch {
		case plans > 1:
			fail("more than one plan")
		case plans == 0 && c.State != Absent && (c.State != Untouched && c.State != Prepared || c.Source.any()):
			fail("no plan")
		case in(p.thaw, c) && (c.Source.Missing+c.Source.Leaving+c.Source.Deleting > 0):
			fail("the source is unpaused after deletion began")
		case in(p.thaw, c) && c.Target.live():
			fail("both sides are reconciled")
		case in(p.thaw, c) && !c.byClusterctl():
			fail("a pause is taken off that may be the user's")
		case in(p.thaw, c) && !in(p.move, c):
			fail("unpaused and not moved")
		case in(p.finish, c) && (c.Source.live() || !c.byClusterctl()):
			fail("the target is unpaused beside a live source, or without a record")
		case in(p.move, c) && !in(p.thaw, c) && c.Target.live():
			fail("moved onto a live copy")
		}
	}
	t.Log(counts)
}

func TestRollback_EverySituationHasAPlanThatDoesNoHarm(t *testing.T) {
	counts := map[string]int{}
	for _, c := range situations() {
		u := planRollback([]ClusterStatus{c})
		fail := func(what string) { t.Errorf("%s is %s: %s", c.Detail, c.State, what) }
		plans := 0
		for name, has := range map[string]bool{"release": in(u.release, c), "restore": in(u.restore, c), "nothing": in(u.nothing, c), "refused": len(u.refused) > 0} {
			if has {
				plans++
				counts[name]++
			}
		}
		switch {
		case plans != 1:
			fail("not one plan")
		case in(u.release, c) && c.Target.any():
			fail("copies are left on the target")
		case in(u.restore, c) && (c.Record.closed() || c.Target != nil && c.Target.Released):
			fail("undone after adoption")
		case in(u.restore, c) && !c.Record.usable():
			fail("restored without a record")
		case in(u.restore, c) && c.Source.live() && c.Target.live():
			fail("undone although both sides are reconciled")
		case in(u.restore, c) && c.Source.live() && c.Source.Missing > 0:
			fail("objects are put back under controllers that run")
		}
		for _, f := range u.refused {
			if f.ID == "" || f.Message == "" || f.Remedy == "" {
				fail("refused without reason or remedy")
			}
		}
	}
	t.Log(counts)
}

// clusterctl creates everything before it deletes anything: once it has begun to
// delete, no other Cluster that it paused is unpaused on the source.
func TestResume_DeletionOfOneClusterBeganForAll(t *testing.T) {
	whole := recorded(status("c1", Creating, "whole paused", "whole paused"))
	part := recorded(status("c2", Deleting, "part paused", "whole paused"))
	p := plan([]ClusterStatus{whole, part})
	if len(p.thaw)+len(p.move) > 0 || len(p.finish) != 2 {
		t.Errorf("thaw %v, finish %v", p.thaw, p.finish)
	}
}

func recorded(c ClusterStatus) ClusterStatus {
	c.Record = recordOf("source")
	c.snapshot = &graph.Snapshot{Cluster: c.Cluster, Nodes: []graph.SnapshotNode{{ID: c.Cluster}}}
	return c
}

func TestMove_GoesOnWhereItWasInterrupted(t *testing.T) {
	there := status("c1", Arrived, "", "whole pending")
	for name, c := range map[string]struct {
		before  ClusterStatus
		change  func(*story)
		ran     []string
		outcome flow.Outcome
		says    string
	}{
		"while creating": {before: recorded(status("c1", Creating, "whole paused", "part paused")),
			ran: []string{"thaw c1", "pre", "clusterctl", "post of c1", "verify of c1"}, outcome: flow.Done, says: "verified"},
		"while deleting": {before: recorded(status("c1", Deleting, "part paused", "whole paused")),
			ran: []string{"finish c1", "post of c1", "verify of c1"}, outcome: flow.Done, says: "verified"},
		"before it unpaused": {before: recorded(status("c1", Arrived, "", "whole paused")),
			ran: []string{"finish c1", "post of c1", "verify of c1"}, outcome: flow.Done, says: "verified"},
		"and an object is lost": {before: recorded(status("c1", Deleting, "part paused", "part paused")), change: func(s *story) {
			s.finish = func(context.Context, todo) (transferred, error) {
				return transferred{findings: []finding.Finding{{ID: "LostObject"}}}, nil
			}
		}, outcome: flow.Blocked, says: "1 object of the record not to be had"},
		"and the other side is live": {before: recorded(status("c1", Creating, "whole paused", "part paused")), change: func(s *story) {
			s.thaw = func(context.Context, todo) (transferred, error) {
				return transferred{}, refusal{"it is not paused on the target"}
			}
		}, outcome: flow.Blocked, says: "not paused on the target"},
		"in a dry run": {before: recorded(status("c1", Deleting, "part paused", "whole paused")), change: func(s *story) { s.o.DryRun = true },
			ran: []string{"finish c1"}, outcome: flow.Done, says: "dry run"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell([]ClusterStatus{c.before}, []ClusterStatus{there})
			s.thaw = func(_ context.Context, left todo) (transferred, error) {
				s.ran = append(s.ran, "thaw "+names(left.thaw))
				return transferred{}, nil
			}
			s.finish = func(_ context.Context, left todo) (transferred, error) {
				s.ran = append(s.ran, "finish "+names(left.finish))
				return transferred{}, nil
			}
			if c.change != nil {
				c.change(s)
			}
			if err := s.run(t.Context()); err != nil {
				t.Fatal(err)
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
