package graph

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// maxDepth bounds how deep a spec is searched for references: deeper than any
// API type, shallow enough for hostile input.
const maxDepth = 64

// refsOf finds the references of a spec: by shape, {apiVersion or apiGroup, kind,
// name and maybe namespace}, as both v1beta1 and v1beta2 and every provider write
// them, and by the fields that hold only a name. Sorted by field.
func refsOf(id ID, spec map[string]any) []Ref {
	var out []Ref
	walk("spec", spec, 0, func(field string, m map[string]any) {
		if to, ok := refOf(id.Namespace, m); ok {
			out = append(out, Ref{field, to})
		}
	})
	add := func(field string, gk GroupKind, namespace, name string) {
		if name != "" {
			out = append(out, Ref{field, ID{gk.Group, gk.Kind, namespace, name}})
		}
	}
	add(FieldDataSecret, Secret, id.Namespace, str(dig(spec, "bootstrap", "dataSecretName")))
	add(FieldTemplateDataSecret, Secret, id.Namespace, str(dig(spec, "template", "spec", "bootstrap", "dataSecretName")))
	if id.GroupKind() != Cluster {
		add(FieldClusterName, Cluster, id.Namespace, str(spec["clusterName"]))
	}
	switch id.GroupKind() {
	case Cluster:
		topology := dig(spec, "topology")
		name, namespace := str(dig(topology, "classRef", "name")), str(dig(topology, "classRef", "namespace"))
		if name == "" { // The place in v1beta1.
			name, namespace = str(dig(topology, "class")), str(dig(topology, "classNamespace"))
		}
		add(FieldClassRef, ClusterClass, cmp.Or(namespace, id.Namespace), name)
	case ClusterResourceSet:
		for i, r := range list(spec["resources"]) {
			if kind := str(dig(r, "kind")); kind == Secret.Kind || kind == ConfigMap.Kind {
				add("spec.resources["+strconv.Itoa(i)+"]", GroupKind{Kind: kind}, id.Namespace, str(dig(r, "name")))
			}
		}
	case ClusterResourceSetBinding:
		for i, b := range list(spec["bindings"]) {
			add("spec.bindings["+strconv.Itoa(i)+"].clusterResourceSetName", ClusterResourceSet, id.Namespace, str(dig(b, "clusterResourceSetName")))
		}
	}
	slices.SortFunc(out, func(a, b Ref) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), a.To.Compare(b.To))
	})
	return slices.Compact(out)
}

// refOf reads one map as a reference; false if it is none.
func refOf(namespace string, m map[string]any) (ID, bool) {
	kind, name := str(m["kind"]), str(m["name"])
	group, hasGroup := m["apiGroup"].(string)
	version, hasVersion := m["apiVersion"].(string)
	if kind == "" || name == "" || (!hasGroup && !hasVersion) {
		return ID{}, false
	}
	if !hasGroup {
		group = GroupOf(version)
	}
	return ID{group, kind, cmp.Or(str(m["namespace"]), namespace), name}, true
}

// walk visits every map below v with its path. Paths are made for maps and lists
// only: most of a spec is neither.
func walk(path string, v any, depth int, visit func(string, map[string]any)) {
	if depth > maxDepth {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		visit(path, v)
		for k, child := range v {
			if nested(child) {
				walk(path+"."+k, child, depth+1, visit)
			}
		}
	case []any:
		for i, child := range v {
			if nested(child) {
				walk(path+"["+strconv.Itoa(i)+"]", child, depth+1, visit)
			}
		}
	}
}

func nested(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	default:
		return false
	}
}
