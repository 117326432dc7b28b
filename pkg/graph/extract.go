package graph

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxDepth bounds how deep a spec is searched for references: deeper than any
// API type, shallow enough for hostile input.
const maxDepth = 64

// Extract reads the decoded JSON or YAML of one object, whole or metadata only,
// in any API version. Data of Secrets is not looked at. The error names the
// object and the field.
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
		return o, fmt.Errorf("%s without metadata.name", kind)
	}
	o.UID = types.UID(str(meta["uid"]))
	o.ResourceVersion = str(meta["resourceVersion"])
	o.Deleting = meta["deletionTimestamp"] != nil
	if s := str(meta["creationTimestamp"]); s != "" {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return o, fmt.Errorf("%s: metadata.creationTimestamp %q is no RFC 3339 time", o.ID, s)
		}
		o.Created = t
	}
	var err error
	if o.Labels, err = strMap(meta["labels"]); err != nil {
		return o, fmt.Errorf("%s: metadata.labels: %w", o.ID, err)
	}
	if o.Annotations, err = strMap(meta["annotations"]); err != nil {
		return o, fmt.Errorf("%s: metadata.annotations: %w", o.ID, err)
	}
	for _, f := range list(meta["finalizers"]) {
		o.Finalizers = append(o.Finalizers, str(f))
	}
	if o.Owners, err = owners(meta["ownerReferences"]); err != nil {
		return o, fmt.Errorf("%s: metadata.ownerReferences: %w", o.ID, err)
	}
	if o.GroupKind() == Secret {
		delete(o.Annotations, LastAppliedAnnotation) // strMap made a copy
		return o, nil
	}
	spec, _ := content["spec"].(map[string]any)
	status, _ := content["status"].(map[string]any)
	o.Refs = refsOf(o.ID, spec)
	o.Facts = factsOf(o.ID, spec, status)
	return o, nil
}

func owners(v any) ([]metav1.OwnerReference, error) {
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

// refsOf finds the references of a spec: by shape, {apiVersion or apiGroup, kind,
// name and maybe namespace}, as both v1beta1 and v1beta2 and every provider write
// them, and by the fields that hold only a name. Sorted by field.
func refsOf(id ID, spec map[string]any) []Ref {
	var out []Ref
	walk("spec", spec, 0, func(field string, m map[string]any) {
		kind, name := str(m["kind"]), str(m["name"])
		group, hasGroup := m["apiGroup"].(string)
		version, hasVersion := m["apiVersion"].(string)
		if kind == "" || name == "" || (!hasGroup && !hasVersion) {
			return
		}
		if !hasGroup {
			group = GroupOf(version)
		}
		namespace := id.Namespace
		if ns := str(m["namespace"]); ns != "" {
			namespace = ns
		}
		out = append(out, Ref{field, ID{group, kind, namespace, name}})
	})
	add := func(field string, gk GroupKind, namespace, name string) {
		if name != "" {
			out = append(out, Ref{field, ID{gk.Group, gk.Kind, namespace, name}})
		}
	}
	if bootstrap, ok := dig(spec, "bootstrap").(map[string]any); ok {
		add(FieldDataSecret, Secret, id.Namespace, str(bootstrap["dataSecretName"]))
	}
	if id.GroupKind() != Cluster {
		add(FieldClusterName, Cluster, id.Namespace, str(spec["clusterName"]))
	}
	switch id.GroupKind() {
	case Cluster:
		name, ns := str(dig(spec, "topology", "classRef", "name")), str(dig(spec, "topology", "classRef", "namespace"))
		if name == "" { // v1beta1
			name, ns = str(dig(spec, "topology", "class")), str(dig(spec, "topology", "classNamespace"))
		}
		if ns == "" {
			ns = id.Namespace
		}
		add(FieldClassRef, ClusterClass, ns, name)
	case ClusterResourceSet:
		for i, r := range list(spec["resources"]) {
			m, _ := r.(map[string]any)
			if kind := str(m["kind"]); kind == Secret.Kind || kind == ConfigMap.Kind {
				add(fmt.Sprintf("spec.resources[%d]", i), GroupKind{Kind: kind}, id.Namespace, str(m["name"]))
			}
		}
	}
	slices.SortFunc(out, func(a, b Ref) int {
		if a.Field != b.Field {
			if a.Field < b.Field {
				return -1
			}
			return 1
		}
		return a.To.Compare(b.To)
	})
	return slices.Compact(out)
}

// walk visits every map below v with its path.
func walk(path string, v any, depth int, visit func(string, map[string]any)) {
	if depth > maxDepth {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		visit(path, v)
		for k, child := range v {
			walk(path+"."+k, child, depth+1, visit)
		}
	case []any:
		for i, child := range v {
			walk(fmt.Sprintf("%s[%d]", path, i), child, depth+1, visit)
		}
	}
}

func factsOf(id ID, spec, status map[string]any) Facts {
	f := Facts{
		Replicas:       integer(spec["replicas"]),
		Version:        str(spec["version"]),
		ProviderID:     str(spec["providerID"]),
		DataSecretName: str(status["dataSecretName"]),
	}
	if f.Version == "" {
		f.Version = str(dig(spec, "template", "spec", "version"))
	}
	f.Selector, _ = strMap(dig(spec, "selector", "matchLabels"))
	switch id.GroupKind() {
	case Machine:
		f.NodeName = str(dig(status, "nodeRef", "name"))
	case Cluster:
		f.Paused, _ = spec["paused"].(bool)
		f.Topology = dig(spec, "topology") != nil
		f.InfrastructureProvisioned, _ = dig(status, "initialization", "infrastructureProvisioned").(bool)
		if ready, ok := status["infrastructureReady"].(bool); ok && ready { // v1beta1
			f.InfrastructureProvisioned = true
		}
		host, port := str(dig(spec, "controlPlaneEndpoint", "host")), integer(dig(spec, "controlPlaneEndpoint", "port"))
		if host != "" && port != nil {
			f.Endpoint = fmt.Sprintf("%s:%d", host, *port)
		}
	}
	if id.Group == ControlPlaneGroup {
		f.ExternalEtcd = dig(spec, "kubeadmConfigSpec", "clusterConfiguration", "etcd", "external") != nil
	}
	return f
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

// integer takes what JSON and YAML decoders make of a number.
func integer(v any) *int64 {
	var n int64
	switch v := v.(type) {
	case int64:
		n = v
	case int:
		n = int64(v)
	case float64:
		n = int64(v)
	default:
		return nil
	}
	return &n
}

// strMap copies a map of strings.
func strMap(v any) (map[string]string, error) {
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
