package interrupt

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/test/stack"
)

// State is one side of a pivot: what every object is, without UIDs, times and
// status, and the same in every namespace.
type State map[string]string

// StateOf reads the state of a namespace.
func StateOf(ctx context.Context, m stack.API, namespace string) (State, error) {
	owners, err := stack.OwnerGraph(ctx, m, namespace)
	if err != nil {
		return nil, err
	}
	objects, err := stack.ReadAll(ctx, m, namespace)
	if err != nil {
		return nil, err
	}
	s := State{}
	for _, o := range objects {
		id := o.GroupVersionKind().GroupKind().String() + "/" + o.GetName()
		for name := range owners {
			if strings.HasSuffix(name, "/"+o.GetName()) && strings.HasPrefix(name, o.GetKind()) {
				id = name
			}
		}
		content := map[string]any{"owners": owners[id], "labels": o.GetLabels(), "annotations": o.GetAnnotations(), "finalizers": o.GetFinalizers(),
			"deleting": o.GetDeletionTimestamp() != nil, "spec": o.Object["spec"], "data": o.Object["data"], "type": o.Object["type"]}
		if IsRecord(o) {
			// Its content has the UIDs of one copy, and the time of its end.
			if _, closed := o.GetAnnotations()[graph.AdoptedAnnotation]; closed {
				continue
			}
			content = map[string]any{"owners": owners[id]}
		}
		text, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		s[id] = strings.ReplaceAll(string(text), namespace, "NAMESPACE")
	}
	return s, nil
}

// IsRecord says whether the object is a record of move-hook's.
func IsRecord(o *unstructured.Unstructured) bool {
	_, ok := o.GetLabels()[graph.RecordLabel]
	return ok
}

// Same is an error that begins with what is not so, if the states differ.
func Same(what string, want, have State) error {
	if diff := cmp.Diff(want, have); diff != "" {
		return fmt.Errorf("%s (- wanted, + there):\n%s", what, diff)
	}
	return nil
}
