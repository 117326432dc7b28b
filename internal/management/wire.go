package management

import (
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/graph"
)

// wireObject is the JSON of one object of a list, without what nobody reads.
type wireObject struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   wireMeta       `json:"metadata"`
	Spec       map[string]any `json:"spec"`
	// Status is decoded in a second step: most of it is conditions.
	Status map[string]json.RawMessage `json:"status"`
}

// wireMeta is metadata without managedFields, which often are half of an object.
type wireMeta struct {
	metav1.ObjectMeta
	ManagedFields ignored `json:"managedFields"`
}

type ignored struct{}

// UnmarshalJSON takes anything and keeps nothing.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

// bulky are fields of a status that no fact comes from.
var bulky = map[string]bool{"conditions": true, "deprecated": true, "v1beta2": true, "addresses": true}

// object gives what graph.Extract gives for the same object.
func (w *wireObject) object(k graph.KindInfo) (graph.Object, error) {
	o := fromMetadata(k, &w.Metadata.ObjectMeta)
	status := make(map[string]any, len(w.Status))
	for field, raw := range w.Status {
		if bulky[field] {
			continue
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			return o, fmt.Errorf("%s: status.%s: %w", o.ID, field, err)
		}
		status[field] = v
	}
	whole, err := graph.Extract(map[string]any{
		"apiVersion": k.APIVersion, "kind": k.Kind,
		"metadata": map[string]any{"name": o.Name, "namespace": o.Namespace},
		"spec":     w.Spec, "status": status,
	})
	o.Refs, o.Hints, o.Facts = whole.Refs, whole.Hints, whole.Facts
	return o, err
}

// decodeList reads the JSON of a list item by item and returns its continue token.
func decodeList(r io.Reader, each func(*wireObject) error) (more string, err error) {
	d := json.NewDecoder(r)
	if err := expect(d, json.Delim('{')); err != nil {
		return "", err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return "", fmt.Errorf("reading a list: %w", err)
		}
		switch key {
		case "items":
			err = decodeItems(d, each)
		case "metadata":
			var m metav1.ListMeta
			err = d.Decode(&m)
			more = m.Continue
		default:
			err = d.Decode(&ignored{})
		}
		if err != nil {
			return "", fmt.Errorf("reading %s of a list: %w", key, err)
		}
	}
	return more, expect(d, json.Delim('}'))
}

func decodeItems(d *json.Decoder, each func(*wireObject) error) error {
	if err := expect(d, json.Delim('[')); err != nil {
		return err
	}
	for d.More() {
		var w wireObject
		if err := d.Decode(&w); err != nil {
			return err
		}
		if err := each(&w); err != nil {
			return err
		}
	}
	return expect(d, json.Delim(']'))
}

func expect(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if err != nil {
		return fmt.Errorf("reading a list: %w", err)
	}
	if got != want {
		return fmt.Errorf("reading a list: the server sent %v where %v was expected", got, want)
	}
	return nil
}
