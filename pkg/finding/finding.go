// Package finding holds the one shape in which move-hook says that something is
// not as it should be: preflight and verify return findings, a blocked adoption
// is a list of findings, and printers know nothing else.
//
// A finding is a value, never an error: an error means that move-hook could not
// judge, a finding is a judgement.
package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity orders findings by what they lead to.
type Severity string

const (
	// Stops means that the pivot or adoption cannot go on.
	Stops Severity = "stops"
	// Harms means that something is lost or wrong if nothing is done.
	Harms Severity = "harms"
	// Notes means that it is worth knowing and needs no action.
	Notes Severity = "notes"
)

// Finding is one judgement about one object.
type Finding struct {
	// ID is stable and documented in docs/pivot.md, for example "StaleOwnerUID".
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	// Object is the identity of the object as graph.ID prints it: "Machine default/c1-cp-0".
	Object string `json:"object"`
	// Field is the path of the value that is wrong, empty where the object itself is.
	Field string `json:"field,omitempty"`
	// Have and Want are the two values in words, empty where there is nothing to compare.
	Have string `json:"have,omitempty"`
	Want string `json:"want,omitempty"`
	// Message says in one sentence, without object, what is wrong.
	Message string `json:"message"`
	// Remedy is the flag or command that resolves it.
	Remedy string `json:"remedy,omitempty"`
}

// String is one line: object, what is wrong, both values and the remedy.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", f.Object, f.Message)
	switch compared := f.Have != "" || f.Want != ""; {
	case f.Field != "" && compared:
		fmt.Fprintf(&b, " (%s: have %s, want %s)", f.Field, orNone(f.Have), orNone(f.Want))
	case f.Field != "":
		fmt.Fprintf(&b, " (%s)", f.Field)
	case compared:
		fmt.Fprintf(&b, " (have %s, want %s)", orNone(f.Have), orNone(f.Want))
	}
	if f.Remedy != "" {
		fmt.Fprintf(&b, "; %s", f.Remedy)
	}
	return fmt.Sprintf("%s [%s]", b.String(), f.ID)
}

// Compare orders by severity (worst first), then object, ID and field, then by
// the rest, so that only equal findings compare as equal.
func Compare(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(rank(a.Severity), rank(b.Severity)),
		strings.Compare(a.Object, b.Object),
		strings.Compare(a.ID, b.ID),
		strings.Compare(a.Field, b.Field),
		strings.Compare(a.Have, b.Have),
		strings.Compare(a.Want, b.Want),
		strings.Compare(a.Message, b.Message),
		strings.Compare(a.Remedy, b.Remedy),
		strings.Compare(string(a.Severity), string(b.Severity)),
	)
}

// Sort sorts in place with Compare, so that the same findings always print alike.
func Sort(fs []Finding) { slices.SortStableFunc(fs, Compare) }

// rank is a severity's place; one that nobody knows comes first, so that it is seen.
func rank(s Severity) int {
	return slices.Index([]Severity{Stops, Harms, Notes}, s)
}

func orNone(s string) string {
	return cmp.Or(s, "none")
}
