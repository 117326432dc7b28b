package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/move-hook/move-hook/internal/pivot"
	"github.com/move-hook/move-hook/pkg/finding"
)

// Preflight prints one line for each finding, worst first, with what to do below it.
func Preflight(w io.Writer, st Style, r pivot.PreflightResult) error {
	out := &sticky{w: w}
	writeFindings(out, st, count(len(r.Clusters), "Cluster"), r.Findings)
	writeIgnored(out, st, r.Ignored)
	return out.err
}

// PreflightTable prints the same as a table.
func PreflightTable(w io.Writer, st Style, r pivot.PreflightResult) error {
	out := &sticky{w: w}
	t := &columns{head: []string{"SEVERITY", "FINDING", "OBJECT", "WHAT", "DO"}}
	for _, f := range NewFindingsDocument(r.Findings).Findings {
		t.add(cell{string(f.Severity), paintOf(f.Severity)}, cell{text: f.ID}, cell{text: f.Object},
			cell{text: f.Message + values(f)}, cell{text: strings.ReplaceAll(f.Remedy, "\n", "; ")})
	}
	if len(t.rows) > 0 {
		t.write(out, st)
	} else {
		writeFindings(out, st, count(len(r.Clusters), "Cluster"), nil)
	}
	writeIgnored(out, st, r.Ignored)
	return out.err
}

// writeIgnored says what was accepted, so that it is not forgotten.
func writeIgnored(out *sticky, st Style, ignored map[string]int) {
	if len(ignored) == 0 {
		return
	}
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(ignored)) {
		parts = append(parts, id+" "+itoa(ignored[id]))
	}
	out.line(st.dress(quiet, "Ignored: "+strings.Join(parts, ", ")))
}

// The parts of JUnit's XML that tools agree on.
type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitFailure struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// PreflightJUnit prints each Cluster as a test that passed, and each finding as one
// that failed. What is only worth knowing passes and tells.
func PreflightJUnit(w io.Writer, r pivot.PreflightResult) error {
	s := junitSuite{Name: "move-hook preflight", Time: fmt.Sprintf("%.3f", r.Seconds)}
	for _, c := range r.Clusters {
		s.Cases = append(s.Cases, junitCase{Class: "checked", Name: c.String()})
	}
	for _, f := range NewFindingsDocument(r.Findings).Findings {
		one := junitCase{Class: f.ID, Name: f.Object}
		if f.Severity == finding.Notes {
			one.Out = f.String()
		} else {
			s.Failures++
			one.Failure = &junitFailure{Type: string(f.Severity), Message: f.Message + values(f), Text: f.String()}
		}
		s.Cases = append(s.Cases, one)
	}
	s.Tests = len(s.Cases)
	text, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}
