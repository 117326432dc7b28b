package adopt

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/move-hook/move-hook/pkg/finding"
)

// TestIDs_EveryOneIsDocumented reads the constants from the source: an ID that is
// used and not in the table would have neither severity nor remedy.
func TestIDs_EveryOneIsDocumented(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "ids.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "id") || len(spec.Values) != 1 {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
			value, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, value)
		}
		return true
	})
	slices.Sort(declared)
	var documented []string
	for _, e := range IDs() {
		documented = append(documented, e.ID)
		if e.Cause == "" || (e.Remedy == "" && e.Severity != finding.Notes) {
			t.Errorf("%s: cause %q, remedy %q", e.ID, e.Cause, e.Remedy)
		}
	}
	if !slices.IsSorted(documented) {
		t.Errorf("not sorted: %v", documented)
	}
	if !slices.Equal(declared, documented) {
		t.Errorf("declared   %v\ndocumented %v", declared, documented)
	}
}
