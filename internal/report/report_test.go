package report

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/move-hook/move-hook/internal/pivot"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/watch"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// TestGolden prints what the files in testdata give as YAML; -rewrite rewrites
// what is expected. ^[ stands for the escape character.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		var g *graph.Graph
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			var b bytes.Buffer
			st := Style{Color: d.HasArg("color")}
			var err error
			switch d.Cmd {
			case "objects":
				g, err = parseObjects(d.Input)
				if err == nil {
					fmt.Fprintln(&b, count(g.Len(), "object"))
				}
			case "graph":
				err = printGraph(&b, st, g, d)
			case "findings":
				fs := decode[[]finding.Finding](t, d)
				var about string
				d.MaybeScanArgs(t, "about", &about)
				err = Findings(&b, st, about, fs)
			case "pivot":
				in := decode[struct{ Before, After []MachineRow }](t, d)
				_, err = PivotTable(&b, st, in.Before, in.After)
			case "preflight":
				r := decode[pivot.PreflightResult](t, d)
				switch {
				case d.HasArg("junit"):
					err = PreflightJUnit(&b, r)
				case d.HasArg("table"):
					err = PreflightTable(&b, st, r)
				default:
					err = Preflight(&b, st, r)
				}
			case "post":
				err = Post(&b, st, decode[watch.Result](t, d))
			case "pre":
				err = Pre(&b, st, decode[pivot.PreResult](t, d))
			case "verify":
				err = Verify(&b, st, decode[pivot.VerifyResult](t, d))
			case "move":
				err = Move(&b, st, decode[pivot.MoveResult](t, d))
			case "status":
				err = Status(&b, st, decode[pivot.StatusResult](t, d))
			case "progress":
				playProgress(t, &b, st, d)
			default:
				t.Fatalf("unknown command %q", d.Cmd)
			}
			if err != nil {
				fmt.Fprintf(&b, "error: %v\n", err)
			}
			return strings.ReplaceAll(b.String(), "\x1b", "^[")
		})
	})
}

func decode[T any](t *testing.T, d *datadriven.TestData) T {
	t.Helper()
	var v T
	if err := yaml.UnmarshalStrict([]byte(d.Input), &v); err != nil {
		d.Fatalf(t, "%v", err)
	}
	return v
}

// parseObjects reads objects as a user writes them. A document with "listed" says
// which kinds were listed completely.
func parseObjects(text string) (*graph.Graph, error) {
	var b graph.Builder
	for doc := range strings.SplitSeq(text, "\n---\n") {
		content := map[string]any{}
		if err := yaml.Unmarshal([]byte(doc), &content); err != nil {
			return nil, err
		}
		if kinds, ok := content["listed"].([]any); ok {
			for _, kind := range kinds {
				name, group, _ := strings.Cut(kind.(string), ".")
				gk := graph.GroupKind{Group: group, Kind: name}
				b.Kind(graph.KindInfo{GroupKind: gk, Namespaced: true, Discovered: true,
					ForceMove: graph.ForceMoves(gk), ForceMoveHierarchy: graph.ForceMoves(gk)})
				b.Listed(gk, "")
			}
			continue
		}
		o, err := graph.Extract(content)
		if err != nil {
			return nil, err
		}
		b.Add(o)
	}
	return b.Build()
}

func printGraph(w io.Writer, st Style, g *graph.Graph, d *datadriven.TestData) error {
	var only []graph.ID
	for _, arg := range d.CmdArgs {
		if arg.Key == "cluster" {
			ns, name, _ := strings.Cut(arg.Vals[0], "/")
			only = g.Belongs(graph.ID{Group: graph.CoreGroup, Kind: "Cluster", Namespace: ns, Name: name})
		}
	}
	doc := NewGraphDocument(g, only)
	switch {
	case d.HasArg("tree"):
		return GraphTree(w, st, doc)
	case d.HasArg("table"):
		return GraphTable(w, st, doc)
	case d.HasArg("json"):
		return Encode(w, JSON, doc)
	}
	return Encode(w, YAML, doc)
}

// playProgress feeds updates to a Progress, each with the seconds since the one
// before; "say" is what somebody else writes to the same terminal meanwhile.
func playProgress(t *testing.T, b *bytes.Buffer, st Style, d *datadriven.TestData) {
	events := decode[[]struct {
		flow.Update
		After int    `json:"after"`
		Say   string `json:"say"`
	}](t, d)
	var width int
	d.MaybeScanArgs(t, "width", &width)
	synctest.Test(t, func(t *testing.T) {
		p := NewProgress(b, ProgressOptions{Redraw: d.HasArg("redraw"), Width: func() int { return width }, Style: st})
		other := p.Around(b)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go p.Animate(ctx)
		wait(time.Second / 2) // so that no event falls on a tick
		for _, e := range events {
			if e.After > 0 {
				wait(time.Duration(e.After) * time.Second)
			}
			if e.Say != "" {
				fmt.Fprint(other, e.Say)
			}
			p.Show(e.Update)
		}
		stop()
		synctest.Wait()
		p.Close()
		p.Show(flow.Update{Message: "after the end"})
	})
}

// wait lets the bubble's clock run.
func wait(d time.Duration) { <-time.After(d) }

func TestProgress_FiftyClustersFitOnAScreen(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, ProgressOptions{Redraw: true})
	for i := range 50 {
		p.Show(flow.Update{Cluster: graph.ID{Group: graph.CoreGroup, Kind: "Cluster", Namespace: "fleet",
			Name: "c" + strconv.Itoa(i)}, Phase: "deferred"})
	}
	screen := b.String()[strings.LastIndex(b.String(), "\x1b[J")+len("\x1b[J"):]
	if n := strings.Count(screen, "\n"); n != maxRows+2 {
		t.Errorf("the block has %d lines, want head, %d Clusters and the count of the rest:\n%s", n, maxRows, screen)
	}
	if !strings.Contains(screen, "and 38 more") {
		t.Errorf("the Clusters that do not fit are not counted:\n%s", screen)
	}
}

func TestParseFormat_NamesWhatThereIs(t *testing.T) {
	_, err := ParseFormat("svg", Tree, Table, JSON, YAML)
	if want := `unknown output format "svg": there are tree, table, json, yaml`; err == nil || err.Error() != want {
		t.Errorf("have %v, want %s", err, want)
	}
}

// BenchmarkGraph prints 45,000 objects: printing must not be what one waits for.
func BenchmarkGraph(b *testing.B) {
	g, err := manyClusters(1000)
	if err != nil {
		b.Fatal(err)
	}
	for name, print := range map[string]func(io.Writer, GraphDocument) error{
		"tree":  func(w io.Writer, d GraphDocument) error { return GraphTree(w, Style{}, d) },
		"table": func(w io.Writer, d GraphDocument) error { return GraphTable(w, Style{}, d) },
		"json":  func(w io.Writer, d GraphDocument) error { return Encode(w, JSON, d) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := print(io.Discard, NewGraphDocument(g, nil)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// manyClusters makes Clusters of 45 objects: a Cluster, 11 Machines, and three
// objects that hang below each Machine like a chain.
func manyClusters(n int) (*graph.Graph, error) {
	var b graph.Builder
	b.Kind(graph.KindInfo{GroupKind: graph.Cluster, Namespaced: true, Discovered: true, ForceMove: true, ForceMoveHierarchy: true})
	b.Kind(graph.KindInfo{GroupKind: graph.Machine, Namespaced: true, Discovered: true})
	add := func(gk graph.GroupKind, name, owner string, ownerKind graph.GroupKind) {
		o := graph.Object{ID: graph.ID{Group: gk.Group, Kind: gk.Kind, Namespace: "fleet", Name: name}, APIVersion: gk.Group + "/v1",
			UID: types.UID(gk.Kind + name)}
		if owner != "" {
			o.Owners = []metav1.OwnerReference{{APIVersion: ownerKind.Group + "/v1", Kind: ownerKind.Kind, Name: owner, UID: types.UID(ownerKind.Kind + owner)}}
		}
		b.Add(o)
	}
	for i := range n {
		cluster := "c" + strconv.Itoa(i)
		add(graph.Cluster, cluster, "", graph.GroupKind{})
		for j := range 11 {
			machine := cluster + "-" + strconv.Itoa(j)
			add(graph.Machine, machine, cluster, graph.Cluster)
			owner := machine
			for k := range 3 {
				name := machine + "-" + strconv.Itoa(k)
				add(graph.Machine, name, owner, graph.Machine)
				owner = name
			}
		}
	}
	return b.Build()
}
