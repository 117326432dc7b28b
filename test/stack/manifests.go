package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
)

// provider is one of upstream's providers as `clusterctl init` would install
// it, except that its manager runs as a process and not in a Pod.
type provider struct {
	name      string // as in clusterctl's inventory
	kind      clusterctlv1.ProviderType
	namespace string
	account   string // the ServiceAccount whose rights its manager has
	binary    string // empty: it runs in the cloud's process
	module    string // whose sources hold the manifests
	folder    string
}

var providers = []provider{
	{"cluster-api", clusterctlv1.CoreProviderType, "capi-system", "capi-manager",
		capiCore, capiModule, "core/config/default"},
	{"kubeadm", clusterctlv1.BootstrapProviderType, "capi-kubeadm-bootstrap-system", "capi-kubeadm-bootstrap-manager",
		capiBootstrap, capiModule, "bootstrap/kubeadm/config/default"},
	{"kubeadm", clusterctlv1.ControlPlaneProviderType, "capi-kubeadm-control-plane-system", "capi-kubeadm-control-plane-manager",
		capiControlPlane, capiModule, "controlplane/kubeadm/config/default"},
	{"docker", clusterctlv1.InfrastructureProviderType, "capd-system", "capd-manager",
		"", devProviderModule, "infrastructure/docker/config/default"},
}

// label is how clusterctl names the provider in its inventory.
func (p provider) label() string { return clusterctlv1.ManifestLabel(p.name, p.kind) }

func (p provider) manifest() string { return p.label() + ".json" }

// inventoryCRDs is where Cluster API keeps the CRDs that `clusterctl init` adds by itself.
const inventoryCRDs = "cmd/clusterctl/config/crd/bases"

// manifest is what render writes and load reads: a provider's version and its
// objects. JSON, because parsing three megabytes of YAML takes seconds.
type manifest struct {
	Version string                       `json:"version"`
	Objects []*unstructured.Unstructured `json:"objects"`
}

func (b *builder) render(ctx context.Context, p provider, path string) error {
	dir := b.pins
	if p.module == devProviderModule {
		dir = filepath.Dir(b.source)
	}
	source, err := b.download(ctx, dir, p.module)
	if err != nil {
		return err
	}
	rendered, err := b.output(ctx, source.Dir, b.path(kubectl), "kustomize", filepath.Join(source.Dir, p.folder))
	if err != nil {
		return err
	}
	m := manifest{Version: source.Version}
	if m.Objects, err = parse(rendered); err != nil {
		return err
	}
	if p.kind == clusterctlv1.CoreProviderType {
		files, err := filepath.Glob(filepath.Join(source.Dir, inventoryCRDs, "*.yaml"))
		if err != nil {
			return err
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			objects, err := parse(data)
			if err != nil {
				return err
			}
			m.Objects = append(m.Objects, objects...)
		}
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

func parse(yaml []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(yaml), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("reading a rendered manifest: %w", err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

func (t *tools) load(p provider) (*manifest, error) {
	data, err := os.ReadFile(t.path(p.manifest()))
	if err != nil {
		return nil, err
	}
	m := &manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("reading %s: %w", t.path(p.manifest()), err)
	}
	return m, nil
}
