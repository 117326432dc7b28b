package pivot

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/preflight"
	"github.com/move-hook/move-hook/internal/record"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// VerifyOptions say what to judge and what to compare it with: a record file or a
// directory if given, else the record beside each Cluster, else the live source,
// else Cluster API's owner rules.
type VerifyOptions struct {
	Target *management.Cluster
	// Source may be nil; if given, its copies have to be paused or gone.
	Source *management.Cluster
	// RecordFile and Dir exclude each other.
	RecordFile, Dir string
	Namespace       string
	Names           []types.NamespacedName
	Progress        flow.Progress

	// records come before everything else: what a flow has recorded itself.
	records []graph.Snapshot
}

// Verify judges the target, read-only.
func Verify(ctx context.Context, o VerifyOptions) (VerifyResult, error) {
	v := &verification{o: o, target: o.Target, records: configMaps{o.Target}, told: map[string]bool{}, want: map[graph.ID]expected{}}
	if o.Source != nil {
		v.source = o.Source
	}
	v.rollouts = v.askRollouts
	err := v.run(ctx)
	return v.result, err
}

// expected is what a Cluster is compared with.
type expected struct {
	against  Against
	snapshot graph.Snapshot
}

type verification struct {
	o       VerifyOptions
	target  host
	source  host
	records recordStore
	told    map[string]bool

	have, onSource *graph.Graph
	want           map[graph.ID]expected
	// rollouts says which Machines of a Cluster its control plane will replace; nil: nobody is asked.
	rollouts func(context.Context, adopt.State) ([]finding.Finding, error)
	result   VerifyResult
}

func (v *verification) run(ctx context.Context) error {
	begin := time.Now()
	v.result = VerifyResult{Outcome: flow.Done, Namespace: v.o.Namespace, Clusters: []VerifiedCluster{}}
	defer func() { v.result.Seconds = time.Since(begin).Seconds() }()
	if v.o.RecordFile != "" && v.o.Dir != "" {
		return flow.Usage(errors.New("a record file and a directory were given: give one of them"))
	}
	return follow(ctx, v.o.Progress, []step{
		{"Reading what is expected", v.expect},
		{"Reading " + v.target.Name(), v.read},
		{"Comparing", v.compare},
	})
}

// expect reads the record file or the directory.
func (v *verification) expect(context.Context) (end bool, err error) {
	for _, s := range v.o.records {
		v.want[s.Cluster] = expected{AgainstRecord, s}
	}
	switch {
	case v.o.RecordFile != "":
		all, err := record.FromFile(v.o.RecordFile)
		if err != nil {
			return true, err
		}
		for _, s := range all {
			v.want[s.Cluster] = expected{AgainstRecordFile, s}
		}
	case v.o.Dir != "":
		all, warnings, err := fromFolder(v.o.Dir)
		if err != nil {
			return true, err
		}
		warn(v.o.Progress, v.told, v.o.Dir, warnings)
		for _, s := range all {
			v.want[s.Cluster] = expected{AgainstDirectory, s}
		}
	}
	return false, nil
}

// read takes in both sides.
func (v *verification) read(ctx context.Context) (end bool, err error) {
	scope := management.Scope{Namespace: v.o.Namespace}
	g, warnings, err := v.target.Read(ctx, scope)
	if err != nil {
		return true, err
	}
	warn(v.o.Progress, v.told, v.target.Name(), warnings)
	v.have = g
	if v.source == nil {
		return false, nil
	}
	v.onSource, warnings, err = v.source.Read(ctx, scope)
	if err != nil {
		return true, err
	}
	warn(v.o.Progress, v.told, v.source.Name(), warnings)
	return false, nil
}

func (v *verification) compare(ctx context.Context) (end bool, err error) {
	clusters := v.clusters()
	if len(clusters) == 0 {
		v.result.Outcome = flow.Findings
		v.result.Clusters = append(v.result.Clusters, VerifiedCluster{Against: AgainstRules, Findings: []finding.Finding{preflight.NoCluster(v.target.Name(), v.o.Namespace)}})
		v.result.Message = "nothing was verified"
		return true, nil
	}
	for _, cluster := range clusters {
		judged, err := v.judge(ctx, cluster)
		if err != nil {
			return true, err
		}
		finding.Sort(judged.Findings)
		v.result.Clusters = append(v.result.Clusters, judged)
		if slices.ContainsFunc(judged.Findings, func(f finding.Finding) bool { return f.Severity != finding.Notes }) {
			v.result.Outcome = flow.Findings
		}
	}
	return true, nil
}

// clusters are the named ones; else those of the file or directory; else those
// on the target and those that are still on the source.
func (v *verification) clusters() []graph.ID {
	found := map[graph.ID]bool{}
	switch {
	case len(v.o.Names) > 0:
		for _, n := range v.o.Names {
			found[graph.ID{Group: graph.CoreGroup, Kind: graph.Cluster.Kind, Namespace: n.Namespace, Name: n.Name}] = true
		}
	case len(v.want) > 0:
		for cluster := range v.want {
			if v.o.Namespace == "" || cluster.Namespace == v.o.Namespace {
				found[cluster] = true
			}
		}
	default:
		for _, g := range []*graph.Graph{v.have, v.onSource} {
			if g == nil {
				continue
			}
			for _, id := range preflight.Select(g, v.o.Namespace, nil) {
				found[id] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), graph.ID.Compare)
}

func (v *verification) judge(ctx context.Context, cluster graph.ID) (VerifiedCluster, error) {
	want, problems, err := v.wanted(ctx, cluster)
	if err != nil {
		return VerifiedCluster{}, err
	}
	judged := VerifiedCluster{Cluster: cluster, Against: want.against, Findings: append([]finding.Finding{}, problems...)}
	o := adopt.VerifyOptions{Other: otherSide(v.onSource, cluster)}
	if v.rollouts != nil {
		s := adopt.State{Cluster: cluster, Graph: v.have}
		if want.against != AgainstRules {
			s.Record.Snapshot = &want.snapshot
		}
		found, err := v.rollouts(ctx, s)
		if err != nil {
			return VerifiedCluster{}, err
		}
		judged.Findings = append(judged.Findings, found...)
	}
	if want.against == AgainstRules {
		judged.Objects = len(v.have.Belongs(cluster))
		judged.Findings = append(judged.Findings, adopt.VerifyByRules(cluster, v.have, o)...)
		return judged, nil
	}
	judged.Objects = len(want.snapshot.Nodes)
	judged.Findings = append(judged.Findings, adopt.Verify(want.snapshot, v.have, o)...)
	if want.against != AgainstSource && v.onSource != nil {
		judged.Findings = append(judged.Findings, leftOnSource(want.snapshot, v.onSource)...)
	}
	return judged, nil
}

// wanted chooses what a Cluster is compared with.
func (v *verification) wanted(ctx context.Context, cluster graph.ID) (expected, []finding.Finding, error) {
	if want, ok := v.want[cluster]; ok {
		return want, nil, nil
	}
	e, err := v.records.read(ctx, cluster)
	if err != nil {
		return expected{}, nil, err
	}
	var problems []finding.Finding
	for _, m := range e.Partial {
		problems = append(problems, finding.Finding{ID: "RecordUnusable", Severity: finding.Harms, Object: m.Object.String(),
			Message: m.What + ", so the record cannot be used", Remedy: "give the record with --record FILE"})
	}
	if e.Snapshot != nil {
		return expected{AgainstRecord, *e.Snapshot}, nil, nil
	}
	if v.onSource != nil {
		if _, ok := v.onSource.Object(cluster); ok {
			return expected{AgainstSource, unpaused(v.onSource.Snapshot(cluster))}, problems, nil
		}
	}
	return expected{against: AgainstRules}, problems, nil
}

// unpaused takes the pauses of Clusters and ClusterClasses for clusterctl's: it
// pauses both before it writes a directory or creates on the target.
func unpaused(s graph.Snapshot) graph.Snapshot {
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		if gk := s.Nodes[i].GroupKind(); gk == graph.Cluster || gk == graph.ClusterClass {
			s.Nodes[i].PausedByUser, s.Nodes[i].Facts.Paused = false, false
		}
	}
	return s
}

// otherSide is what a graph of the other side says of a Cluster.
func otherSide(g *graph.Graph, cluster graph.ID) adopt.OtherSide {
	if g == nil {
		return adopt.OtherUnknown
	}
	o, ok := g.Object(cluster)
	switch {
	case ok && o.Facts.Paused: // the annotation pauses no more than the Cluster object itself
		return adopt.OtherPaused
	case ok:
		return adopt.OtherUnpaused
	case g.Listed(graph.Cluster, cluster.Namespace):
		return adopt.OtherAbsent
	default:
		return adopt.OtherUnknown
	}
}

// leftOnSource finds what clusterctl should have deleted. What Clusters may share
// (a ClusterClass, cluster-scoped identities) it leaves on purpose.
func leftOnSource(s graph.Snapshot, source *graph.Graph) []finding.Finding {
	var found []finding.Finding
	for _, id := range alone(s) {
		if _, ok := source.Object(id); !ok {
			continue
		}
		found = append(found, finding.Finding{
			ID: "LeftOnSource", Severity: finding.Harms, Object: id.String(),
			Message: "is still on the source", Remedy: "see `move-hook status`",
		})
	}
	return found
}

// alone are the objects of a record that move and are this Cluster's alone.
func alone(s graph.Snapshot) []graph.ID {
	g, err := s.Graph()
	if err != nil {
		// A snapshot that was read is valid; one that was taken is of a graph that was built.
		return nil
	}
	var mine []graph.ID
	for o := range g.Hierarchy(s.Cluster).All() {
		if n, ok := s.Node(o.ID); ok && n.Moves && o.Namespace == s.Cluster.Namespace {
			mine = append(mine, o.ID)
		}
	}
	return mine
}
