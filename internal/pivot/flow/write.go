package flow

import (
	"slices"
	"strings"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// WriteOf tells an action that was done as kubectl would.
func WriteOf(a adopt.Action, dryRun bool) Write {
	return Wrote(a.Target().ID, done(a), dryRun)
}

// Wrote tells that something was done to an object: "configmap/x created".
func Wrote(id graph.ID, participle string, dryRun bool) Write {
	w := Resource(id) + " " + participle
	if dryRun {
		w += " (dry run)"
	}
	return Write(w)
}

// Resource names an object as kubectl prints and takes it: "machine.cluster.x-k8s.io/cp-0".
func Resource(id graph.ID) string {
	name := strings.ToLower(id.Kind)
	if id.Group != "" {
		name += "." + id.Group
	}
	return name + "/" + id.Name
}

func done(a adopt.Action) string {
	switch a := a.(type) {
	case adopt.SetOwners:
		return "owners corrected"
	case adopt.ChangeMeta:
		return changed(a.Change)
	case adopt.CloseRecord:
		return "closed"
	}
	return "changed"
}

// changed puts each of our marks in its own words; what is not ours is "changed".
func changed(c labels.Change) string {
	var words []string
	set := func(m map[string]string, key, word string) {
		if _, ok := m[key]; ok {
			words = append(words, word)
		}
	}
	drop := func(keys []string, key, word string) {
		if slices.Contains(keys, key) {
			words = append(words, word)
		}
	}
	set(c.SetAnnotations, labels.Held, "held")
	drop(c.DropAnnotations, labels.Held, "released")
	set(c.SetLabels, labels.Adoption, "labelled")
	drop(c.DropLabels, labels.Adoption, "label cleared")
	set(c.SetAnnotations, labels.Record, "record announced")
	drop(c.DropAnnotations, labels.Record, "record done")
	set(c.SetAnnotations, labels.Released, "release begun")
	set(c.SetAnnotations, labels.Adopted, "closed")
	drop(c.DropAnnotations, labels.Owners, "owners given back")
	if len(words) == 0 {
		return "changed"
	}
	return strings.Join(words, ", ")
}
