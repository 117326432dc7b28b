package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// checkNameClash finds objects of the target that have the name of one that moves and
// are another. clusterctl writes over them (mover.go, createTargetObject), except over
// what is cluster-scoped or belongs to that, which stays as the target has it. A copy
// that is equal is what an interrupted move leaves, and no harm.
func checkNameClash(in Input) []finding.Finding {
	var found []finding.Finding
	equal := map[string][]graph.ID{}
	for _, id := range slices.SortedFunc(maps.Keys(in.Target.There), graph.ID.Compare) {
		there := in.Target.There[id]
		source, _ := in.Source.Graph.Object(id)
		f := finding.Finding{ID: "NameClash", Severity: finding.Stops, Object: id.String()}
		switch {
		case source == nil, graph.IsRecord(source):
			continue // A record says what was moved then, and is written over.
		case there.Deleting:
			f.Field, f.Have, f.Want = "metadata.deletionTimestamp", "set", "not set"
			f.Message = fmt.Sprintf("is on %s already and is being deleted there", in.Target.Name)
			f.Remedy = "wait until it is gone, then run the command again"
		case there.Refused != nil && causeOf(*there.Refused) == byItself:
			f.Message = fmt.Sprintf("is on %s already, and clusterctl's update of it would be refused: %s", in.Target.Name, there.Refused.Message)
			f.Remedy = "remove it from the target if it is a leftover, else rename one of the two"
		case len(there.Differs) > 0:
			f.Message = fmt.Sprintf("is on %s already with other content%s", in.Target.Name, andMore(there.Differs))
			d := there.Differs[0]
			f.Field, f.Have, f.Want = d.Field, d.Target, d.Source
			f.Severity, f.Remedy = in.clash(source, there)
		default:
			equal[id.Namespace] = append(equal[id.Namespace], id)
			continue
		}
		found = append(found, f)
	}
	for namespace, ids := range equal {
		found = append(found, sameThere(in.Target.Name, namespace, ids))
	}
	return found
}

// clash says how bad it is that another object has the name, and what to do.
func (in Input) clash(source *graph.Object, there Copy) (finding.Severity, string) {
	cluster, ofCluster := source.Labels[graph.ClusterNameLabel]
	switch {
	case there.Kept:
		return finding.Harms, "the target's stays as it is: make it equal if the Clusters need it so, or rename one of the two"
	case source.GroupKind() == graph.Cluster && differsIn(there.Differs, "spec.controlPlaneEndpoint"):
		return finding.Stops, "it is another Cluster: rename one of the two, or move into another namespace"
	case source.GroupKind() == graph.Cluster, ofCluster && there.Labels[graph.ClusterNameLabel] == cluster:
		return finding.Harms, "clusterctl overwrites it: fine for what an earlier try left, else remove or rename it on the target"
	}
	return finding.Stops, "clusterctl would overwrite it: remove it from the target if it is a leftover, else rename one of the two"
}

func differsIn(all []Difference, field string) bool {
	return slices.ContainsFunc(all, func(d Difference) bool { return d.Field == field || strings.HasPrefix(d.Field, field+".") })
}

func andMore(all []Difference) string {
	var fields []string
	for _, d := range all[1:] {
		fields = append(fields, d.Field)
	}
	const some = 3
	switch more := len(fields) - some; {
	case len(fields) == 0:
		return ""
	case more > 0:
		return fmt.Sprintf(", also in %s and %d more fields", strings.Join(fields[:some], ", "), more)
	}
	return ", also in " + strings.Join(fields, ", ")
}

// sameThere is the note about the copies of a namespace that are equal.
func sameThere(target, namespace string, ids []graph.ID) finding.Finding {
	const some = 5
	var names []string
	for _, id := range ids[:min(some, len(ids))] {
		names = append(names, id.Kind+" "+id.Name)
	}
	list := strings.Join(names, ", ")
	if more := len(ids) - some; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	object := "Namespace " + namespace
	if namespace == "" {
		object = "cluster-scoped objects"
	}
	return finding.Finding{
		ID: "AlreadyThere", Severity: finding.Notes, Object: object,
		Message: fmt.Sprintf("equal copies are on %s already, as an interrupted move leaves them (the data of Secrets is not compared): %s", target, list),
		Remedy:  "see `move-hook status`",
	}
}

// Difference is a field that two copies of an object do not have in common.
type Difference struct {
	Field string
	// Source and Target are the values; empty where they are not for printing.
	Source, Target string
}

// Differences compares the content of two copies: everything but metadata and status.
// Whether a Cluster is paused does not count. Values are given for Cluster API's own
// objects only: those of others may be confidential.
func Differences(source, target map[string]any) []Difference {
	apiVersion, _ := source["apiVersion"].(string)
	kind, _ := source["kind"].(string)
	gk := graph.GroupKind{Group: graph.GroupOf(apiVersion), Kind: kind}
	d := differ{show: gk.Group == graph.CoreGroup, skip: map[string]bool{
		"apiVersion": true, "kind": true, "metadata": true, "status": true, "spec.paused": gk == graph.Cluster}}
	d.maps("", source, target)
	return d.found
}

type differ struct {
	show  bool
	skip  map[string]bool
	found []Difference
}

func (d *differ) maps(path string, source, target map[string]any) {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(source)), maps.Keys(target))
	slices.Sort(keys)
	for _, k := range slices.Compact(keys) {
		field := strings.TrimPrefix(path+"."+k, ".")
		if d.skip[field] {
			continue
		}
		d.values(field, source[k], target[k])
	}
}

func (d *differ) values(field string, source, target any) {
	if isEmpty(source) && isEmpty(target) {
		return
	}
	a, okA := source.(map[string]any)
	b, okB := target.(map[string]any)
	if okA && okB {
		d.maps(field, a, b)
		return
	}
	if fmt.Sprint(source) == fmt.Sprint(target) {
		return
	}
	f := Difference{Field: field}
	if d.show {
		f.Source, f.Target = scalar(source), scalar(target)
	}
	d.found = append(d.found, f)
}

// isEmpty: a field that is left out and one that is empty mean the same.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, v := range v {
			if !isEmpty(v) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return false
}

// scalar is a value as text, if it is one.
func scalar(v any) string {
	switch v := v.(type) {
	case string, bool, int64, float64:
		return fmt.Sprint(v)
	}
	return ""
}
