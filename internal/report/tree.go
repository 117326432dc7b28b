package report

import (
	"io"
	"slices"
	"strings"

	"github.com/move-hook/move-hook/pkg/graph"
)

// GraphTree prints the hierarchy of every Cluster, each object once, below the
// owner that controls it; then what does not move, with the reason, and the
// owners that are not there.
func GraphTree(w io.Writer, st Style, doc GraphDocument) error {
	out := &sticky{w: w}
	f := newForest(doc)
	t := &columns{head: []string{"OBJECT", "OWNED AS", "DETAILS"}}
	for i, root := range f.roots() {
		if i > 0 {
			t.add(cells("", "", "")...)
		}
		f.plant(t, root)
	}
	if len(t.rows) > 0 {
		t.write(out, st)
	}
	writeStaying(out, st, doc)
	writeUnseen(out, st, doc)
	if len(doc.Objects) > 0 {
		out.line("")
	}
	out.line(graphSummary(doc.Counts))
	return out.err
}

// GraphTable prints one line for each object.
func GraphTable(w io.Writer, st Style, doc GraphDocument) error {
	out := &sticky{w: w}
	t := &columns{head: []string{"NAMESPACE", "KIND", "NAME", "OWNERS", "STATE", "MOVES", "WHY"}}
	for _, o := range doc.Objects {
		var owners []string
		for _, w := range o.Owners {
			owners = append(owners, ownerText(w, o.Namespace))
		}
		state, p := worstState(o.Owners)
		moves := cell{"yes", good}
		if !o.Moves {
			moves = cell{"no", waits}
		}
		t.add(cell{text: o.Namespace}, cell{text: o.Kind}, cell{text: o.Name},
			cell{text: strings.Join(owners, ",")}, cell{state, p}, moves, cell{o.Reason, quiet})
	}
	if len(t.rows) > 0 {
		t.write(out, st)
	} else {
		out.line(graphSummary(doc.Counts))
	}
	return out.err
}

// ownerText is "*Kind/name": a star for the controller, a tilde for ownership by
// clusterctl's convention.
func ownerText(o GraphOwner, namespace string) string {
	sign := ""
	switch o.Edge {
	case "controller":
		sign = "*"
	case "soft":
		sign = "~"
	}
	return sign + within(o.ID, namespace)
}

// within is Kind/name, with the namespace where it is another one.
func within(id graph.ID, namespace string) string {
	if id.Namespace == "" || id.Namespace == namespace {
		return id.Kind + "/" + id.Name
	}
	return id.Kind + "/" + id.Namespace + "/" + id.Name
}

// states from best to worst; the worst of an object's owners is shown.
var states = [...]string{graph.Live.String(), graph.Unknown.String(), graph.Stale.String(), graph.Dangling.String()}

func worstState(owners []GraphOwner) (string, paint) {
	worst := -1
	for _, o := range owners {
		worst = max(worst, slices.Index(states[:], o.State))
	}
	if worst < 0 {
		return "-", quiet
	}
	return states[worst], paintOfRef(states[worst])
}

func paintOfRef(state string) paint {
	switch state {
	case graph.Stale.String(), graph.Dangling.String():
		return wrong
	case graph.Unknown.String():
		return waits
	}
	return plain
}

// forest hangs every object below one owner.
type forest struct {
	doc     GraphDocument
	objects map[graph.ID]*GraphObject
	below   map[graph.ID][]graph.ID
	parent  map[graph.ID]int // index of the owner it hangs below
	planted map[graph.ID]bool
}

func newForest(doc GraphDocument) *forest {
	f := &forest{doc: doc, objects: make(map[graph.ID]*GraphObject, len(doc.Objects)),
		below: map[graph.ID][]graph.ID{}, parent: map[graph.ID]int{}, planted: map[graph.ID]bool{}}
	for i := range doc.Objects {
		f.objects[doc.Objects[i].ID] = &doc.Objects[i]
	}
	for i := range doc.Objects {
		o := &doc.Objects[i]
		if at, ok := f.chooseParent(o); ok {
			f.parent[o.ID] = at
			owner := o.Owners[at].ID
			f.below[owner] = append(f.below[owner], o.ID)
		}
	}
	for _, ids := range f.below {
		slices.SortStableFunc(ids, func(a, b graph.ID) int { return rank(a) - rank(b) })
	}
	return f
}

// rank puts what people look for first: what runs the Cluster, then what it is
// made of, Secrets and ConfigMaps last.
func rank(id graph.ID) int {
	switch id.Group {
	case graph.ControlPlaneGroup:
		return 0
	case graph.CoreGroup:
		return 1
	case graph.BootstrapGroup:
		return 3
	case "":
		return 4
	}
	return 2
}

// chooseParent takes the controller, else the first owner that was seen.
func (f *forest) chooseParent(o *GraphObject) (int, bool) {
	best := -1
	for i, owner := range o.Owners {
		if f.objects[owner.ID] == nil || owner.ID == o.ID {
			continue
		}
		if owner.Edge == "controller" {
			return i, true
		}
		if best < 0 {
			best = i
		}
	}
	return best, best >= 0
}

// roots are the objects to print trees of, Clusters first: what hangs below
// nothing and either moves or has something below it. What neither moves nor
// owns anything is listed at the end only. A cycle of owners hangs below
// nothing: its first member is a root.
func (f *forest) roots() []graph.ID {
	var clusters, others []graph.ID
	reached := map[graph.ID]bool{}
	take := func(id graph.ID) {
		f.reach(id, reached)
		if id.GroupKind() == graph.Cluster {
			clusters = append(clusters, id)
		} else {
			others = append(others, id)
		}
	}
	for _, o := range f.doc.Objects {
		if _, hangs := f.parent[o.ID]; hangs {
			continue
		}
		if o.Moves || len(f.below[o.ID]) > 0 {
			take(o.ID)
		}
	}
	for _, o := range f.doc.Objects {
		if _, hangs := f.parent[o.ID]; hangs && !reached[o.ID] {
			delete(f.parent, o.ID)
			take(o.ID)
		}
	}
	return slices.Concat(clusters, others)
}

func (f *forest) reach(id graph.ID, reached map[graph.ID]bool) {
	todo := []graph.ID{id}
	for len(todo) > 0 {
		id, todo = todo[len(todo)-1], todo[:len(todo)-1]
		if !reached[id] {
			reached[id] = true
			todo = append(todo, f.below[id]...)
		}
	}
}

func (f *forest) plant(t *columns, root graph.ID) {
	o := f.objects[root]
	f.planted[root] = true
	t.add(cell{root.String(), heading}, f.ownedAs(o), f.details(o))
	f.branches(t, root, "")
}

func (f *forest) branches(t *columns, of graph.ID, indent string) {
	var below []graph.ID
	for _, id := range f.below[of] {
		if !f.planted[id] {
			below = append(below, id)
		}
	}
	for i, id := range below {
		f.planted[id] = true
		branch, deeper := "├─ ", "│  "
		if i == len(below)-1 {
			branch, deeper = "└─ ", "   "
		}
		o := f.objects[id]
		t.add(cell{text: indent + branch + within(id, of.Namespace)}, f.ownedAs(o), f.details(o))
		f.branches(t, id, indent+deeper)
	}
}

// ownedAs is the edge to the owner above: "controller", "owner, stale".
func (f *forest) ownedAs(o *GraphObject) cell {
	at, ok := f.parent[o.ID]
	if !ok {
		return cell{}
	}
	owner := o.Owners[at]
	if owner.State == graph.Live.String() {
		return cell{text: owner.Edge}
	}
	return cell{owner.Edge + ", " + owner.State, paintOfRef(owner.State)}
}

// details are the few values that people look for, the marks, the other owners,
// and that it stays.
func (f *forest) details(o *GraphObject) cell {
	var parts []string
	if o.Facts.Replicas != nil {
		parts = append(parts, plural(int(*o.Facts.Replicas), "replica", "replicas"))
	}
	if o.Facts.Version != "" {
		parts = append(parts, o.Facts.Version)
	}
	parts = append(parts, o.Marks...)
	at, hangs := f.parent[o.ID]
	p := quiet
	for i, owner := range o.Owners {
		if hangs && i == at {
			continue
		}
		text := "also "
		if !hangs {
			text = ""
		}
		text += owner.Edge + " " + within(owner.ID, o.Namespace)
		if owner.State != graph.Live.String() {
			text += " (" + owner.State + ")"
			p = paintOfRef(owner.State)
		}
		parts = append(parts, text)
	}
	if !o.Moves {
		parts = append(parts, "stays")
		p = waits
	}
	return cell{strings.Join(parts, ", "), p}
}

func writeStaying(out *sticky, st Style, doc GraphDocument) {
	t := &columns{head: []string{"NAMESPACE", "KIND", "NAME", "USED BY", "WHY"}}
	usedBy := map[graph.ID][]graph.ID{}
	for _, o := range doc.Objects {
		for _, ref := range o.Refs {
			usedBy[ref.To] = append(usedBy[ref.To], o.ID)
		}
	}
	for _, o := range doc.Objects {
		if o.Moves || o.Unrelated {
			continue
		}
		var users []string
		for _, id := range slices.Compact(usedBy[o.ID]) {
			users = append(users, within(id, o.Namespace))
		}
		t.add(cells(o.Namespace, o.Kind, o.Name, some(users, 3), o.Reason)...)
	}
	if len(t.rows) == 0 {
		return
	}
	out.line("")
	out.line(st.dress(waits, "Stays behind"))
	t.write(out, st)
}

func writeUnseen(out *sticky, st Style, doc GraphDocument) {
	if len(doc.Unseen) == 0 {
		return
	}
	out.line("")
	out.line(st.dress(wrong, "Owners that were not seen"))
	t := &columns{head: []string{"NAMESPACE", "KIND", "NAME", "STATE", "OWNER OF"}}
	for _, u := range doc.Unseen {
		var by []string
		for _, id := range u.NamedBy {
			by = append(by, within(id, u.Namespace))
		}
		t.add(cell{text: u.Namespace}, cell{text: u.Kind}, cell{text: u.Name}, cell{u.State, paintOfRef(u.State)},
			cell{text: some(by, 3)})
	}
	t.write(out, st)
}

// graphSummary is "33 objects of 1 Cluster: 31 move, 2 stay behind".
func graphSummary(c GraphCounts) string {
	if c.Objects == 0 {
		return "No objects of Cluster API found"
	}
	text := count(c.Objects-c.Unrelated, "object") + " of " + count(c.Clusters, "Cluster") + ": " +
		plural(c.Moving, "moves", "move") + ", " + plural(c.Staying-c.Unrelated, "stays", "stay") + " behind"
	if c.Unrelated > 0 {
		text += " (" + plural(c.Unrelated, "unrelated Secret or ConfigMap is", "unrelated Secrets and ConfigMaps are") + " not shown)"
	}
	return text
}
