package record

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/move-hook/move-hook/pkg/graph"
)

const apiVersion = "cluster.x-k8s.io/v1beta2"

func TestP6_WriteKeepsWhatOthersPutOnTheRecord(t *testing.T) {
	ctx := context.Background()
	old := objects(t, snapshot(2))[0]
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "x"}
	old.OwnerReferences[0].UID = "stale"
	old.OwnerReferences = append(old.OwnerReferences, foreign)
	old.Labels["team"], old.Annotations = "blue", map[string]string{"note": "keep", graph.AdoptedAnnotation: "2026-01-01T00:00:00Z"}
	client := fake.NewClientset(old)
	_, wrote, err := Write(ctx, client.CoreV1(), snapshot(1), apiVersion, "uid")
	if err != nil || len(wrote) != 1 {
		t.Fatalf("wrote %v: %v", wrote, err)
	}
	got, err := client.CoreV1().ConfigMaps("fleet").Get(ctx, old.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Labels["team"] != "blue" || got.Annotations["note"] != "keep" {
		t.Errorf("labels %v and annotations %v of others are gone", got.Labels, got.Annotations)
	}
	if _, closed := got.Annotations[graph.AdoptedAnnotation]; closed {
		t.Error("the record is still closed")
	}
	if len(got.OwnerReferences) != 2 || got.OwnerReferences[0] != foreign || got.OwnerReferences[1].UID != "uid" {
		t.Errorf("want the foreign owner and the live Cluster, got %v", got.OwnerReferences)
	}
}

func TestRecord_AnotherConfigMapOfThatNameIsNotOverwritten(t *testing.T) {
	ctx := context.Background()
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: Name("c1", 0)}, Data: map[string]string{"a": "b"}}
	client := fake.NewClientset(theirs)
	_, _, err := Write(ctx, client.CoreV1(), snapshot(1), apiVersion, "uid")
	if err == nil || !strings.Contains(err.Error(), "rename or remove it") {
		t.Fatalf("want an error that says what to do, got %v", err)
	}
	got, err := client.CoreV1().ConfigMaps("fleet").Get(ctx, theirs.Name, metav1.GetOptions{})
	if err != nil || got.Data["a"] != "b" || got.BinaryData != nil {
		t.Errorf("it was changed to %v (%v)", got, err)
	}
}

func TestRecord_ALostLabelIsPutBack(t *testing.T) {
	ctx := context.Background()
	stripped := objects(t, snapshot(1))[0]
	stripped.Labels = nil
	client := fake.NewClientset(stripped)
	if _, wrote, err := Write(ctx, client.CoreV1(), snapshot(1), apiVersion, "uid"); err != nil || len(wrote) != 1 {
		t.Fatalf("wrote %v: %v", wrote, err)
	}
	if e, err := Read(ctx, client.CoreV1(), cluster); err != nil || e.Snapshot == nil {
		t.Errorf("the record is not found by its label: %+v (%v)", e, err)
	}
}

func TestRecord_AConflictIsLookedAtAgain(t *testing.T) {
	ctx := context.Background()
	client := fake.NewClientset(objects(t, snapshot(2))[0])
	conflicts := 2
	client.PrependReactor("update", "configmaps", func(ktesting.Action) (bool, runtime.Object, error) {
		if conflicts--; conflicts >= 0 {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, Name("c1", 0), errors.New("somebody wrote"))
		}
		return false, nil, nil
	})
	if _, wrote, err := Write(ctx, client.CoreV1(), snapshot(1), apiVersion, "uid"); err != nil || len(wrote) != 1 {
		t.Fatalf("wrote %v: %v", wrote, err)
	}
	conflicts = 1000
	if _, _, err := Write(ctx, client.CoreV1(), snapshot(3), apiVersion, "uid"); !apierrors.IsConflict(err) {
		t.Errorf("want the conflict in the end, got %v", err)
	}
}

func TestP4_KilledBetweenTwoPartsIsPartialAndCompletedByTheNextWrite(t *testing.T) {
	ctx := context.Background()
	client := fake.NewClientset()
	if _, _, err := Write(ctx, client.CoreV1(), snapshot(1), apiVersion, "uid"); err != nil {
		t.Fatal(err)
	}
	killed := errors.New("killed")
	for after := range 4 {
		writes := 0
		die := func(ktesting.Action) (bool, runtime.Object, error) {
			if writes++; writes > after {
				return true, nil, killed
			}
			return false, nil, nil
		}
		client.PrependReactor("create", "configmaps", die)
		client.PrependReactor("update", "configmaps", die)
		_, _, err := Write(ctx, client.CoreV1(), snapshot(1200), apiVersion, "uid")
		if err != nil && !errors.Is(err, killed) {
			t.Fatal(err)
		}
		client.ReactionChain = client.ReactionChain[2:]
		e, readErr := Read(ctx, client.CoreV1(), cluster)
		if readErr != nil {
			t.Fatal(readErr)
		}
		switch {
		case err != nil && after == 0: // nothing was written: the record of before
			if e.Snapshot == nil || len(e.Snapshot.Nodes) != 2 {
				t.Errorf("after %d writes: %v", after, e.Partial)
			}
		case err != nil && e.Snapshot != nil && len(e.Snapshot.Nodes) != 1201:
			t.Errorf("after %d writes: neither partial nor the new record", after)
		}
	}
	if _, _, err := Write(ctx, client.CoreV1(), snapshot(1200), apiVersion, "uid"); err != nil {
		t.Fatal(err)
	}
	if e, err := Read(ctx, client.CoreV1(), cluster); err != nil || e.Snapshot == nil || len(e.Snapshot.Nodes) != 1201 {
		t.Errorf("not completed: %v (%v)", e.Partial, err)
	}
}

func TestRecord_LaterVersionIsRefusedBeforeItsContentIsLookedAt(t *testing.T) {
	text := []byte(`{"version":2,"snapshot":"of another shape"}`)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	cm := objects(t, snapshot(1))[0]
	cm.BinaryData[payloadKey], cm.Data[checksumKey] = packed.Bytes(), sum(text)
	e := FromConfigMaps(cluster, []*corev1.ConfigMap{cm})
	if len(e.Partial) != 1 || !strings.Contains(e.Partial[0].What, "use the move-hook that wrote it") {
		t.Errorf("got %+v", e)
	}
}

func TestRecord_FileAndConfigMapsHaveOneChecksum(t *testing.T) {
	text, err := encodeFile([]graph.Snapshot{snapshot(1)})
	if err != nil {
		t.Fatal(err)
	}
	if c := Checksum(objects(t, snapshot(1))); !bytes.Contains(text, []byte(c)) {
		t.Errorf("the file does not name %s", c)
	}
}

func TestOf_FindsTheRecordInAGraph(t *testing.T) {
	var b graph.Builder
	for _, cm := range objects(t, snapshot(1)) {
		b.Add(graph.Object{ID: idOf(cm), UID: "u", ResourceVersion: "7", Labels: cm.Labels})
	}
	b.Add(graph.Object{ID: graph.ID{Kind: "ConfigMap", Namespace: "fleet", Name: "other"}, Labels: map[string]string{graph.ClusterNameLabel: "c1"}})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if got := Of(g, cluster); len(got) != 1 || got[0].ResourceVersion != "7" {
		t.Errorf("got %v", got)
	}
}
