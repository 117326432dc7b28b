package fleet

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/move-hook/move-hook/pkg/adopt"
)

// Undocumented says, a line each, which findings the files of the working folder make
// (made captures their IDs) that neither own nor others document, and whether own is
// not sorted by ID. A file ids.go and tests are left out.
func Undocumented(made *regexp.Regexp, own []adopt.Entry, others ...adopt.Entry) ([]string, error) {
	known := map[string]bool{}
	for _, e := range slices.Concat(own, others) {
		known[e.ID] = true
	}
	files, err := os.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var wrong []string
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") || f.Name() == "ids.go" {
			continue
		}
		text, err := os.ReadFile(f.Name())
		if err != nil {
			return nil, err
		}
		for _, match := range made.FindAllStringSubmatch(string(text), -1) {
			if !known[match[1]] {
				wrong = append(wrong, fmt.Sprintf("%s makes findings %s, which IDs does not document", f.Name(), match[1]))
			}
		}
	}
	if !slices.IsSortedFunc(own, func(a, b adopt.Entry) int { return strings.Compare(a.ID, b.ID) }) {
		wrong = append(wrong, "IDs are not sorted")
	}
	return wrong, nil
}
