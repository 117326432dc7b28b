package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/move-hook/move-hook/internal/pivot"
	"github.com/move-hook/move-hook/pkg/finding"
)

// Prefill prints what a control plane that was created comes to, or why there is none.
func Prefill(w io.Writer, st Style, r pivot.PrefillResult) error {
	out := &sticky{w: w}
	writeFindings(out, st, r.Cluster.String(), r.Findings)
	if r.Machines > 0 {
		out.line(verdict(r))
	}
	if r.Message != "" {
		out.line(r.Message)
	}
	for _, next := range r.Next {
		out.line("  → " + next)
	}
	return out.err
}

// Manifest writes the objects of a result for kubectl: YAML with everything that is to
// be known of them as comments on top, or a JSON List, which has no comments.
func Manifest(w io.Writer, f Format, r pivot.PrefillResult) error {
	if f == JSON {
		text, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": r.Objects}, "", "  ")
		if err != nil {
			return err
		}
		_, err = w.Write(append(text, '\n'))
		return err
	}
	out := &sticky{w: w}
	writeComments(out, r)
	for _, o := range r.Objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return err
		}
		out.line("---")
		out.line(strings.TrimSuffix(string(text), "\n"))
	}
	return out.err
}

func writeComments(out *sticky, r pivot.PrefillResult) {
	var names []string
	for _, o := range r.Objects {
		names = append(names, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	comment := func(text string) {
		for line := range strings.SplitSeq(text, "\n") {
			out.line(strings.TrimRight("# "+line, " "))
		}
	}
	comment(strings.Join(names, " and ") + ", for " + count(r.Machines, "stand-alone control-plane Machine") + " of " + r.Cluster.String() + ".")
	comment("\n" + verdict(r))
	for _, part := range []struct {
		head string
		is   func(finding.Finding) bool
	}{
		{"What is wrong:", func(f finding.Finding) bool { return f.Severity != finding.Notes }},
		{"What could not be known, and in what the Machines differ:", func(f finding.Finding) bool { return f.Severity == finding.Notes }},
	} {
		var lines strings.Builder
		writeEach(&sticky{w: &lines}, Style{}, "  ", slices.DeleteFunc(slices.Clone(r.Findings), func(f finding.Finding) bool { return !part.is(f) }))
		if lines.Len() > 0 {
			comment("\n" + part.head + "\n" + strings.TrimSuffix(lines.String(), "\n"))
		}
	}
	comment("\nThe control plane is held: it acts only when move-hook post has adopted the Machines. Look through it, then:\n  " +
		strings.Join(r.Next, "\n  "))
}

// verdict claims that nothing is replaced only where upstream's comparison says so.
func verdict(r pivot.PrefillResult) string {
	if r.NoRollout {
		return fmt.Sprintf("No Machine would be replaced, as Cluster API %s compares.", r.JudgedBy)
	}
	replaced := map[string]bool{}
	for _, f := range r.Findings {
		if f.ID == "WouldRollOut" {
			replaced[f.Object] = true
		}
	}
	if len(replaced) == 0 {
		return "NOT JUDGED: whether Machines would be replaced is not known."
	}
	return fmt.Sprintf("WARNING: %d of %s WOULD BE REPLACED after adoption, as Cluster API %s compares.", len(replaced), count(r.Machines, "Machine"), r.JudgedBy)
}
