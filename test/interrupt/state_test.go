package interrupt_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/test/stack"
)

// state is one side: what every object is, without UIDs, times and status, and the
// same in every namespace.
type state map[string]string

func (tr *trial) state(t *testing.T, m *stack.Management) state {
	t.Helper()
	owners := stack.Must(stack.OwnerGraph(t.Context(), m, tr.namespace))(t)
	s := state{}
	for _, o := range stack.Must(stack.ReadAll(t.Context(), m, tr.namespace))(t) {
		id := o.GroupVersionKind().GroupKind().String() + "/" + o.GetName()
		for name := range owners {
			if strings.HasSuffix(name, "/"+o.GetName()) && strings.HasPrefix(name, o.GetKind()) {
				id = name
			}
		}
		content := map[string]any{"owners": owners[id], "labels": o.GetLabels(), "annotations": o.GetAnnotations(), "finalizers": o.GetFinalizers(),
			"deleting": o.GetDeletionTimestamp() != nil, "spec": o.Object["spec"], "data": o.Object["data"], "type": o.Object["type"]}
		if isRecord(o) {
			// Its content has the UIDs of one copy, and the time of its end.
			if _, closed := o.GetAnnotations()[graph.AdoptedAnnotation]; closed {
				continue
			}
			content = map[string]any{"owners": owners[id]}
		}
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		s[id] = strings.ReplaceAll(string(text), tr.namespace, "NAMESPACE")
	}
	return s
}

func isRecord(o *unstructured.Unstructured) bool {
	_, ok := o.GetLabels()[graph.RecordLabel]
	return ok
}
