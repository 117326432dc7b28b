package finding_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/move-hook/move-hook/pkg/finding"
)

func TestString_IsOneLineWithWhatThereIs(t *testing.T) {
	for _, tc := range []struct {
		f    finding.Finding
		want string
	}{
		{finding.Finding{ID: "X", Object: "Machine ns/m", Message: "does not exist"}, "Machine ns/m: does not exist [X]"},
		{finding.Finding{ID: "X", Object: "o", Message: "m", Remedy: "do it"}, "o: m; do it [X]"},
		{finding.Finding{ID: "X", Object: "o", Message: "m", Field: "spec.f"}, "o: m (spec.f) [X]"},
		{finding.Finding{ID: "X", Object: "o", Message: "m", Field: "spec.f", Have: "1", Want: "2", Remedy: "do it"}, "o: m (spec.f: have 1, want 2); do it [X]"},
		{finding.Finding{ID: "X", Object: "o", Message: "m", Field: "spec.f", Want: "2"}, "o: m (spec.f: have none, want 2) [X]"},
		{finding.Finding{ID: "X", Object: "o", Message: "m", Have: "1"}, "o: m (have 1, want none) [X]"},
	} {
		if got := tc.f.String(); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

func TestSort_GivesOneOrderForTheSameFindings(t *testing.T) {
	values := []string{"a", "b"}
	var all []finding.Finding
	for _, severity := range []finding.Severity{finding.Stops, finding.Harms, finding.Notes} {
		for _, object := range values {
			for _, id := range values {
				for _, field := range values {
					for _, want := range values {
						all = append(all, finding.Finding{Severity: severity, Object: object, ID: id, Field: field, Want: want, Message: want, Remedy: want})
					}
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		shuffled := make([]finding.Finding, len(all))
		for to, from := range r.Perm(len(all)) {
			shuffled[to] = all[from]
		}
		finding.Sort(shuffled)
		if diff := cmp.Diff(all, shuffled); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestCompare_IsZeroOnlyForEqualFindings(t *testing.T) {
	f := finding.Finding{ID: "i", Severity: finding.Harms, Object: "o", Field: "f", Have: "h", Want: "w", Message: "m", Remedy: "r"}
	if finding.Compare(f, f) != 0 {
		t.Error("a finding differs from itself")
	}
	for name, change := range map[string]func(*finding.Finding){
		"ID":       func(f *finding.Finding) { f.ID = "x" },
		"Severity": func(f *finding.Finding) { f.Severity = "x" },
		"Object":   func(f *finding.Finding) { f.Object = "x" },
		"Field":    func(f *finding.Finding) { f.Field = "x" },
		"Have":     func(f *finding.Finding) { f.Have = "x" },
		"Want":     func(f *finding.Finding) { f.Want = "x" },
		"Message":  func(f *finding.Finding) { f.Message = "x" },
		"Remedy":   func(f *finding.Finding) { f.Remedy = "x" },
	} {
		other := f
		change(&other)
		if finding.Compare(f, other) == 0 || finding.Compare(f, other) != -finding.Compare(other, f) {
			t.Errorf("another %s makes no difference, or not the same both ways", name)
		}
	}
}

// The field names are what scripts read with -o json.
func TestJSON_HasStableNames(t *testing.T) {
	got, err := json.Marshal(finding.Finding{ID: "i", Severity: finding.Harms, Object: "o", Field: "f", Have: "h", Want: "w", Message: "m", Remedy: "r"})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"i","severity":"harms","object":"o","field":"f","have":"h","want":"w","message":"m","remedy":"r"}`
	if string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func ExampleFinding() {
	fmt.Println(finding.Finding{
		ID: "StaleOwnerUID", Severity: finding.Harms, Object: "Machine fleet/c1-cp-0",
		Field: "metadata.ownerReferences[0].uid", Have: "6a1f", Want: "90c2",
		Message: "its owner reference names another copy of the owner", Remedy: "run move-hook post",
	})
	// Output: Machine fleet/c1-cp-0: its owner reference names another copy of the owner (metadata.ownerReferences[0].uid: have 6a1f, want 90c2); run move-hook post [StaleOwnerUID]
}
