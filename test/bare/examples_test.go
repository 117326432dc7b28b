package bare_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/test/stack"
)

// TestPreflight_OfUpstreamsExamples applies the examples that the docker and
// in-memory providers ship, with the owner references that upstream's controllers
// give them: no instance has been made for them yet, and else there is nothing to say.
func TestPreflight_OfUpstreamsExamples(t *testing.T) {
	admin := open(t, nil)
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api/test").Output()
	if err != nil {
		t.Fatal(err)
	}
	shipped := func(patterns ...string) (files []string) {
		for _, pattern := range patterns {
			files = append(files, stack.Must(filepath.Glob(filepath.Join(strings.TrimSpace(string(module)), pattern)))(t)...)
		}
		return files
	}
	const provider, e2e = "infrastructure/docker/", "e2e/data/infrastructure-docker/main/"
	examples := shipped(provider+"examples/*.yaml", provider+"templates/cluster-template*.yaml",
		e2e+"cluster-template*.yaml", e2e+"cluster-template*/kustomization.yaml", e2e+"cluster-template*/step*/kustomization.yaml")
	classes := shipped(provider+"templates/clusterclass*.yaml", e2e+"clusterclass*.yaml", e2e+"clusterclass*/kustomization.yaml")
	if len(examples) < 25 || len(classes) < 6 {
		t.Fatalf("only %d examples and %d ClusterClasses: upstream has put them elsewhere", len(examples), len(classes))
	}
	for i, path := range examples {
		name := strings.TrimSuffix(strings.TrimSuffix(path, "/kustomization.yaml"), ".yaml")
		t.Run(filepath.Base(name), func(t *testing.T) {
			p := patient{t: t, admin: admin, ns: fmt.Sprintf("example-%d", i)}
			p.applyExample(path, classes)
			for _, f := range p.findings() {
				switch f.ID {
				case "InfrastructureNotProvisioned", "ControlPlaneNotInitialized", "MachineWithoutNode", "InFlight":
				default:
					t.Errorf("%s %s: %s", f.ID, f.Object, f.Message)
				}
			}
		})
	}
}

// applyExample creates what a user applies, with the ClusterClass that it names, and
// gives each object the owner that upstream's controllers give it.
func (p patient) applyExample(path string, classes []string) {
	p.t.Helper()
	objects := p.example(path)
	owners := map[string]graph.ID{} // by kind and name, where it is not the Cluster
	class, _, _ := unstructured.NestedString(only(objects, "Cluster").Object, "spec", "topology", "classRef", "name")
	for _, file := range classes {
		of := p.example(file)
		if c := only(of, "ClusterClass"); class == "" || c.GetName() != class {
			continue
		}
		for _, o := range of {
			owners[o.GetKind()+o.GetName()] = p.id(graph.ClusterClass, class)
		}
		objects = append(of, objects...)
		break
	}
	if pool := only(objects, "MachinePool"); pool != nil {
		for _, path := range [][]string{{"spec", "template", "spec", "bootstrap", "configRef"}, {"spec", "template", "spec", "infrastructureRef"}} {
			ref, _, _ := unstructured.NestedStringMap(pool.Object, path...)
			owners[ref["kind"]+ref["name"]] = p.id(graph.MachinePool, pool.GetName())
		}
	}
	if set := only(objects, "ClusterResourceSet"); set != nil {
		owners["ConfigMap"+only(objects, "ConfigMap").GetName()] = p.id(graph.ClusterResourceSet, set.GetName())
	}
	create(p.t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.ns}})
	for _, o := range objects {
		create(p.t, o)
	}
	for _, o := range objects {
		if slices.Contains([]string{"Cluster", "ClusterClass", "ClusterResourceSet"}, o.GetKind()) {
			continue
		}
		owner, ok := owners[o.GetKind()+o.GetName()]
		if !ok {
			owner = p.id(graph.Cluster, only(objects, "Cluster").GetName())
		}
		p.own(p.id(graph.GroupKind{Group: o.GroupVersionKind().Group, Kind: o.GetKind()}, o.GetName()), by(p.t, p.admin, owner))
	}
}

// only is the first object of a kind, nil if there is none.
func only(objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	for _, o := range objects {
		if o.GetKind() == kind {
			return o
		}
	}
	return nil
}

// example reads a manifest, or the kustomization of its folder, as `clusterctl
// generate` does.
func (p patient) example(path string) []*unstructured.Unstructured {
	p.t.Helper()
	raw, err := os.ReadFile(path)
	if folder, ok := strings.CutSuffix(path, "/kustomization.yaml"); ok {
		raw, err = exec.CommandContext(p.t.Context(), world.Kubectl(), "kustomize", "--load-restrictor", "LoadRestrictionsNone", folder).Output()
	}
	if err == nil {
		raw, err = yamlprocessor.NewSimpleProcessor().Process(raw, p.exampleValue)
	}
	if err != nil {
		p.t.Fatal(path, err)
	}
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			p.t.Fatal(path, err)
		}
		if len(o.Object) > 0 {
			o.SetNamespace(p.ns)
			objects = append(objects, o)
		}
	}
}

// exampleValue is for the variables of the examples that have no default; what
// preflight does not read may say anything.
func (p patient) exampleValue(name string) (string, error) {
	value, ok := map[string]string{
		"NAMESPACE": p.ns, "CLUSTER_NAME": "c", "KUBERNETES_VERSION": "v1.36.3",
		"CONTROL_PLANE_MACHINE_COUNT": "1", "WORKER_MACHINE_COUNT": "1",
		"MD_MAX_UNAVAILABLE": "1", "MD_MAX_SURGE": "1", "KUBEADM_CONTROL_PLANE_MAX_SURGE": "1",
		"DOCKER_POD_CIDRS": "192.168.0.0/16", "DOCKER_SERVICE_CIDRS": "10.128.0.0/12",
		"DOCKER_POD_IPV6_CIDRS": "fd00:100:96::/48", "DOCKER_SERVICE_IPV6_CIDRS": "fd00:100:64::/108",
		"DOCKER_SERVICE_DOMAIN": "cluster.local", "CNI_RESOURCES": `{"data": "cni"}`, "EXTENSION_CONFIG_NAME": "extension",
		// Of scripts that run on the instances.
		"version": "", "arch": "", "url": "", "TOKEN": "", "SERVER": "", "BASE_URL": "",
	}[name]
	if !ok {
		return "", fmt.Errorf("%s is not set", name)
	}
	return value, nil
}
