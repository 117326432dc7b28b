package management

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

var (
	widget   = graph.GroupKind{Group: "example.com", Kind: "Widget"}
	identity = graph.GroupKind{Group: "example.com", Kind: "Identity"}
	template = graph.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: "InfraTemplate"}
)

func owner(gk graph.GroupKind, version, name string) []any {
	return []any{map[string]any{"apiVersion": gk.Group + "/" + version, "kind": gk.Kind, "name": name, "uid": "uid-" + name}}
}

func read(t *testing.T, c *Cluster, scope Scope) (*graph.Graph, []Warning) {
	t.Helper()
	g, warnings, err := c.Read(context.Background(), scope)
	if err != nil {
		t.Fatal(err)
	}
	return g, warnings
}

func names(g *graph.Graph) []string {
	var out []string
	for o := range g.All() {
		out = append(out, o.ID.String())
	}
	return out
}

func id(gk graph.GroupKind, namespace, name string) graph.ID {
	return graph.ID{Group: gk.Group, Kind: gk.Kind, Namespace: namespace, Name: name}
}

func TestRead_PagesGiveEveryObjectOnce(t *testing.T) {
	var objects []map[string]any
	for i := range 2*pageSize + 1 {
		objects = append(objects,
			object(graph.Machine, "default", fmt.Sprintf("m%d", i), map[string]any{"spec": map[string]any{"version": "v1.34.0"}}),
			object(graph.Secret, "default", fmt.Sprintf("s%d", i), map[string]any{"data": map[string]any{"key": "c2VjcmV0"}}))
	}
	s, c := newServer(t, standard(), objects...)
	g, warnings := read(t, c, Scope{Namespace: "default"})
	if g.Len() != len(objects) || len(warnings) != 0 {
		t.Errorf("read %d of %d objects, warnings %v", g.Len(), len(objects), warnings)
	}
	for _, gk := range []graph.GroupKind{graph.Machine, graph.Secret} {
		if !g.Listed(gk, "default") || g.Listed(gk, "other") {
			t.Errorf("%s: listed in default %v, elsewhere %v", gk, g.Listed(gk, "default"), g.Listed(gk, "other"))
		}
	}
	if n := len(s.asked("/machines?")); n != 3 {
		t.Errorf("%d requests for 3 pages", n)
	}
	if o, _ := g.Object(id(graph.Machine, "default", "m7")); o.Facts.Version != "v1.34.0" {
		t.Errorf("a Machine was not read whole: %+v", o)
	}
}

// A list of which the server forgot the rest must not be mixed with a later one:
// what was deleted between them would be called present.
func TestRead_ExpiredListIsReadAnewAsAWhole(t *testing.T) {
	for _, gk := range []graph.GroupKind{graph.Machine, graph.Secret} {
		t.Run(gk.Kind, func(t *testing.T) {
			var objects []map[string]any
			for i := range pageSize + 1 {
				objects = append(objects, object(gk, "default", fmt.Sprintf("o%04d", i), nil))
			}
			s, c := newServer(t, standard(), objects...)
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Query().Get("continue") == "" {
					return false
				}
				s.mu.Lock()
				for path := range s.objects {
					if strings.HasSuffix(path, "/o0000") {
						delete(s.objects, path)
					}
				}
				s.mu.Unlock()
				refuse(w, http.StatusGone, "Expired", "the provided continue parameter is too old")
				return true
			}
			g, _ := read(t, c, Scope{Namespace: "default"})
			if _, there := g.Object(id(gk, "default", "o0000")); there || g.Len() != pageSize {
				t.Errorf("read %d objects, the deleted one among them: %v", g.Len(), there)
			}
			if !g.Listed(gk, "default") {
				t.Error("the second list was complete")
			}
		})
	}
}

func TestRead_KindThatIsRefusedIsUnknownAndNamed(t *testing.T) {
	s, c := newServer(t, standard(), object(graph.Cluster, "default", "c1", nil),
		object(graph.Machine, "default", "m", map[string]any{"ownerReferences": owner(graph.KubeadmConfig, "v1beta2", "gone")}))
	for code, reason := range map[int]string{http.StatusForbidden: "Forbidden", http.StatusInternalServerError: "InternalError"} {
		s.before = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/kubeadmconfigs") {
				refuse(w, code, reason, "not for you")
				return true
			}
			return false
		}
		g, warnings := read(t, c, Scope{Namespace: "default"})
		want := []Warning{{What: "KubeadmConfig.bootstrap.cluster.x-k8s.io in namespace default", Why: "not for you"}}
		if diff := cmp.Diff(want, warnings); diff != "" {
			t.Error(diff)
		}
		if g.Listed(graph.KubeadmConfig, "default") {
			t.Error("a refused list counts as complete")
		}
		if e := g.Owners(id(graph.Machine, "default", "m"))[0]; e.State != graph.Unknown {
			t.Errorf("the owner is called %s", e.State)
		}
	}
}

func TestRead_ServerInTroubleIsAnErrorAndNoEmptyGraph(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"overloaded":   func(w http.ResponseWriter) { refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable", "x") },
		"unauthorized": func(w http.ResponseWriter) { refuse(w, http.StatusUnauthorized, "Unauthorized", "x") },
		"cut off": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"MachineList","items":[{"metadata":{"name":"m"}},`))
		},
		"no list":    func(w http.ResponseWriter) { reply(w, []any{}) },
		"no answer":  func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"wrong type": func(w http.ResponseWriter) { reply(w, map[string]any{"items": []any{map[string]any{"metadata": 7}}}) },
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newServer(t, standard())
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/machines") {
					return false
				}
				answer(w)
				return true
			}
			_, _, err := c.Read(soon(t), Scope{Namespace: "default"})
			if err == nil || !strings.Contains(err.Error(), "Machine.cluster.x-k8s.io") || !strings.Contains(err.Error(), "the test server") {
				t.Errorf("want an error that names the kind and the management cluster, got %v", err)
			}
		})
	}
}

func TestRead_FollowsReferencesBeyondTheLists(t *testing.T) {
	_, c := newServer(t, standard(),
		object(graph.Cluster, "default", "c1", map[string]any{"spec": map[string]any{
			"topology":          map[string]any{"classRef": map[string]any{"name": "class", "namespace": "classes"}},
			"infrastructureRef": map[string]any{"apiGroup": "example.com", "kind": "Widget", "name": "w"},
			"identityRef":       map[string]any{"apiGroup": "example.com", "kind": "Identity", "name": "who"},
		}}),
		object(graph.ClusterClass, "classes", "class", map[string]any{"spec": map[string]any{"infrastructure": map[string]any{
			"templateRef": map[string]any{"apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "InfraTemplate", "name": "t"}}}}),
		object(graph.ClusterClass, "classes", "another", nil),
		object(template, "classes", "t", map[string]any{"ownerReferences": owner(graph.ClusterClass, "v1beta2", "class")}),
		object(template, "classes", "another", nil),
		object(graph.Machine, "default", "m", map[string]any{"ownerReferences": owner(widget, "v1", "missing")}),
		object(widget, "default", "w", map[string]any{"ownerReferences": owner(identity, "v1", "who")}),
		object(widget, "other", "far", nil),
		object(identity, "", "who", nil),
	)
	g, warnings := read(t, c, Scope{Namespace: "default"})
	want := []string{
		"Cluster default/c1", "ClusterClass classes/class", "Machine default/m",
		"Identity who", "Widget default/w", "InfraTemplate classes/t",
	}
	if diff := cmp.Diff(want, names(g)); diff != "" || len(warnings) > 0 {
		t.Errorf("warnings %v, objects (-want +got):\n%s", warnings, diff)
	}
	for _, gk := range []graph.GroupKind{widget, identity} {
		if info, ok := g.KindInfo(gk); !ok || info.Discovered {
			t.Errorf("%s is not among the kinds that clusterctl lists: %+v", gk, info)
		}
	}
	if !g.Listed(widget, "default") || g.Listed(template, "classes") {
		t.Error("Widgets of the namespace were listed, templates of the neighbour were not")
	}
	if e := g.Owners(id(graph.Machine, "default", "m"))[0]; e.State != graph.Dangling {
		t.Errorf("the missing Widget is %s", e.State)
	}
	for _, e := range g.SpecRefs(id(graph.Cluster, "default", "c1")) {
		if e.State != graph.Live {
			t.Errorf("%s -> %s is %s", e.Field, e.To, e.State)
		}
	}
}

func TestRead_WhatIsNamedAcrossNamespacesAndMissingIsSaid(t *testing.T) {
	_, c := newServer(t, standard(), object(graph.Cluster, "default", "c1", map[string]any{"spec": map[string]any{
		"topology": map[string]any{"classRef": map[string]any{"name": "class", "namespace": "classes"}}}}))
	_, warnings := read(t, c, Scope{Namespace: "default"})
	want := []Warning{{What: "ClusterClass classes/class", Why: "Cluster default/c1 names it and it does not exist"}}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
}

func TestRead_ProviderSecretsAsClusterctlDoes(t *testing.T) {
	_, c := newServer(t, standard(),
		object(providerKind, "infra-system", "infrastructure-x", map[string]any{"type": "InfrastructureProvider"}),
		object(providerKind, "core-system", "cluster-api", map[string]any{"type": "CoreProvider"}),
		object(graph.Secret, "infra-system", "credentials", nil),
		object(graph.Secret, "core-system", "certificate", nil),
		object(graph.Secret, "default", "mine", nil),
	)
	g, _ := read(t, c, Scope{Namespace: "default"})
	if diff := cmp.Diff([]string{"Secret default/mine", "Secret infra-system/credentials"}, names(g)); diff != "" {
		t.Error(diff)
	}
}

func TestRead_MoveSetIsThatOfTheScope(t *testing.T) {
	ref := func(name string) map[string]any {
		return map[string]any{"templateRef": map[string]any{"apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "InfraTemplate", "name": name}}
	}
	_, c := newServer(t, standard(),
		object(providerKind, "infra-system", "infrastructure-x", map[string]any{"type": "InfrastructureProvider"}),
		object(graph.Secret, "infra-system", "credentials", map[string]any{"labels": map[string]any{graph.MoveLabel: ""}}),
		object(graph.Cluster, "default", "c1", map[string]any{"spec": map[string]any{
			"topology": map[string]any{"classRef": map[string]any{"name": "class", "namespace": "classes"}}}}),
		object(graph.ClusterClass, "classes", "class", map[string]any{"spec": map[string]any{"infrastructure": ref("t"),
			"controlPlane": map[string]any{"healthCheck": map[string]any{"remediation": ref("remediation")}}}}),
		object(template, "classes", "t", map[string]any{"ownerReferences": owner(graph.ClusterClass, "v1beta2", "class")}),
		object(template, "classes", "remediation", map[string]any{"ownerReferences": owner(graph.ClusterClass, "v1beta2", "class")}),
	)
	g, _ := read(t, c, Scope{Namespace: "default"})
	for _, m := range g.MoveSet() {
		if in := m.ID.Name != "remediation"; m.In != in || (!in && m.Reason != graph.OutOfScope) {
			t.Errorf("%s moves: %t, %s", m.ID, m.In, m.Why())
		}
	}
	if g.Len() != 5 {
		t.Errorf("read %v", names(g))
	}
}

func TestRead_SecretDataIsNeverAskedFor(t *testing.T) {
	s, c := newServer(t, standard(), object(graph.Cluster, "default", "c1", nil), object(graph.Secret, "default", "c1-ca", map[string]any{
		"data": map[string]any{"tls.key": "c2VjcmV0"}, "annotations": map[string]any{graph.LastAppliedAnnotation: "c2VjcmV0", "a": "b"}}))
	s.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/secrets") && !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
			t.Errorf("%s %s with Accept %q asks for data", r.Method, r.URL, r.Header.Get("Accept"))
		}
		return false
	}
	g, _ := read(t, c, Scope{Specs: true, Status: true, Also: []graph.GroupKind{graph.Secret}})
	o, ok := g.Object(id(graph.Secret, "default", "c1-ca"))
	if !ok || o.Annotations[graph.LastAppliedAnnotation] != "" || o.Annotations["a"] != "b" {
		t.Errorf("kubectl's copy of the data was kept: %+v", o)
	}
	if _, err := c.Get(context.Background(), o.ID, true); err != nil {
		t.Error(err)
	}
}

// What is read at once and what a watch delivers must be the same.
func TestStream_ListAndConvertAgree(t *testing.T) {
	machine := object(graph.Machine, "default", "m", map[string]any{
		"creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": "2026-01-02T03:04:06Z", "finalizers": []any{"f"},
		"labels": map[string]any{"a": "b"}, "annotations": map[string]any{"c": "d"}, "ownerReferences": owner(identity, "v1", "who"),
		"managedFields": []any{map[string]any{"manager": "x", "fieldsV1": map[string]any{"f:spec": map[string]any{}}}},
		"spec": map[string]any{
			"version": "v1.34.0", "providerID": "p://1", "replicas": 3,
			"bootstrap":   map[string]any{"configRef": map[string]any{"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "m"}, "dataSecretName": "m"},
			"identityRef": map[string]any{"apiGroup": "example.com", "kind": "Identity", "name": "who"},
		},
		"status": map[string]any{"nodeRef": map[string]any{"name": "node"}, "conditions": []any{map[string]any{"type": "Ready"}}},
	})
	_, c := newServer(t, standard(), machine)
	d, err := c.Discover(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	k, _ := d.Find(graph.Machine)
	s := c.Stream(k, "default", true)
	all, err := s.All(context.Background())
	if err != nil || len(all) != 1 {
		t.Fatalf("%v %v", all, err)
	}
	one, err := c.Get(context.Background(), all[0].ID, true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*one, all[0]); diff != "" {
		t.Errorf("one by one and as a list (-get +list):\n%s", diff)
	}
	if all[0].Facts.NodeName != "node" || !slices.ContainsFunc(all[0].Refs, func(r graph.Ref) bool { return r.To == id(identity, "", "who") }) {
		t.Errorf("facts or references are missing: %+v", all[0])
	}
}

func TestDiscover_GroupThatDoesNotAnswerIsNamed(t *testing.T) {
	kinds := append(standard(), served{graph.GroupKind{Group: "metrics.example.com", Kind: "Metric"}, "v1", "metrics", false, nil})
	s, c := newServer(t, kinds)
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/apis/metrics.example.com/v1" {
			return false
		}
		refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable", "its server is away")
		return true
	}
	d, err := c.Refresh(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0].String(), "metrics.example.com/v1") {
		t.Errorf("warnings %v", d.Warnings)
	}
	if _, ok := d.Find(graph.Machine); !ok {
		t.Error("other groups are not known")
	}
	// Of a kind that may be served nobody may say that it is not.
	if _, err := c.Get(context.Background(), id(graph.GroupKind{Group: "metrics.example.com", Kind: "Metric"}, "default", "x"), false); err == nil {
		t.Error("an object of an unanswered group was called absent")
	}
}

func TestDiscover_KindsAsClusterctlSeesThem(t *testing.T) {
	kinds := standard()
	kinds[5].labels = map[string]string{graph.ClusterctlLabel: "", graph.MoveLabel: ""}
	kinds[6].labels = map[string]string{graph.ClusterctlLabel: "", graph.MoveHierarchyLabel: ""}
	kinds[7].labels = nil
	_, c := newServer(t, kinds)
	d, err := c.Discover(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for gk, want := range map[graph.GroupKind][3]bool{
		graph.Cluster: {true, true, true}, graph.Machine: {true, false, false}, graph.Secret: {true, false, false},
		graph.KubeadmControlPlane: {true, true, false}, graph.KubeadmConfig: {true, true, true}, template: {false, false, false},
	} {
		k, _ := d.Find(gk)
		if got := [3]bool{k.Discovered, k.ForceMove, k.ForceMoveHierarchy}; got != want {
			t.Errorf("%s: discovered, move, hierarchy are %v, want %v", gk, got, want)
		}
	}
	if !slices.ContainsFunc(d.Listed(), func(k Kind) bool { return k.GroupKind == template }) {
		t.Error("a Cluster API kind without clusterctl's label is not read")
	}
}

func TestOtherSide_OnlySpecPausedCounts(t *testing.T) {
	s, c := newServer(t, standard(),
		object(graph.Cluster, "default", "annotated", map[string]any{"annotations": map[string]any{graph.PausedAnnotation: ""}}),
		object(graph.Cluster, "default", "paused", map[string]any{"spec": map[string]any{"paused": true}}))
	for name, want := range map[string]adopt.OtherSide{"annotated": adopt.OtherUnpaused, "paused": adopt.OtherPaused, "none": adopt.OtherAbsent} {
		if got := c.OtherSide(context.Background(), id(graph.Cluster, "default", name)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	s.Close()
	if got := c.OtherSide(soon(t), id(graph.Cluster, "default", "paused")); got != adopt.OtherUnknown {
		t.Errorf("a server that is away makes the other side %s", got)
	}
}
