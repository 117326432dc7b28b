package prefill

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Values of specs are handled as the maps that JSON makes of them: a difference is
// then a path, and a field that nobody here knows is carried along.
type values = map[string]any

// valuesOf is a typed value as a map. The API's types always have a JSON form.
func valuesOf(typed any) values {
	text, err := json.Marshal(typed)
	if err != nil {
		panic(fmt.Sprintf("%T has no JSON form: %v", typed, err))
	}
	out := values{}
	if err := utiljson.Unmarshal(text, &out); err != nil {
		panic(fmt.Sprintf("%T is no JSON object: %v", typed, err))
	}
	return out
}

func clone(v values) values { return runtime.DeepCopyJSON(v) }

// compact drops what is empty: upstream's comparison makes no difference between
// that and absent (filters.go, dropOmittableFields), but for taints.
func compact(v values) values {
	out := values{}
	for k, x := range v {
		switch x := x.(type) {
		case nil:
		case values:
			if inner := compact(x); len(inner) > 0 {
				out[k] = inner
			}
		case []any:
			if len(x) > 0 || k == "taints" {
				out[k] = x
			}
		case string:
			if x != "" {
				out[k] = x
			}
		default:
			out[k] = x
		}
	}
	return out
}

// within gives the map in a field, empty if there is none.
func within(v values, path ...string) values {
	for _, key := range path {
		next, _ := v[key].(values)
		v = next
	}
	return v
}

// without is a copy that lacks fields.
func without(v values, keys ...string) values {
	v = clone(v)
	for _, k := range keys {
		delete(v, k)
	}
	return v
}

// text is one line for a value, and the same for equal values.
func text(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(out)
}

// difference is a field that has two values; nil is absent.
type difference struct {
	path       string
	have, want any
}

// differences compares field by field, lists as a whole. Sorted by path.
func differences(path string, have, want values) []difference {
	var out []difference
	for _, k := range union(have, want) {
		at := path + "." + k
		h, w := have[k], want[k]
		hm, hok := h.(values)
		wm, wok := w.(values)
		switch {
		case hok && wok:
			out = append(out, differences(at, hm, wm)...)
		case text(h) != text(w):
			out = append(out, difference{at, h, w})
		}
	}
	return out
}

func union(all ...values) []string {
	seen := map[string]bool{}
	for _, m := range all {
		for k := range m {
			seen[k] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// shown is a value for people. What may hold credentials is counted, not shown.
func shown(path string, v any) string {
	if v == nil {
		return ""
	}
	for _, hidden := range []string{"files", "users", "bootstrapTokens", "token", "discovery", "Commands", "ontent"} {
		if !strings.Contains(path, hidden) {
			continue
		}
		if list, ok := v.([]any); ok {
			return fmt.Sprintf("%d entries", len(list))
		}
		return "set"
	}
	const enough = 160
	s := text(v)
	if plain, ok := v.(string); ok {
		s = plain
	}
	if len(s) > enough {
		s = s[:enough] + "…"
	}
	return s
}
