package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Format is an output format, the value of -o.
type Format string

const (
	// Text is for people: a table, a list, whatever fits the result.
	Text Format = ""
	// Tree and Table are the two ways to read a graph.
	Tree  Format = "tree"
	Table Format = "table"
	// JSON and YAML have the same fields, which are stable.
	JSON Format = "json"
	YAML Format = "yaml"
)

// ParseFormat accepts one of the formats by name. The error lists them.
func ParseFormat(name string, known ...Format) (Format, error) {
	if f := Format(name); slices.Contains(known, f) {
		return f, nil
	}
	var names []string
	for _, f := range known {
		if f != Text {
			names = append(names, string(f))
		}
	}
	return "", fmt.Errorf("unknown output format %q: there are %s", name, strings.Join(names, ", "))
}

// Encode writes v as JSON or YAML. Both come from the JSON tags of v's type, so
// they have the same fields.
func Encode(w io.Writer, f Format, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if f == YAML {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
	}
	_, err = w.Write(text)
	return err
}
