package report

import (
	"bytes"
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
	// JUnit is for what shows the results of tests.
	JUnit Format = "junit"
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
	if doc, ok := v.(GraphDocument); ok && f == JSON {
		return encodeGraph(w, doc)
	}
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

// encodeGraph writes object by object what Encode would write from one text, which
// for a large graph is larger than all the rest of the process.
func encodeGraph(w io.Writer, doc GraphDocument) error {
	objects := doc.Objects
	doc.Objects = []GraphObject{}
	frame, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	head, tail, _ := bytes.Cut(frame, []byte("[]")) // Objects is the first field.
	var out bytes.Buffer
	out.Write(head)
	out.WriteByte('[')
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("    ", "  ")
	for i := range objects {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n    ")
		if err := encoder.Encode(&objects[i]); err != nil {
			return err
		}
		out.Truncate(out.Len() - 1) // Encode ends the line.
		if out.Len() > 1<<16 {
			if _, err := out.WriteTo(w); err != nil {
				return err
			}
		}
	}
	if len(objects) > 0 {
		out.WriteString("\n  ")
	}
	out.WriteByte(']')
	out.Write(tail)
	out.WriteByte('\n')
	_, err = out.WriteTo(w)
	return err
}
