package pivot

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/move-hook/move-hook/internal/preflight"
	"github.com/move-hook/move-hook/pkg/adopt"
)

func TestIDs_EveryFindingOfThisPackageIsDocumented(t *testing.T) {
	known := map[string]bool{}
	for _, e := range slices.Concat(IDs(), adopt.IDs(), preflight.IDs()) {
		known[e.ID] = true
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	made := regexp.MustCompile(`\bID(?:: |, f\.Severity = )"([A-Za-z]+)"`)
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") || f.Name() == "ids.go" {
			continue
		}
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range made.FindAllStringSubmatch(string(text), -1) {
			if !known[match[1]] {
				t.Errorf("%s makes findings %s, which IDs does not document", f.Name(), match[1])
			}
		}
	}
	sorted := slices.IsSortedFunc(IDs(), func(a, b adopt.Entry) int { return strings.Compare(a.ID, b.ID) })
	if !sorted {
		t.Error("not sorted")
	}
}
