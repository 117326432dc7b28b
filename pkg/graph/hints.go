package graph

import (
	"cmp"
	"slices"
	"strings"
)

// hintsOf finds what refsOf leaves out because it is no reference by shape, and what
// providers mean as one: a map with kind and name and no API version (the kind is then
// of the referrer's own group), and names of Secrets and ConfigMaps in fields that are
// called so. A hint may be wrong: it counts only where the object is there. Sorted.
func hintsOf(id ID, spec map[string]any) []Ref {
	if gk := id.GroupKind(); gk == Machine || gk == MachineSet || gk == Cluster {
		return nil // Their references all have a shape.
	}
	var out []Ref
	walk("spec", spec, 0, func(field string, m map[string]any) {
		if to, ok := hintOf(id, field, m); ok {
			out = append(out, Ref{field, to})
		}
		for k, v := range m {
			name, isString := v.(string)
			if !isString || name == "" || strings.ContainsAny(name, "/: ") {
				continue
			}
			if gk, ok := namedKind(k); ok && lastWord(k) {
				out = append(out, Ref{field + "." + k, ID{gk.Group, gk.Kind, id.Namespace, name}})
			}
		}
	})
	slices.SortFunc(out, func(a, b Ref) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), a.To.Compare(b.To))
	})
	return slices.Compact(out)
}

// hintOf reads a map with a name: {kind, name}, or {name} in a field that tells the kind.
func hintOf(id ID, field string, m map[string]any) (ID, bool) {
	kind, name := str(m["kind"]), str(m["name"])
	_, hasGroup := m["apiGroup"].(string)
	_, hasVersion := m["apiVersion"].(string)
	if name == "" || hasGroup || hasVersion {
		return ID{}, false
	}
	to := ID{Kind: kind, Namespace: cmp.Or(str(m["namespace"]), id.Namespace), Name: name}
	switch {
	case kind == Secret.Kind || kind == ConfigMap.Kind:
		return to, true
	case kind != "":
		to.Group = id.Group
		return to, true
	}
	key := field[strings.LastIndexByte(field, '.')+1:]
	key, _, _ = strings.Cut(key, "[")
	gk, ok := namedKind(key)
	to.Group, to.Kind = gk.Group, gk.Kind
	return to, ok
}

// namedKind is the kind that a field speaks of: secretRef, clientSecret, credentialsRef,
// identityRef (where it has no kind, it is a Secret with the cloud's credentials), and
// what Machines are given by name.
func namedKind(key string) (GroupKind, bool) {
	key = strings.ToLower(key)
	switch {
	case strings.Contains(key, "configmap"):
		return ConfigMap, true
	case strings.Contains(key, "secret"), strings.Contains(key, "credential"), key == "identityref",
		key == "userdata", key == "networkdata":
		return Secret, true
	}
	return GroupKind{}, false
}

// lastWord: a string is the name of an object only in a field that says so, as
// secretName or secretRef; userData may be anything.
func lastWord(key string) bool {
	return strings.HasSuffix(key, "Name") || strings.HasSuffix(key, "Ref")
}
