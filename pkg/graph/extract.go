package graph

import (
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Extract reads the decoded JSON or YAML of one object, whole or metadata only,
// in any API version. content is not changed and nothing of it is kept: maps and
// lists are copied. Data of Secrets is not looked at. What has no meaning here is
// ignored; what has one and the wrong type is an error that names object and field.
func Extract(content map[string]any) (Object, error) {
	var o Object
	apiVersion, kind := str(content["apiVersion"]), str(content["kind"])
	meta, ok := content["metadata"].(map[string]any)
	if kind == "" || apiVersion == "" || !ok {
		return o, fmt.Errorf("no Kubernetes object: it needs apiVersion, kind and metadata (has apiVersion %q, kind %q)", apiVersion, kind)
	}
	o.APIVersion = apiVersion
	o.ID = ID{GroupOf(apiVersion), kind, str(meta["namespace"]), str(meta["name"])}
	if o.Name == "" {
		return Object{}, fmt.Errorf("%s without metadata.name", kind)
	}
	if err := o.readMetadata(meta); err != nil {
		return Object{}, fmt.Errorf("%s: metadata.%w", o.ID, err)
	}
	if o.GroupKind() == Secret {
		delete(o.Annotations, LastAppliedAnnotation) // stringMap made a copy.
		secretType := str(content["type"])
		o.Facts.UserSecret = secretType != "" && secretType != ClusterSecretType
		return o, nil
	}
	spec, _ := content["spec"].(map[string]any)
	status, _ := content["status"].(map[string]any)
	o.Refs, o.Hints = refsOf(o.ID, spec), hintsOf(o.ID, spec)
	o.Facts = factsOf(o.ID, spec, status)
	return o, nil
}

// readMetadata takes over what is under metadata; its errors begin with the field.
func (o *Object) readMetadata(meta map[string]any) error {
	for _, field := range []string{"namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"} {
		if v := meta[field]; v != nil {
			if _, ok := v.(string); !ok {
				return fmt.Errorf("%s is not a string", field)
			}
		}
	}
	o.UID = types.UID(str(meta["uid"]))
	o.ResourceVersion = str(meta["resourceVersion"])
	o.Deleting = str(meta["deletionTimestamp"]) != ""
	if s := str(meta["creationTimestamp"]); s != "" {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return fmt.Errorf("creationTimestamp %q is no RFC 3339 time", s)
		}
		o.Created = t
	}
	var err error
	if o.Labels, err = stringMap(meta["labels"]); err != nil {
		return fmt.Errorf("labels: %w", err)
	}
	if o.Annotations, err = stringMap(meta["annotations"]); err != nil {
		return fmt.Errorf("annotations: %w", err)
	}
	if o.Finalizers, err = stringList(meta["finalizers"]); err != nil {
		return fmt.Errorf("finalizers: %w", err)
	}
	if o.Owners, err = ownersOf(meta["ownerReferences"]); err != nil {
		return fmt.Errorf("ownerReferences: %w", err)
	}
	return nil
}

func ownersOf(v any) ([]metav1.OwnerReference, error) {
	if v == nil {
		return nil, nil
	}
	items, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("not a list")
	}
	var out []metav1.OwnerReference
	for i, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("[%d] is not an object", i)
		}
		if _, isString := m["uid"].(string); !isString && m["uid"] != nil {
			return nil, fmt.Errorf("[%d].uid is not a string", i)
		}
		ref := metav1.OwnerReference{
			APIVersion: str(m["apiVersion"]), Kind: str(m["kind"]), Name: str(m["name"]), UID: types.UID(str(m["uid"])),
			Controller: flag(m["controller"]), BlockOwnerDeletion: flag(m["blockOwnerDeletion"]),
		}
		if ref.Kind == "" || ref.Name == "" {
			return nil, fmt.Errorf("[%d] has no kind or no name", i)
		}
		out = append(out, ref)
	}
	return out, nil
}

func dig(v any, path ...string) any {
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func flag(v any) *bool {
	b, ok := v.(bool)
	if !ok {
		return nil
	}
	return &b
}

// integer takes what JSON and YAML decoders make of a whole number; nil for anything else.
func integer(v any) *int64 {
	var n int64
	switch v := v.(type) {
	case int64:
		n = v
	case int:
		n = int64(v)
	case float64:
		// 2^53: beyond it a float64 does not say which whole number was meant.
		if v < -1<<53 || v > 1<<53 || v != float64(int64(v)) {
			return nil
		}
		n = int64(v)
	default:
		return nil
	}
	return &n
}

// stringMap copies a map of strings.
func stringMap(v any) (map[string]string, error) {
	switch m := v.(type) {
	case nil:
		return nil, nil
	case map[string]string:
		return maps.Clone(m), nil
	case map[string]any:
		out := make(map[string]string, len(m))
		for k, v := range m {
			s, ok := v.(string)
			if !ok {
				return nil, fmt.Errorf("%q is not a string", k)
			}
			out[k] = s
		}
		return out, nil
	default:
		return nil, fmt.Errorf("not a map")
	}
}

// stringList copies a list of strings.
func stringList(v any) ([]string, error) {
	if v == nil {
		return nil, nil
	}
	items, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("not a list")
	}
	var out []string
	for i, item := range items {
		s, ok := item.(string)
		if !ok {
			return nil, fmt.Errorf("[%d] is not a string", i)
		}
		out = append(out, s)
	}
	return out, nil
}
