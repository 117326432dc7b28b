package report

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/move-hook/move-hook/pkg/graph"
)

// A graph is written piece by piece: not a byte of it may tell.
func TestEncode_GraphIsWhatJSONMakesOfIt(t *testing.T) {
	object := GraphObject{
		ID: graph.ID{Kind: "Secret", Namespace: "default", Name: "[]<&>"}, APIVersion: "v1",
		Owners: []GraphOwner{{Edge: "owner", State: "live"}}, Refs: []GraphRef{}, Marks: []string{}, Moves: true, Reason: "é",
	}
	for _, objects := range [][]GraphObject{{}, {object}, {object, {}, object}} {
		doc := GraphDocument{Objects: objects, Unseen: []GraphUnseen{{NamedBy: []graph.ID{}}}, Counts: GraphCounts{Objects: len(objects)}}
		var got bytes.Buffer
		if err := Encode(&got, JSON, doc); err != nil {
			t.Fatal(err)
		}
		want, err := json.MarshalIndent(doc, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want)+"\n", got.String()); diff != "" {
			t.Errorf("%d objects (- want, + got):\n%s", len(objects), diff)
		}
	}
}
