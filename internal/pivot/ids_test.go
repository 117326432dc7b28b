package pivot

import (
	"regexp"
	"testing"

	"github.com/move-hook/move-hook/internal/fleet"
	"github.com/move-hook/move-hook/internal/preflight"
	"github.com/move-hook/move-hook/pkg/adopt"
)

func TestIDs_EveryFindingOfThisPackageIsDocumented(t *testing.T) {
	made := regexp.MustCompile(`\bID(?:: |, f\.Severity = )"([A-Za-z]+)"`)
	wrong, err := fleet.Undocumented(made, IDs(), append(adopt.IDs(), preflight.IDs()...)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
}
