package management

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/move-hook/move-hook/pkg/graph"
)

const (
	// maxFile bounds a file of a folder, in bytes: larger than etcd takes by far.
	maxFile = 16 << 20
	// maxObjects bounds what a folder may hold.
	maxObjects = 500_000
)

// ReadDir reads a folder as `clusterctl move --to-directory` writes it, or any
// folder of YAML or JSON manifests (several documents in a file, Lists), or one
// such file. Of a folder only files ending in .yaml, .yml or .json count, and not
// those of folders inside it. What it holds counts as discovered by clusterctl and
// as completely listed. The error names the file; a file without any object is a
// Warning.
func ReadDir(path string) (*graph.Graph, []Warning, error) {
	files, err := manifests(path)
	if err != nil {
		return nil, nil, err
	}
	f := folder{seen: map[graph.ID]string{}}
	for _, file := range files {
		before := len(f.objects)
		if err := f.file(file); err != nil {
			return nil, nil, err
		}
		if len(f.objects) == before {
			f.warnings = append(f.warnings, Warning{What: file, Why: "it holds no object"})
		}
	}
	if len(f.objects) == 0 {
		return nil, nil, fmt.Errorf("%s holds no manifests: expected .yaml, .yml or .json files as `clusterctl move --to-directory` writes them", path)
	}
	g, err := f.build()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return g, f.warnings, nil
}

func manifests(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("reading the folder %s: %w", path, err)
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files, nil
}

type folder struct {
	objects  []graph.Object
	seen     map[graph.ID]string
	warnings []Warning
}

func (f *folder) file(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("reading a manifest: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return fmt.Errorf("%s: no manifest of Cluster API objects: it must be a regular file of at most %d MiB", path, maxFile>>20)
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading a manifest: %w", err)
	}
	defer file.Close() //nolint:errcheck // It was only read.
	next := documents(filepath.Ext(path), io.LimitReader(file, maxFile+1))
	for n := 1; ; n++ {
		content, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && content != nil { // nil: empty, or only comments
			err = f.document(path, content)
		}
		if err != nil {
			return fmt.Errorf("%s, document %d: %w", path, n, err)
		}
	}
}

// documents gives a function that returns one document after the other, then io.EOF.
func documents(ext string, r io.Reader) func() (map[string]any, error) {
	if ext == ".json" {
		d := json.NewDecoder(r)
		return func() (content map[string]any, err error) {
			err = d.Decode(&content)
			return content, err
		}
	}
	reader := yaml.NewYAMLReader(bufio.NewReader(r))
	return func() (content map[string]any, err error) {
		text, err := reader.Read()
		if err != nil {
			return nil, err
		}
		// sigs.k8s.io/yaml refuses documents whose aliases expand without bound.
		err = sigsyaml.Unmarshal(text, &content)
		return content, err
	}
}

func (f *folder) document(path string, content map[string]any) error {
	items, isList := content["items"].([]any)
	if kind, _ := content["kind"].(string); isList && strings.HasSuffix(kind, "List") {
		for i, item := range items {
			m, ok := item.(map[string]any)
			if !ok {
				return fmt.Errorf("items[%d] is not an object", i)
			}
			if err := f.document(path, m); err != nil {
				return fmt.Errorf("items[%d]: %w", i, err)
			}
		}
		return nil
	}
	o, err := graph.Extract(content)
	if err != nil {
		return err
	}
	if other, ok := f.seen[o.ID]; ok {
		return fmt.Errorf("%s is there twice, also in %s: remove one of them", o.ID, other)
	}
	if len(f.objects) >= maxObjects {
		return fmt.Errorf("the folder holds more than %d objects", maxObjects)
	}
	f.seen[o.ID] = path
	f.objects = append(f.objects, o)
	return nil
}

func (f *folder) build() (*graph.Graph, error) {
	var b graph.Builder
	kinds := map[graph.GroupKind]graph.KindInfo{}
	for _, o := range f.objects {
		k := kinds[o.GroupKind()]
		kinds[o.GroupKind()] = graph.KindInfo{
			GroupKind: o.GroupKind(), APIVersion: o.APIVersion,
			Namespaced: k.Namespaced || o.Namespace != "", Discovered: true,
			ForceMove: graph.ForceMoves(o.GroupKind()), ForceMoveHierarchy: graph.ForceMoves(o.GroupKind()),
		}
	}
	for _, o := range f.objects {
		for i, ref := range o.Refs {
			if k, ok := kinds[ref.To.GroupKind()]; ok && !k.Namespaced {
				o.Refs[i].To.Namespace = ""
			}
		}
		b.Add(o)
	}
	for gk, k := range kinds {
		b.Kind(k)
		b.Listed(gk, "")
	}
	return b.Build()
}
