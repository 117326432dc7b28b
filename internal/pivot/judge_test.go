package pivot

import (
	"strings"
	"testing"

	"github.com/move-hook/move-hook/pkg/graph"
)

// copyOf is one side's copy with the given words about it:
// "whole", "part" (5 of 20 gone), "paused", "held", "pending", "announced",
// "released", "leaving", "no-cluster".
func copyOf(words string) *CopyStatus {
	if words == "-" {
		return nil
	}
	c := &CopyStatus{}
	some := []graph.ID{{Kind: "X", Name: "x"}}
	for _, word := range strings.Fields(words) {
		switch word {
		case "whole":
			c.Exists, c.Objects = true, 20
		case "part":
			c.Exists, c.Objects, c.Missing = true, 15, 5
		case "no-cluster":
			c.Exists = false
		case "paused":
			c.Paused = PausedSpec
		case "held":
			c.Held = some
		case "pending":
			c.Pending = some
		case "announced":
			c.Announced = true
		case "released":
			c.Released = true
		case "leaving":
			c.Leaving = 3
		default:
			panic(word)
		}
	}
	return c
}

func recordOf(words string) *RecordStatus {
	if words == "-" {
		return nil
	}
	r := &RecordStatus{Objects: 20}
	for _, word := range strings.Fields(words) {
		switch word {
		case "closed":
			r.Closed = true
		case "partial":
			r.Partial = "part 2 of 3 is missing"
		default:
			r.On = append(r.On, word)
		}
	}
	return r
}

// Every row is a moment at which a pivot can be found. "-" is a side that was not
// given, "" one that holds nothing.
func TestStatus_EveryMomentOfAPivotHasOneState(t *testing.T) {
	const prepared = "held pending announced"
	for _, c := range []struct {
		moment, source, target, record string
		want                           State
		next                           string
	}{
		{"no such Cluster", "", "", "-", Absent, ""},
		{"never touched", "whole", "", "-", Untouched, "move-hook move -n fleet"},
		{"never touched, one side given", "whole", "-", "-", Untouched, "move-hook move -n fleet"},
		{"paused by its user", "whole paused", "", "-", Untouched, "move-hook move -n fleet"},
		{"came here by an earlier pivot", "whole", "", "source closed", Untouched, "move-hook move -n fleet"},
		{"pre killed after the first hold", "whole held", "", "-", Prepared, "move-hook pre -n fleet c1"},
		{"pre killed between the parts of the record", "whole held", "", "source partial", Prepared, "move-hook pre -n fleet c1"},
		{"pre killed before the labels", "whole held announced", "", "source", Prepared, "move-hook pre -n fleet c1"},
		{"pre killed on a Cluster with an old record", "whole held", "", "source closed", Prepared, "move-hook pre -n fleet c1"},
		{"prepared", "whole " + prepared, "", "source", Prepared, "move-hook move -n fleet"},
		{"prepared, one side given", "whole " + prepared, "-", "source", Prepared, "move-hook move -n fleet"},
		{"clusterctl killed after its pause", "whole paused " + prepared, "", "source", Creating, "move-hook resume -n fleet"},
		{"clusterctl killed while creating", "whole paused " + prepared, "part paused " + prepared, "source", Creating, "move-hook resume -n fleet"},
		{"the same, source unpaused by hand", "whole " + prepared, "part paused " + prepared, "source", Creating, "move-hook move -n fleet"},
		{"clusterctl killed between creating and deleting", "whole paused " + prepared, "whole paused " + prepared, "source target", Creating, "move-hook resume -n fleet"},
		{"the same, target unpaused by hand", "whole paused " + prepared, "whole " + prepared, "source target", Creating, "move-hook resume -n fleet"},
		{"clusterctl killed after its first delete mark", "whole paused leaving " + prepared, "whole paused " + prepared, "source target", Deleting, "move-hook resume -n fleet"},
		{"clusterctl killed while deleting", "part paused " + prepared, "whole paused " + prepared, "target", Deleting, "move-hook resume -n fleet"},
		{"unpaused by hand while clusterctl was deleting", "part " + prepared, "whole paused " + prepared, "target", Deleting, "kubectl --context SOURCE -n fleet patch cluster c1"},
		{"objects gone from both sides", "part paused " + prepared, "part paused " + prepared, "target", Deleting, "move-hook resume -n fleet"},
		{"an object was deleted after pre", "part " + prepared, "", "source", Prepared, "move-hook pre -n fleet c1"},
		{"deleted by clusterctl, and the target is gone", "part paused " + prepared, "", "source", Deleting, "move-hook rollback -n fleet"},
		{"clusterctl killed before unpausing the target", "", "whole paused " + prepared, "target", Arrived, "move-hook resume -n fleet"},
		{"the same, source not given", "-", "whole paused " + prepared, "target", Arrived, "move-hook status -n fleet c1 with the source given"},
		{"moved, post not run", "", "whole " + prepared, "target", Arrived, "move-hook post -n fleet c1"},
		{"restored without its Cluster", "", "whole no-cluster " + prepared, "target", Arrived, "move-hook post -n fleet c1"},
		{"moved, objects left behind", "", "part " + prepared, "target", Arrived, "move-hook post -n fleet c1"},
		{"post killed after clearing labels", "", "whole held announced", "target", Adopting, "move-hook post -n fleet c1"},
		{"post killed while watching", "", "whole announced released", "target", Adopting, "move-hook post -n fleet c1"},
		{"post killed right after closing", "", "whole announced", "target closed", Adopting, "move-hook post -n fleet c1"},
		{"post killed before the first announcement was dropped", "", "whole", "target", Adopting, "move-hook post -n fleet c1"},
		{"finished", "", "whole", "target closed", Verified, ""},
		{"finished, source not given", "-", "whole", "target closed", Verified, ""},
		{"made on the target", "", "whole", "-", Untouched, ""},
		{"both live", "whole", "whole", "-", Split, "kubectl --context SOURCE -n fleet patch cluster c1"},
		{"both live after a finished pivot", "whole", "whole", "target closed", Split, "kubectl --context SOURCE -n fleet patch cluster c1"},
	} {
		t.Run(c.moment, func(t *testing.T) {
			got := judge(facts{cluster: graph.ID{Group: graph.CoreGroup, Kind: "Cluster", Namespace: "fleet", Name: "c1"},
				source: copyOf(c.source), target: copyOf(c.target), record: recordOf(c.record)})
			if got.state != c.want {
				t.Errorf("got %s (%s), want %s", got.state, got.detail, c.want)
			}
			if c.next == "" && got.next != "" || !strings.HasPrefix(got.next, c.next) {
				t.Errorf("next is %q, want %q", got.next, c.next)
			}
			if got.detail == "" {
				t.Error("no detail")
			}
		})
	}
}
