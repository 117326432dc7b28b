package rollout

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/move-hook/move-hook/pkg/adopt"
)

// longest is how much of a value is printed.
const longest = 120

// differences lists the fields in which two specs differ, each with both values,
// under their names in the API. have is the Machine's, want the control plane's.
func differences(have, want *bootstrapv1.KubeadmConfigSpec) []adopt.RolloutReason {
	var r reporter
	cmp.Equal(*have, *want, cmp.Reporter(&r))
	return r.found
}

// reporter is a cmp.Reporter that keeps the leaves that differ.
type reporter struct {
	path  cmp.Path
	found []adopt.RolloutReason
}

// PushStep is called by cmp.
func (r *reporter) PushStep(s cmp.PathStep) { r.path = append(r.path, s) }

// PopStep is called by cmp.
func (r *reporter) PopStep() { r.path = r.path[:len(r.path)-1] }

// Report is called by cmp for every leaf.
func (r *reporter) Report(result cmp.Result) {
	if result.Equal() {
		return
	}
	have, want := r.path.Last().Values()
	r.found = append(r.found, adopt.RolloutReason{
		Field: fieldConfigSpec + fieldOf(r.path), Have: value(have), Want: value(want),
		Message: "the KubeadmConfig differs from the control plane's",
	})
}

// fieldOf writes a path in the names that the API uses.
func fieldOf(path cmp.Path) string {
	var b strings.Builder
	for i, step := range path {
		switch step := step.(type) {
		case cmp.StructField:
			b.WriteString("." + jsonName(path[i-1].Type(), step.Index()))
		case cmp.SliceIndex:
			have, want := step.SplitKeys()
			b.WriteString("[" + strconv.Itoa(max(have, want)) + "]")
		case cmp.MapIndex:
			fmt.Fprintf(&b, "[%v]", step.Key())
		}
	}
	return b.String()
}

func jsonName(t reflect.Type, index int) string {
	f := t.Field(index)
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return f.Name
	}
	return name
}

// value prints one side of a difference; empty where that side has nothing.
func value(v reflect.Value) string {
	if !v.IsValid() || !v.CanInterface() {
		return ""
	}
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice && v.IsNil() || v.Kind() == reflect.Map && v.IsNil() {
		return ""
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return "<" + v.Type().String() + ">"
	}
	if s := string(text); len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(string(text[:longest]), "") + "..."
}
