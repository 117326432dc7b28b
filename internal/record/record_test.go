package record

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/move-hook/move-hook/pkg/graph"
)

var cluster = graph.ID{Group: graph.CoreGroup, Kind: "Cluster", Namespace: "fleet", Name: "c1"}

// snapshot has n Secrets; each with noise so that it does not compress.
func snapshot(n int) graph.Snapshot {
	r := rand.New(rand.NewPCG(1, 1))
	s := graph.Snapshot{Cluster: cluster}
	for i := range n {
		noise := make([]byte, 2000)
		for j := range noise {
			noise[j] = byte('!' + r.IntN(90))
		}
		s.Nodes = append(s.Nodes, graph.SnapshotNode{
			ID: graph.ID{Kind: "Secret", Namespace: "fleet", Name: fmt.Sprintf("s%06d", i)}, APIVersion: "v1",
			Annotations: map[string]string{"noise": string(noise)}, Moves: true,
		})
	}
	s.Nodes = append(s.Nodes, graph.SnapshotNode{ID: cluster, APIVersion: "cluster.x-k8s.io/v1beta2", Moves: true})
	return s
}

// packed remembers what takes long to pack.
var packed = map[int][]*corev1.ConfigMap{}

// objects are the ConfigMaps of a snapshot, for the test to spoil.
func objects(t *testing.T, s graph.Snapshot) []*corev1.ConfigMap {
	t.Helper()
	n := len(s.Nodes)
	if packed[n] == nil {
		made, _, err := Objects(s, apiVersion, "uid")
		if err != nil {
			t.Fatal(err)
		}
		packed[n] = made
	}
	var out []*corev1.ConfigMap
	for _, cm := range packed[n] {
		out = append(out, cm.DeepCopy())
	}
	return out
}

func TestRecord_TravelsInPartsInAnyOrder(t *testing.T) {
	for _, n := range []int{1, 1200} {
		s := snapshot(n)
		maps := objects(t, s)
		if n == 1200 && len(maps) < 3 {
			t.Fatalf("%d parts: too few to show anything", len(maps))
		}
		for _, cm := range maps {
			if size := len(cm.BinaryData[payloadKey]); size > maxPart {
				t.Errorf("part of %d bytes", size)
			}
			if _, ok := cm.Labels[graph.MoveLabel]; !ok || cm.OwnerReferences[0].Name != "c1" || cm.OwnerReferences[0].Controller != nil {
				t.Errorf("clusterctl would not take %s along: %v %v", cm.Name, cm.Labels, cm.OwnerReferences)
			}
		}
		rand.New(rand.NewPCG(2, 2)).Shuffle(len(maps), func(i, j int) { maps[i], maps[j] = maps[j], maps[i] })
		e := FromConfigMaps(cluster, maps)
		if e.Snapshot == nil {
			t.Fatalf("not read back: %v", e.Partial)
		}
		if diff := cmp.Diff(s, *e.Snapshot); diff != "" {
			t.Error(diff)
		}
		if e.Closed || len(e.Objects) != len(maps) {
			t.Errorf("closed %v with %d objects, want open with %d", e.Closed, len(e.Objects), len(maps))
		}
	}
}

func TestRecord_WhatCannotBeUsedIsNamedAndNotTakenForAbsent(t *testing.T) {
	fresh := func() []*corev1.ConfigMap { return objects(t, snapshot(1200)) }
	for name, test := range map[string]struct {
		spoil func([]*corev1.ConfigMap) []*corev1.ConfigMap
		want  string
	}{
		"first part missing": {func(m []*corev1.ConfigMap) []*corev1.ConfigMap { return m[1:] }, "ConfigMap fleet/move-hook-record-c1 does not exist"},
		"part missing": {func(m []*corev1.ConfigMap) []*corev1.ConfigMap {
			return append(m[:1:1], m[2:]...)
		}, "ConfigMap fleet/" + Name("c1", 1) + " does not exist"},
		"last part missing": {func(m []*corev1.ConfigMap) []*corev1.ConfigMap { return m[:len(m)-1] }, "does not exist"},
		"two generations":   {func(m []*corev1.ConfigMap) []*corev1.ConfigMap { m[1].Data[checksumKey] = "other"; return m }, "of another record"},
		"cut off": {func(m []*corev1.ConfigMap) []*corev1.ConfigMap {
			m[0].BinaryData[payloadKey] = m[0].BinaryData[payloadKey][:100]
			return m
		}, "cannot be read"},
		"not gzip": {func(m []*corev1.ConfigMap) []*corev1.ConfigMap {
			m[0].BinaryData[payloadKey] = []byte("hello")
			return m
		}, "cannot be read"},
		"changed": {func(m []*corev1.ConfigMap) []*corev1.ConfigMap {
			for _, cm := range m {
				cm.Data[checksumKey] = strings.Repeat("0", 64)
			}
			return m
		}, "its checksum is"},
		"numbers":            {func(m []*corev1.ConfigMap) []*corev1.ConfigMap { m[0].Data[partKey] = "-1"; return m }, "does not say which part"},
		"no number of parts": {func(m []*corev1.ConfigMap) []*corev1.ConfigMap { m[0].Data[partsKey] = "999999999"; return m }, "does not say of how many parts"},
		"twice":              {func(m []*corev1.ConfigMap) []*corev1.ConfigMap { m[1].Data[partKey] = "0"; return m }, "which is there twice"},
		"emptied":            {func(m []*corev1.ConfigMap) []*corev1.ConfigMap { m[1].BinaryData = nil; return m }, "has no record.json.gz"},
	} {
		t.Run(name, func(t *testing.T) {
			e := FromConfigMaps(cluster, test.spoil(fresh()))
			if e.Snapshot != nil || len(e.Partial) != 1 || e.Closed {
				t.Fatalf("want one reason and no snapshot, got %+v", e)
			}
			if got := e.Partial[0].String(); !strings.Contains(got, test.want) {
				t.Errorf("%q, want %q in it", got, test.want)
			}
		})
	}
	if e := FromConfigMaps(cluster, nil); e.Partial != nil || e.Snapshot != nil {
		t.Errorf("no record is no record, got %+v", e)
	}
	other := cluster
	other.Name = "c2"
	if e := FromConfigMaps(other, fresh()); e.Snapshot != nil {
		t.Error("the record of c1 was taken for that of c2")
	}
}

func TestRecord_SecondWriteWritesNothingAndShrinkingLeavesNothing(t *testing.T) {
	client := fake.NewClientset() // the ConfigMaps API has no behaviour that matters here
	ctx := context.Background()
	write := func(n int) []string {
		t.Helper()
		_, wrote, err := Write(ctx, client.CoreV1(), snapshot(n), "cluster.x-k8s.io/v1beta2", "uid")
		if err != nil {
			t.Fatal(err)
		}
		return wrote
	}
	if wrote := write(1200); len(wrote) < 3 {
		t.Errorf("wrote %v", wrote)
	}
	client.ClearActions()
	if wrote := write(1200); wrote != nil {
		t.Errorf("the same record again wrote %v", wrote)
	}
	for _, a := range client.Actions() {
		if a.GetVerb() != "list" {
			t.Errorf("the same record again made a %s request", a.GetVerb())
		}
	}
	write(1)
	left, err := client.CoreV1().ConfigMaps("fleet").List(ctx, metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 {
		t.Errorf("%d ConfigMaps are left (%v), want 1", len(left.Items), err)
	}
	left.Items[0].Annotations = map[string]string{graph.AdoptedAnnotation: "2026-01-01T00:00:00Z"}
	if _, err := client.CoreV1().ConfigMaps("fleet").Update(ctx, &left.Items[0], metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if e, _ := Read(ctx, client.CoreV1(), cluster); !e.Closed || e.Snapshot == nil {
		t.Error("an adopted record should read as closed")
	}
	write(1)
	if e, _ := Read(ctx, client.CoreV1(), cluster); e.Closed {
		t.Error("writing should open a closed record again")
	}
}

func TestRecordFile_SameBytesAndChecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	other := snapshot(1)
	other.Cluster.Name = "c0"
	other.Nodes[1].ID = other.Cluster
	if err := ToFile(path, []graph.Snapshot{snapshot(3), other}); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := FromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]graph.Snapshot{other, snapshot(3)}, got); diff != "" {
		t.Error(diff)
	}
	if err := ToFile(path, got); err != nil {
		t.Fatal(err)
	}
	if second, _ := os.ReadFile(path); !bytes.Equal(first, second) {
		t.Error("the same records gave other bytes")
	}
	for name, spoilt := range map[string][]byte{
		"cut off":    first[:len(first)/2],
		"changed":    bytes.Replace(first, []byte(`"s000001"`), []byte(`"s000009"`), 1),
		"empty":      nil,
		"no records": []byte(`{"version":1}`),
		"later":      []byte(`{"version":2,"records":[]}`),
	} {
		if err := os.WriteFile(path, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := FromFile(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: want an error that names the file, got %v", name, err)
		}
	}
}

func TestNames_FitKubernetes(t *testing.T) {
	long := strings.Repeat("a", 250)
	if n := Name(long, 12); len(n) > maxName || n == Name(long+"b", 12) {
		t.Errorf("name %q of %d", n, len(n))
	}
	if v := LabelValue(long); len(v) > maxLabel || v == LabelValue(long+"b") {
		t.Errorf("label %q", v)
	}
	if Name("c1", 0) != "move-hook-record-c1" || LabelValue("c1") != "c1" {
		t.Error("short names should stay as they are")
	}
	if Name("prod", 1) == Name("prod-1", 0) || Name("prod-1", 1) == Name("prod", 11) {
		t.Error("two Clusters of one namespace would write the same ConfigMap")
	}
}

func FuzzDecode(f *testing.F) {
	parts, checksum, err := encode(snapshot(2))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(parts[0], checksum)
	f.Add([]byte{0x1f, 0x8b}, "")
	f.Add([]byte(nil), strings.Repeat("0", 64))
	f.Fuzz(func(t *testing.T, payload []byte, checksum string) {
		if s, err := decode([][]byte{payload}, checksum); err == nil && s.Validate() != nil {
			t.Error("an invalid snapshot was taken")
		}
	})
}

func FuzzParse(f *testing.F) {
	text, _, err := plain(&graph.Snapshot{Cluster: cluster, Nodes: []graph.SnapshotNode{{ID: cluster}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"version":1,"snapshot":{"cluster":{"kind":"Cluster"},"nodes":[{},{}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parse(text, sum(text))
		if err != nil {
			return
		}
		if _, err := s.Graph(); err != nil {
			t.Errorf("a valid snapshot makes no graph: %v", err)
		}
		// What was taken once is taken again after it was stored.
		parts, checksum, err := encode(*s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decode(parts, checksum)
		if err != nil {
			t.Fatalf("not read back: %v", err)
		}
		if second, _, _ := plain(again); sum(second) != checksum {
			t.Error("a stored record is not the same when it is read back")
		}
	})
}

func FuzzDecodeFile(f *testing.F) {
	text, err := encodeFile([]graph.Snapshot{snapshot(1)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"version":1,"records":[{"checksum":"","record":null}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := decodeFile(text)
		if err != nil {
			return
		}
		for i := range all {
			if err := all[i].Validate(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestDecode_HostileInputIsAnErrorInBoundedMemory: a ConfigMap is written by whoever
// may write ConfigMaps.
func TestDecode_HostileInputIsAnErrorInBoundedMemory(t *testing.T) {
	parts, checksum, err := encode(snapshot(2))
	if err != nil {
		t.Fatal(err)
	}
	good := bytes.Join(parts, nil)
	packed := func(write func(io.Writer)) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		write(w)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	deep := strings.Repeat(`{"snapshot":`, 20_000)
	for name, c := range map[string]struct {
		payload  []byte
		checksum string
		want     string
	}{
		"cut off":         {good[:len(good)/2], checksum, "unpacking"},
		"no gzip":         {[]byte("apiVersion: v1"), checksum, "unpacking"},
		"another content": {good, strings.Repeat("0", 64), "checksum"},
		"a bomb": {packed(func(w io.Writer) {
			zeros := make([]byte, 1<<20)
			for range maxContent>>20 + 2 {
				_, _ = w.Write(zeros)
			}
		}), checksum, "unpacks to more than"},
		"deep": {packed(func(w io.Writer) { _, _ = io.WriteString(w, deep) }), sum([]byte(deep)), "depth"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := decode([][]byte{c.payload}, c.checksum)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want an error about %q, got %v", c.want, err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 8*maxContent {
				t.Errorf("%d MiB were allocated for a payload of %d bytes", used>>20, len(c.payload))
			}
		})
	}
}
