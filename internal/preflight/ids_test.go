package preflight

import (
	"regexp"
	"testing"

	"github.com/move-hook/move-hook/internal/fleet"
	"github.com/move-hook/move-hook/pkg/adopt"
)

func TestIDs_EveryFindingOfThisPackageIsDocumented(t *testing.T) {
	made := regexp.MustCompile(`\b(?:ID|inFlightID|f\.ID)(?:: | = |, f\.\w+ = |, f\.Severity = )"([A-Za-z]+)"`)
	wrong, err := fleet.Undocumented(made, IDs(), adopt.IDs()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
}
