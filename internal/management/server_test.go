package management

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/move-hook/move-hook/pkg/graph"
)

// apiServer answers as kube-apiserver does, as far as the logic of this package
// goes: discovery, lists in pages, metadata only, merge patches that are guarded
// by UID and resourceVersion. What the real one does is tested in test/.
type apiServer struct {
	*httptest.Server

	mu       sync.Mutex
	kinds    []served
	objects  map[string]map[string]any // by path
	version  int
	requests []string
	// before is asked about each request first; true means that it has answered.
	before func(w http.ResponseWriter, r *http.Request) bool
}

type served struct {
	graph.GroupKind
	version, plural string
	clusterScoped   bool
	// labels of the CRD; nil: clusterctl did not install it.
	labels map[string]string
}

var clusterctlInstalled = map[string]string{graph.ClusterctlLabel: ""}

// standard are the kinds of most tests.
func standard() []served {
	return []served{
		{graph.Secret, "v1", "secrets", false, nil},
		{graph.ConfigMap, "v1", "configmaps", false, nil},
		{graph.Cluster, "v1beta2", "clusters", false, clusterctlInstalled},
		{graph.ClusterClass, "v1beta2", "clusterclasses", false, clusterctlInstalled},
		{graph.Machine, "v1beta2", "machines", false, clusterctlInstalled},
		{graph.KubeadmControlPlane, "v1beta2", "kubeadmcontrolplanes", false, clusterctlInstalled},
		{graph.KubeadmConfig, "v1beta2", "kubeadmconfigs", false, clusterctlInstalled},
		{graph.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: "InfraTemplate"}, "v1", "infratemplates", false, clusterctlInstalled},
		{providerKind, "v1alpha3", "providers", false, clusterctlInstalled},
		{graph.GroupKind{Group: "example.com", Kind: "Widget"}, "v1", "widgets", false, nil},
		{graph.GroupKind{Group: "example.com", Kind: "Identity"}, "v1", "identities", true, nil},
	}
}

func newServer(t *testing.T, kinds []served, objects ...map[string]any) (*apiServer, *Cluster) {
	t.Helper()
	s := &apiServer{kinds: kinds, objects: map[string]map[string]any{}, version: 100}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	for _, o := range objects {
		s.put(t, o)
	}
	c, err := OpenConfig(&rest.Config{Host: s.URL}, "the test server")
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func (k served) root() string {
	if k.Group == "" {
		return "/api/" + k.version
	}
	return "/apis/" + k.Group + "/" + k.version
}

func (k served) path(namespace, name string) string {
	p := k.root()
	if namespace != "" {
		p += "/namespaces/" + namespace
	}
	p += "/" + k.plural
	if name != "" {
		p += "/" + name
	}
	return p
}

// object is a manifest in few words: "Machine default/m".
func object(k graph.GroupKind, namespace, name string, more map[string]any) map[string]any {
	o := map[string]any{"kind": k.Kind, "metadata": map[string]any{"namespace": namespace, "name": name, "uid": "uid-" + name}}
	meta := o["metadata"].(map[string]any)
	for key, v := range more {
		switch key {
		case "spec", "status", "type", "data":
			o[key] = v
		default:
			meta[key] = v
		}
	}
	o["group"] = k.Group
	return o
}

func (s *apiServer) put(t *testing.T, o map[string]any) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	group, _ := o["group"].(string)
	delete(o, "group")
	for _, k := range s.kinds {
		if k.Kind == o["kind"] && k.Group == group {
			o["apiVersion"] = strings.TrimPrefix(k.Group+"/"+k.version, "/")
			meta := o["metadata"].(map[string]any)
			s.version++
			meta["resourceVersion"] = strconv.Itoa(s.version)
			ns, _ := meta["namespace"].(string)
			s.objects[k.path(ns, meta["name"].(string))] = o
			return
		}
	}
	t.Fatalf("the test server does not serve %v of %q", o["kind"], group)
}

// asked gives the requests so far whose method and path contain a word.
func (s *apiServer) asked(word string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range s.requests {
		if strings.Contains(r, word) {
			out = append(out, r)
		}
	}
	return out
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	before := s.before
	s.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch path := r.URL.Path; {
	case path == "/api":
		reply(w, map[string]any{"kind": "APIVersions", "versions": []string{"v1"}})
	case path == "/apis":
		reply(w, s.groups())
	case strings.Count(path, "/") == 2 && strings.HasPrefix(path, "/api/"), strings.Count(path, "/") == 3 && strings.HasPrefix(path, "/apis/"):
		reply(w, s.resources(path))
	case strings.HasSuffix(path, "/customresourcedefinitions"):
		reply(w, s.crds())
	case r.Method == http.MethodPatch:
		s.patch(w, r)
	case r.Method == http.MethodPost: // an Event, as protobuf
		reply(w, map[string]any{"kind": "Event", "apiVersion": "v1", "metadata": map[string]any{"name": "e"}})
	default:
		s.get(w, r)
	}
}

func (s *apiServer) groups() map[string]any {
	var groups []any
	seen := map[string]bool{"": true}
	for _, k := range s.kinds {
		if !seen[k.Group] {
			seen[k.Group] = true
			v := map[string]any{"groupVersion": k.Group + "/" + k.version, "version": k.version}
			groups = append(groups, map[string]any{"name": k.Group, "versions": []any{v}, "preferredVersion": v})
		}
	}
	return map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
}

func (s *apiServer) resources(path string) map[string]any {
	resources := []any{}
	for _, k := range s.kinds {
		if k.root() == path {
			resources = append(resources, map[string]any{"name": k.plural, "kind": k.Kind, "namespaced": !k.clusterScoped, "verbs": []string{"get", "list", "patch"}})
		}
	}
	gv := strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/")
	return map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": gv, "resources": resources}
}

func (s *apiServer) crds() map[string]any {
	var items []any
	for _, k := range s.kinds {
		if k.labels != nil {
			items = append(items, map[string]any{"metadata": map[string]any{"name": k.plural + "." + k.Group, "labels": k.labels}})
		}
	}
	return map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": items}
}

// get answers a list or one object, in the form that is asked for.
func (s *apiServer) get(w http.ResponseWriter, r *http.Request) {
	bare := strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata")
	show := func(o map[string]any) map[string]any {
		if bare {
			return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o["metadata"]}
		}
		return o
	}
	if o, ok := s.objects[r.URL.Path]; ok {
		reply(w, show(o))
		return
	}
	if !slices.ContainsFunc(s.kinds, func(k served) bool { return strings.HasSuffix(r.URL.Path, "/"+k.plural) }) {
		refuse(w, http.StatusNotFound, "NotFound", r.URL.Path+" not found")
		return
	}
	var names []string
	for path := range maps.Keys(s.objects) {
		collection, _, _ := cutLast(path)
		root, plural, _ := cutLast(r.URL.Path)
		if collection == r.URL.Path || (!strings.Contains(root, "/namespaces/") && strings.HasPrefix(collection, root+"/") && strings.HasSuffix(collection, "/"+plural)) {
			names = append(names, path)
		}
	}
	slices.Sort(names)
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	to := len(names)
	meta := map[string]any{"resourceVersion": strconv.Itoa(s.version)}
	if limit > 0 && from+limit < to {
		to = from + limit
		meta["continue"] = strconv.Itoa(to)
	}
	items := []any{}
	for _, name := range names[min(from, to):to] {
		items = append(items, show(s.objects[name]))
	}
	list := map[string]any{"kind": "List", "apiVersion": "v1", "metadata": meta, "items": items}
	if bare {
		list["kind"], list["apiVersion"] = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	reply(w, list)
}

func cutLast(path string) (before, after string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	return path[:i], path[i+1:], true
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, code int, reason, message string, causes ...map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message,
		"details": map[string]any{"causes": causes},
	})
}

// soon ends before a lost connection has been tried again for long.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}
