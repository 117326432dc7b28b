package management

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/move-hook/move-hook/pkg/graph"
)

func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const clusterYAML = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c1, namespace: default, uid: u1}
spec:
  identityRef: {apiGroup: example.com, kind: Identity, name: who}
`

func TestReadDir_EveryFormOfManifest(t *testing.T) {
	dir := folderOf(t, map[string]string{
		"Cluster_default_c1.yaml": clusterYAML,
		"several.yml": `# a comment
---
---
apiVersion: v1
kind: Secret
metadata: {name: c1-ca, namespace: default, annotations: {kubectl.kubernetes.io/last-applied-configuration: secret}}
data: {tls.key: c2VjcmV0}
---
apiVersion: example.com/v1
kind: Identity
metadata: {name: who}
`,
		"list.json": `{"apiVersion":"v1","kind":"List","items":[
			{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m","namespace":"default",
			 "ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","name":"c1","uid":"u1"}]}}]}
			{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm","namespace":"default"}}`,
		"notes.txt":  "not a manifest",
		"empty.yaml": "# nothing here\n",
	})
	if err := os.Mkdir(filepath.Join(dir, "folder.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	g, warnings, err := ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ConfigMap default/cm", "Secret default/c1-ca", "Cluster default/c1", "Machine default/m", "Identity who"}
	if diff := cmp.Diff(want, names(g)); diff != "" {
		t.Error(diff)
	}
	if len(warnings) != 1 || !strings.HasSuffix(warnings[0].What, "empty.yaml") {
		t.Errorf("warnings %v", warnings)
	}
	cluster := id(graph.Cluster, "default", "c1")
	if refs := g.SpecRefs(cluster); len(refs) != 1 || refs[0].State != graph.Live {
		t.Errorf("a reference to a cluster-scoped object: %+v", refs)
	}
	for _, m := range g.MoveSet() {
		if in := m.ID.Kind != "ConfigMap" && m.ID.Kind != "Identity"; m.In != in {
			t.Errorf("%s: in the move set %v (%s)", m.ID, m.In, m.Why())
		}
	}
	if o, _ := g.Object(id(graph.Secret, "default", "c1-ca")); len(o.Annotations) != 0 {
		t.Errorf("kubectl's copy of the data was kept: %v", o.Annotations)
	}
	if g, _, err := ReadDir(filepath.Join(dir, "list.json")); err != nil || g.Len() != 2 {
		t.Errorf("one file: %v", err)
	}
}

func TestReadDir_HostileInputIsAnErrorThatNamesTheFile(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := byte('b'); i < 'k'; i++ {
		bomb += string(i) + ": &" + string(i) + " [" + strings.Repeat("*"+string(i-1)+",", 9) + "]\n"
	}
	for name, text := range map[string]string{
		"alias bomb":       bomb,
		"deep":             strings.Repeat("[", 200_000),
		"deep map":         strings.Repeat("{a: ", 100_000),
		"too large":        strings.Repeat("#", maxFile+1),
		"no object":        "a: b\n",
		"no name":          "apiVersion: v1\nkind: Secret\nmetadata: {}\n",
		"a list":           "- a\n- b\n",
		"labels of a kind": "apiVersion: v1\nkind: Secret\nmetadata: {name: a, labels: {a: [b]}}\n",
		"owners of a kind": "apiVersion: v1\nkind: Secret\nmetadata: {name: a, ownerReferences: [1]}\n",
		"items of a kind":  "apiVersion: v1\nkind: List\nitems: [1]\n",
		"binary":           "\x00\x01\x02",
		"cut off":          "apiVersion: v1\nkind: Secret\nmetadata: {name: ",
		"twice":            clusterYAML + "---\n" + clusterYAML,
	} {
		t.Run(name, func(t *testing.T) {
			dir := folderOf(t, map[string]string{"hostile.yaml": text})
			_, _, err := ReadDir(dir)
			if err == nil || !strings.Contains(err.Error(), "hostile.yaml") {
				t.Errorf("want an error that names the file, got %v", err)
			}
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestReadDir_NothingThereIsAnError(t *testing.T) {
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing"), os.DevNull} {
		if _, _, err := ReadDir(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func FuzzDocuments(f *testing.F) {
	f.Add(".yaml", clusterYAML+"---\n"+clusterYAML)
	f.Add(".json", `{"kind":"List","items":[{"kind":"List","items":[]}]}{}`)
	f.Fuzz(func(t *testing.T, ext, text string) {
		read := folder{seen: map[graph.ID]string{}}
		next := documents(ext, strings.NewReader(text))
		for {
			content, err := next()
			if err != nil {
				break
			}
			if err := read.document("f", content); err != nil {
				break
			}
		}
		if _, err := read.build(); err != nil {
			t.Errorf("what was read without an error makes no graph: %v", err)
		}
	})
}
