package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/move-hook/move-hook/pkg/finding"
)

func itoa(n int) string { return strconv.Itoa(n) }

// FindingsDocument is the JSON form of a judgement.
type FindingsDocument struct {
	// Findings are sorted: worst first, then by object. Never null.
	Findings []finding.Finding `json:"findings"`
	// Counts has the number of findings by severity; severities without one are absent.
	Counts map[finding.Severity]int `json:"counts"`
}

// NewFindingsDocument sorts a copy of the findings and counts them.
func NewFindingsDocument(fs []finding.Finding) FindingsDocument {
	doc := FindingsDocument{Findings: slices.Clone(fs), Counts: map[finding.Severity]int{}}
	if doc.Findings == nil {
		doc.Findings = []finding.Finding{}
	}
	finding.Sort(doc.Findings)
	for _, f := range fs {
		doc.Counts[f.Severity]++
	}
	return doc
}

// Findings prints one line for each finding, worst first, with the remedy
// indented below, and the counts at the end. about is what was judged:
// "12 objects of Cluster fleet/c1"; it stands alone when nothing was found.
func Findings(w io.Writer, st Style, about string, fs []finding.Finding) error {
	out := &sticky{w: w}
	writeFindings(out, st, about, fs)
	return out.err
}

func writeFindings(out *sticky, st Style, about string, fs []finding.Finding) {
	writeEach(out, st, "", fs)
	out.line(summary(st, about, NewFindingsDocument(fs).Counts))
}

// writeEach prints findings without the counts. A remedy that several in a row
// share stands once, below the last of them.
func writeEach(out *sticky, st Style, indent string, fs []finding.Finding) {
	fs = NewFindingsDocument(fs).Findings
	slices.SortStableFunc(fs, func(a, b finding.Finding) int {
		if a.Severity != b.Severity {
			return 0
		}
		return strings.Compare(a.ID, b.ID)
	})
	for i, f := range fs {
		if i+1 < len(fs) && fs[i+1].ID == f.ID && fs[i+1].Remedy == f.Remedy {
			f.Remedy = ""
		}
		writeFinding(out, st, indent, f)
	}
}

func writeFinding(out *sticky, st Style, indent string, f finding.Finding) {
	out.line(fmt.Sprintf("%s%s  %s: %s%s  %s", indent,
		st.dress(paintOf(f.Severity), string(f.Severity)),
		f.Object, f.Message, values(f), st.dress(quiet, f.ID)))
	if f.Remedy != "" {
		for line := range strings.SplitSeq(f.Remedy, "\n") {
			out.line(indent + "       → " + line)
		}
	}
}

// values is the field with both values: " (spec.version: have v1.35.0, want v1.36.0)".
func values(f finding.Finding) string {
	switch {
	case f.Field == "" && f.Have == "" && f.Want == "":
		return ""
	case f.Have == "" && f.Want == "":
		return " (" + f.Field + ")"
	}
	both := "have " + cmp.Or(f.Have, "none") + ", want " + cmp.Or(f.Want, "none")
	if f.Field == "" {
		return " (" + both + ")"
	}
	return " (" + f.Field + ": " + both + ")"
}

func paintOf(s finding.Severity) paint {
	switch s {
	case finding.Stops, finding.Harms:
		return wrong
	case finding.Notes:
		return quiet
	}
	return plain
}

// summary is the last line: "2 findings in …: stops 1, notes 1".
func summary(st Style, about string, counts map[finding.Severity]int) string {
	var parts []string
	total := 0
	for _, s := range []finding.Severity{finding.Stops, finding.Harms, finding.Notes} {
		if n := counts[s]; n > 0 {
			parts = append(parts, string(s)+" "+itoa(n))
			total += n
		}
	}
	in := ""
	if about != "" {
		in = " in " + about
	}
	if total == 0 {
		return st.dress(good, "No findings") + in
	}
	return count(total, "finding") + in + ": " + strings.Join(parts, ", ")
}
