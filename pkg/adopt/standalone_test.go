package adopt

import (
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/util/labels/format"
)

// TestLabelValue_IsUpstreams compares with the function that upstream's controllers use.
func TestLabelValue_IsUpstreams(t *testing.T) {
	for _, name := range []string{"c1-cp", "a", "a.b", "a-", strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat("long-name.", 20) + "z"} {
		if got, want := labelValue(name), format.MustFormatValue(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
