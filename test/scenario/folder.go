package scenario

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/move-hook/move-hook/pkg/graph"
)

// FolderIDs are the objects in a folder of `clusterctl move --to-directory`, sorted,
// read without the product's help. An empty folder is an error.
func FolderIDs(dir string) ([]graph.ID, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("clusterctl wrote nothing")
	}
	var ids []graph.ID
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			return nil, err
		}
		o := &metav1.PartialObjectMetadata{}
		if err := yaml.Unmarshal(text, o); err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		gvk := o.GroupVersionKind()
		ids = append(ids, graph.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.Namespace, Name: o.Name})
	}
	slices.SortFunc(ids, graph.ID.Compare)
	return ids, nil
}
