package management

import (
	"bufio"
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
// folder of YAML or JSON manifests (several documents in a file, Lists). Only
// files ending in .yaml, .yml or .json count; folders inside it do not. What the
// folder holds counts as discovered by clusterctl and as completely listed. The
// error names the file.
func ReadDir(path string) (*graph.Graph, []Warning, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the folder %s: %w", path, err)
	}
	f := folder{seen: map[graph.ID]string{}}
	for _, e := range entries {
		if e.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			continue
		}
		if err := f.file(filepath.Join(path, e.Name())); err != nil {
			return nil, nil, err
		}
	}
	if len(f.seen) == 0 {
		return nil, nil, fmt.Errorf("the folder %s holds no manifests: expected .yaml, .yml or .json files as `clusterctl move --to-directory` writes them", path)
	}
	g, err := f.build()
	if err != nil {
		return nil, nil, fmt.Errorf("the folder %s: %w", path, err)
	}
	return g, f.warnings, nil
}

type folder struct {
	objects  []graph.Object
	seen     map[graph.ID]string
	warnings []Warning
}

func (f *folder) file(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading a manifest: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() > maxFile {
		return fmt.Errorf("%s: larger than %d MiB: no manifest of a Cluster API object is", path, maxFile>>20)
	}
	documents := yaml.NewYAMLReader(bufio.NewReader(io.LimitReader(file, maxFile)))
	for n := 1; ; n++ {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s, document %d: %w", path, n, err)
		}
		if strings.TrimSpace(string(text)) == "" {
			continue
		}
		var content map[string]any
		// sigs.k8s.io/yaml refuses documents whose aliases expand without bound.
		if err := sigsyaml.Unmarshal(text, &content); err != nil {
			return fmt.Errorf("%s, document %d: %w", path, n, err)
		}
		if content == nil {
			continue // only comments
		}
		if err := f.document(path, content); err != nil {
			return fmt.Errorf("%s, document %d: %w", path, n, err)
		}
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
		b.Add(o)
		k := kinds[o.GroupKind()]
		kinds[o.GroupKind()] = graph.KindInfo{
			GroupKind: o.GroupKind(), APIVersion: o.APIVersion,
			Namespaced: k.Namespaced || o.Namespace != "", Discovered: true,
			ForceMove: graph.ForceMoves(o.GroupKind()), ForceMoveHierarchy: graph.ForceMoves(o.GroupKind()),
		}
	}
	for gk, k := range kinds {
		b.Kind(k)
		b.Listed(gk, "")
	}
	return b.Build()
}
