package report

import (
	"cmp"
	"io"
	"strings"
	"time"

	"github.com/move-hook/move-hook/internal/job"
	"github.com/move-hook/move-hook/internal/pivot"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/watch"
	"github.com/move-hook/move-hook/pkg/adopt"
)

// Post prints where each Cluster stands, then what every unfinished one waits
// for or why it is refused, and the counts.
func Post(w io.Writer, st Style, r watch.Result) error {
	out := &sticky{w: w}
	writePost(out, st, r)
	return out.err
}

func writePost(out *sticky, st Style, r watch.Result) {
	t := &columns{head: []string{"CLUSTER", "PHASE", "WRITES", "TOOK"}}
	phases := map[adopt.Phase]int{}
	for _, c := range r.Clusters {
		phases[c.Phase]++
		took := "-"
		if c.Phase == adopt.Adopted {
			took = elapsed(seconds(c.Seconds))
		}
		t.add(cell{text: path(c.Cluster)}, cell{string(c.Phase), paintOfPhase(c.Phase)},
			cell{text: itoa(len(c.Writes))}, cell{took, quiet})
	}
	if len(t.rows) > 0 {
		t.write(out, st)
	}
	for _, c := range r.Clusters {
		writeChecks(out, st, c)
		writeCluster(out, st, c)
	}
	writeUnlisted(out, st, r.Unlisted)
	if len(t.rows) > 0 {
		out.line("")
		out.line(count(len(r.Clusters), "Cluster") + ": " + phaseCounts(phases))
	}
	if r.Message != "" {
		out.line(r.Message)
	}
}

// writeCluster prints the details of one Cluster; a finished one without notes has none.
func writeCluster(out *sticky, st Style, c watch.ClusterResult) {
	if len(c.Waiting)+len(c.Refusals)+len(c.Notes) == 0 && c.Error == "" {
		return
	}
	out.line("")
	out.line(st.dress(heading, c.Cluster.String()) + " is " + st.dress(paintOfPhase(c.Phase), string(c.Phase)))
	writeWaiting(out, st, "  ", c.Waiting)
	writeEach(out, st, "  ", c.Refusals)
	writeEach(out, st, "  ", c.Notes)
	if c.Error != "" {
		out.line("  " + st.dress(wrong, "error") + "  " + c.Error)
	}
}

// writeChecks prints what was asked before a Cluster was adopted, with both values
// and, where KubeadmConfigs differ, upstream's own comparison.
func writeChecks(out *sticky, st Style, c watch.ClusterResult) {
	if len(c.Checks) == 0 {
		return
	}
	out.line("")
	out.line(st.dress(heading, c.Cluster.String()) + ", every check:")
	const width = len("allowed")
	for _, check := range c.Checks {
		word := string(check.Verdict)
		out.line("  " + st.dress(paintOfCheck(check.Verdict), word) + strings.Repeat(" ", width-len(word)) + "  " + check.Name)
		indent := strings.Repeat(" ", width+4)
		for _, line := range check.Compared {
			out.line(indent + st.dress(quiet, line))
		}
		for line := range strings.Lines(check.Diff) {
			out.line(indent + "  " + strings.TrimRight(line, "\n "))
		}
	}
}

func paintOfCheck(v adopt.Verdict) paint {
	switch v {
	case adopt.Fine:
		return good
	case adopt.Refused:
		return wrong
	case adopt.Allowed:
		return waits
	case adopt.Skipped:
		return quiet
	}
	return plain
}

// maxWaiting bounds the list of a large Cluster: its end says less than its beginning.
const maxWaiting = 30

func writeWaiting(out *sticky, st Style, indent string, waiting []adopt.Missing) {
	for i, m := range waiting {
		if i == maxWaiting {
			out.line(indent + st.dress(quiet, "and "+itoa(len(waiting)-i)+" more, -o json has all"))
			return
		}
		out.line(indent + st.dress(waits, "waits for") + "  " + m.String())
	}
}

func writeUnlisted(out *sticky, st Style, kinds []watch.Unlisted) {
	if len(kinds) == 0 {
		return
	}
	out.line("")
	out.line(st.dress(waits, "Kinds that cannot be watched") + " (what they hold is unknown, not absent):")
	for _, k := range kinds {
		out.line("  " + k.Kind.String() + ": " + k.Why)
	}
}

// Pre prints what was recorded, held and labelled, and what was found on the way.
func Pre(w io.Writer, st Style, r pivot.PreResult) error {
	out := &sticky{w: w}
	writePre(out, st, r)
	return out.err
}

func writePre(out *sticky, st Style, r pivot.PreResult) {
	t := &columns{head: []string{"CLUSTER", "RECORDED", "RECORD", "HELD", "LABELLED"}}
	for _, c := range r.Clusters {
		t.add(cells(path(c.Cluster), count(c.Objects, "object"), strings.Join(c.ConfigMaps, ", "),
			itoa(len(c.Held)), itoa(len(c.Pending)))...)
	}
	if len(t.rows) > 0 {
		t.write(out, st)
	}
	writeWaiting(out, st, "", r.Waiting)
	if len(r.Findings) > 0 {
		if len(t.rows) > 0 {
			out.line("")
		}
		writeFindings(out, st, "", r.Findings)
	}
	writeIgnored(out, st, r.Ignored)
	if r.RecordFile != "" {
		out.line("Record written to " + r.RecordFile)
	}
	if r.Message != "" {
		out.line(r.Message)
	}
}

// Verify prints the findings of each Cluster with what it was judged against.
func Verify(w io.Writer, st Style, r pivot.VerifyResult) error {
	out := &sticky{w: w}
	writeVerify(out, st, r)
	return out.err
}

func writeVerify(out *sticky, st Style, r pivot.VerifyResult) {
	for i, c := range r.Clusters {
		if i > 0 && (len(c.Findings) > 0 || len(r.Clusters[i-1].Findings) > 0) {
			out.line("")
		}
		writeFindings(out, st, count(c.Objects, "object")+" of "+c.Cluster.String()+", "+against(c.Against), c.Findings)
	}
	if r.Message != "" {
		out.line(r.Message)
	}
}

// against is what a Cluster was compared with, in words.
func against(a pivot.Against) string {
	if a == pivot.AgainstRules || a == "" {
		return "judged by Cluster API's owner rules"
	}
	return "judged against the " + string(a)
}

// Move prints what each part of a whole pivot came to.
func Move(w io.Writer, st Style, r pivot.MoveResult) error {
	out := &sticky{w: w}
	parts := 0
	part := func(write func()) {
		if parts++; parts > 1 {
			out.line("")
		}
		write()
	}
	if len(r.Findings) > 0 {
		part(func() { writeFindings(out, st, "", r.Findings) })
	}
	if r.Pre != nil {
		writeIgnored(out, st, r.Pre.Ignored)
	}
	if len(r.Writes) > 0 && r.Post == nil && strings.HasSuffix(string(r.Writes[0]), "(dry run)") {
		part(func() { writeWrites(out, r.Writes) })
	}
	if r.Post != nil {
		part(func() { writePost(out, st, *r.Post) })
	}
	if r.Job != nil {
		part(func() { writeJob(out, *r.Job) })
	}
	if r.Verify != nil {
		part(func() { writeVerify(out, st, *r.Verify) })
	}
	if r.Message != "" {
		out.line(r.Message)
	}
	return out.err
}

// writeJob prints what post's last pod said, indented where that is several lines.
func writeJob(out *sticky, r job.Result) {
	lines := strings.Split(cmp.Or(strings.TrimSpace(r.Message), string(r.Outcome)), "\n")
	out.line("Job " + r.Namespace + "/" + r.Name + ": " + lines[0])
	for _, line := range lines[1:] {
		out.line("  " + line)
	}
}

// Rollback prints why something cannot be given back, or what the adoption on the
// source came to, and how it ended. The writes were told while they were made; a dry
// run has its own here.
func Rollback(w io.Writer, st Style, r pivot.RollbackResult) error {
	out := &sticky{w: w}
	if len(r.Findings) > 0 {
		writeFindings(out, st, "", r.Findings)
	}
	if r.Post != nil {
		writePost(out, st, *r.Post)
	}
	if r.DryRun {
		writeWrites(out, r.Writes)
	}
	if r.Message != "" {
		out.line(r.Message)
	}
	return out.err
}

func writeWrites(out *sticky, writes []flow.Write) {
	for _, w := range writes {
		out.line(string(w))
	}
}

// Status prints where the pivot of each Cluster stands and what to do next.
func Status(w io.Writer, st Style, r pivot.StatusResult) error {
	out := &sticky{w: w}
	t := &columns{head: []string{"CLUSTER", "STATE", "SOURCE", "TARGET", "RECORD"}}
	for _, c := range r.Clusters {
		t.add(cell{text: path(c.Cluster)}, cell{string(c.State), paintOfState(c.State)},
			cell{text: copyText(c.Source)}, cell{text: copyText(c.Target)}, cell{text: recordText(c.Record)})
	}
	if len(t.rows) > 0 {
		t.write(out, st)
	}
	for _, c := range r.Clusters {
		if c.Detail == "" && c.Next == "" {
			continue
		}
		out.line("")
		out.line(st.dress(heading, c.Cluster.String()) + ": " + cmp.Or(c.Detail, string(c.State)))
		if c.Next != "" {
			out.line("  → " + c.Next)
		}
	}
	policies := strings.Builder{}
	writePolicies(&sticky{w: &policies}, st, r.Policies)
	if policies.Len() > 0 {
		if len(t.rows) > 0 {
			out.line("")
		}
		out.line(strings.TrimSuffix(policies.String(), "\n"))
	}
	if r.Message != "" {
		out.line(r.Message)
	}
	return out.err
}

func paintOfState(s pivot.State) paint {
	switch s {
	case pivot.Verified:
		return good
	case pivot.Split:
		return wrong
	case pivot.Prepared, pivot.Creating, pivot.Deleting, pivot.Arrived, pivot.Adopting:
		return waits
	case pivot.Untouched, pivot.Absent:
		return plain
	}
	return plain
}

// copyText is one side of a Cluster: "33 objects, 5 Machines, paused by spec.paused".
func copyText(c *pivot.CopyStatus) string {
	if c == nil {
		return ""
	}
	if !c.Exists {
		return "absent"
	}
	parts := []string{count(c.Objects, "object")}
	if c.Missing > 0 {
		parts[0] += " (" + itoa(c.Missing) + " missing)"
	}
	parts = append(parts, count(c.Machines, "Machine"))
	if c.Paused != "" {
		parts = append(parts, "paused: "+c.Paused)
	}
	for _, n := range []struct {
		n    int
		what string
	}{{len(c.Held), "held"}, {len(c.Pending), "pending"}, {c.Deleting, "being deleted"}} {
		if n.n > 0 {
			parts = append(parts, itoa(n.n)+" "+n.what)
		}
	}
	return strings.Join(parts, ", ")
}

func recordText(r *pivot.RecordStatus) string {
	if r == nil {
		return "none"
	}
	state := "open"
	if r.Closed {
		state = "closed"
	}
	if r.Partial != "" {
		state = r.Partial
	}
	return state + " on " + strings.Join(r.On, ", ")
}

func phaseCounts(phases map[adopt.Phase]int) string {
	var parts []string
	for _, p := range []adopt.Phase{adopt.Adopted, adopt.Watching, adopt.Releasing, adopt.AwaitingStatus,
		adopt.Adopting, adopt.Deferred, adopt.Blocked} {
		if n := phases[p]; n > 0 {
			parts = append(parts, itoa(n)+" "+string(p))
		}
	}
	return strings.Join(parts, ", ")
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
