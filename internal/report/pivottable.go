package report

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/move-hook/move-hook/pkg/graph"
)

// MachineRow is what has to survive a pivot of one Machine.
type MachineRow struct {
	// Machine is namespace/name.
	Machine string `json:"machine"`
	// Owners are "Kind/name", the controller first and marked with a star.
	Owners     []string `json:"owners"`
	ProviderID string   `json:"providerID,omitempty"`
	Node       string   `json:"node,omitempty"`
}

// MachineRows are the Machines of the snapshots, sorted.
func MachineRows(snapshots ...graph.Snapshot) []MachineRow {
	rows := []MachineRow{}
	for _, s := range snapshots {
		for _, n := range s.Nodes {
			if n.GroupKind() == graph.Machine {
				rows = append(rows, MachineRow{Machine: path(n.ID), Owners: ownerNames(n.Owners),
					ProviderID: n.Facts.ProviderID, Node: n.Facts.NodeName})
			}
		}
	}
	slices.SortFunc(rows, func(a, b MachineRow) int { return strings.Compare(a.Machine, b.Machine) })
	return slices.CompactFunc(rows, func(a, b MachineRow) bool { return a.Machine == b.Machine })
}

func ownerNames(owners []graph.SnapshotOwner) []string {
	names := []string{}
	for _, o := range owners {
		name := o.Kind + "/" + o.Name
		if o.Controller != nil && *o.Controller {
			name = "*" + name
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// PivotTable prints every Machine before and after a pivot, one line where both
// are equal, two where they differ, and states in a last line whether all are.
func PivotTable(w io.Writer, st Style, before, after []MachineRow) (equal bool, err error) {
	out := &sticky{w: w}
	t := &columns{head: []string{"MACHINE", "OWNER", "PROVIDER ID", "NODE", "AFTER THE PIVOT"}}
	was, is := byMachine(before), byMachine(after)
	var names []string
	for _, r := range slices.Concat(before, after) {
		names = append(names, r.Machine)
	}
	slices.Sort(names)
	changed := 0
	for _, name := range slices.Compact(names) {
		b, had := was[name]
		a, has := is[name]
		switch {
		case had && has && equalRows(a, b):
			t.add(machineCells(b, cell{"equal", good})...)
			continue
		case had && has:
			t.add(machineCells(b, cell{"was", quiet})...)
			t.add(machineCells(a, cell{"is: " + strings.Join(differences(b, a), ", ") + " changed", wrong})...)
		case had:
			t.add(machineCells(b, cell{"gone", wrong})...)
		default:
			t.add(machineCells(a, cell{"new", wrong})...)
		}
		changed++
	}
	t.write(out, st)
	out.line("")
	verdict := st.dress(good, "every name, owner, providerID and node is equal")
	if changed > 0 {
		verdict = st.dress(wrong, plural(changed, "Machine is", "Machines are")+" not equal")
	}
	out.line(count(len(before), "Machine") + " before, " + itoa(len(after)) + " after: " + verdict)
	return changed == 0, out.err
}

func byMachine(rows []MachineRow) map[string]MachineRow {
	m := make(map[string]MachineRow, len(rows))
	for _, r := range rows {
		m[r.Machine] = r
	}
	return m
}

func machineCells(r MachineRow, verdict cell) []cell {
	return append(cells(r.Machine, strings.Join(r.Owners, ", "), cmp.Or(r.ProviderID, "-"), cmp.Or(r.Node, "-")), verdict)
}

func equalRows(a, b MachineRow) bool { return len(differences(a, b)) == 0 }

func differences(a, b MachineRow) []string {
	var fields []string
	if !slices.Equal(a.Owners, b.Owners) {
		fields = append(fields, "owner")
	}
	if a.ProviderID != b.ProviderID {
		fields = append(fields, "providerID")
	}
	if a.Node != b.Node {
		fields = append(fields, "node")
	}
	return fields
}
