package management

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/move-hook/move-hook/pkg/graph"
)

// The values are those of kube-apiserver's own discovery.
func TestStorageHash_IsTheServers(t *testing.T) {
	for want, of := range map[string][2]string{
		"8aSe+NMegvE=": {"apps/v1", "Deployment"},
		"S6u1pOWzb84=": {"v1", "Secret"},
		"qFsyl6wFWjQ=": {"v1", "ConfigMap"},
	} {
		if got := storageHash(of[0], of[1]); got != want {
			t.Errorf("%v: %s, want %s", of, got, want)
		}
	}
}

const secretsTable = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"continue":"next"},
"columnDefinitions":[{"name":"Name"},{"name":"Type"},{"name":"Data"},{"name":"Age"}],
"rows":[{"cells":["c1-ca","cluster.x-k8s.io/secret",2,"1d"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",
"metadata":{"name":"c1-ca","namespace":"fleet","labels":{"a":"b"},"annotations":{"` + graph.LastAppliedAnnotation + `":"{\"data\":\"confidential\"}","x":"y"}}}}]}`

func TestSecretsOf_HaveTypeAndNoData(t *testing.T) {
	list, err := secretsOf([]byte(secretsTable))
	if err != nil {
		t.Fatal(err)
	}
	want := []unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
		"metadata": map[string]any{"name": "c1-ca", "namespace": "fleet", "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"x": "y"}},
	}}}
	if diff := cmp.Diff(want, list.Items); diff != "" || list.GetContinue() != "next" {
		t.Error(diff, list.GetContinue())
	}
	if _, err := secretsOf([]byte(strings.Replace(secretsTable, `{"name":"Type"}`, `{"name":"Other"}`, 1))); err == nil {
		t.Error("a table without types is taken")
	}
}

func TestCreatable_TakesOffWhatTheServerGives(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "spec": map[string]any{"a": "b"}, "status": map[string]any{"x": "y"},
		"metadata": map[string]any{"name": "c1", "uid": "u", "resourceVersion": "1", "generation": int64(1), "creationTimestamp": "2024-01-01T00:00:00Z",
			"labels": map[string]any{"l": "v"}, "finalizers": []any{"f"}, "ownerReferences": []any{map[string]any{"kind": "X"}}},
	}}
	if err := creatable(u); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "spec": map[string]any{"a": "b", "paused": true},
		"metadata": map[string]any{"name": "c1", "labels": map[string]any{"l": "v"}, "finalizers": []any{"f"}},
	}
	if diff := cmp.Diff(want, u.Object); diff != "" {
		t.Error(diff)
	}
}
