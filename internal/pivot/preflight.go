package pivot

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/preflight"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// PreflightOptions say what to check.
type PreflightOptions struct {
	Source *management.Cluster
	// Target may be nil: then only what the source alone tells is checked.
	Target *management.Cluster
	// Namespace to check; empty for all.
	Namespace string
	// Names of Clusters; empty for all in the namespace.
	Names []types.NamespacedName
	// FailOn is the least severity that makes the outcome Findings; harms when empty.
	FailOn finding.Severity
	// Ignore are IDs of findings that the user accepts.
	Ignore []string
	// Rollouts asks upstream about the control planes of however many Clusters there
	// are; without it, of a few only.
	Rollouts bool
	// Offer offers everything that moves to the target in a dry run.
	Offer bool
	// Rights asks what this user may do, for a whole pivot with clusterctl.
	Rights   bool
	Progress flow.Progress
}

// Preflight names everything that would go wrong. It only reads.
func Preflight(ctx context.Context, o PreflightOptions) (PreflightResult, error) {
	if err := preflight.CheckIgnore(o.Ignore); err != nil {
		return PreflightResult{}, flow.Usage(err)
	}
	begin := time.Now()
	c := newChecking(o)
	result := PreflightResult{Outcome: flow.Done, Namespace: o.Namespace, Clusters: []graph.ID{}}
	err := follow(ctx, o.Progress, []step{
		{"", func(ctx context.Context) (end bool, err error) {
			result.Findings, err = c.blind(ctx)
			return len(result.Findings) > 0, err
		}},
		{"Reading " + c.source.Name(), c.look},
		{"Checking that nothing stands in the way", func(ctx context.Context) (end bool, err error) {
			result.Findings, result.Ignored, err = c.check(ctx)
			return false, err
		}},
	})
	if err != nil {
		return PreflightResult{}, err
	}
	if c.scope != nil {
		result.Clusters = append(result.Clusters, c.scope.Clusters...)
	}
	if preflight.AtLeast(result.Findings, cmp.Or(o.FailOn, finding.Harms)) {
		result.Outcome = flow.Findings
	}
	result.Seconds = time.Since(begin).Seconds()
	return result, nil
}

// checking is one preflight: the command, or the first steps of Pre.
type checking struct {
	o      PreflightOptions
	source host
	target targetReader
	told   map[string]bool
	// scope is the source as it was read last.
	scope *preflight.Scope
	at    time.Time
}

func newChecking(o PreflightOptions) *checking {
	c := &checking{o: o, source: o.Source, told: map[string]bool{}}
	if o.Target != nil {
		c.target = o.Target
	}
	return c
}

// read takes in what the flows work with, and finds the Clusters that are meant.
func (c *checking) read(ctx context.Context) error {
	return c.readScope(ctx, management.Scope{Namespace: c.o.Namespace})
}

// look takes the whole source in: every provider's specs, for what they refer to. The
// record is not made of this, so that it is the same whoever reads for it.
func (c *checking) look(ctx context.Context) (end bool, err error) {
	return false, c.readScope(ctx, management.Scope{Namespace: c.o.Namespace, Specs: true, Hints: true})
}

func (c *checking) readScope(ctx context.Context, scope management.Scope) error {
	g, warnings, err := c.source.Read(ctx, scope)
	if err != nil {
		return err
	}
	warn(c.o.Progress, c.told, c.source.Name(), warnings)
	c.scope, c.at = preflight.NewScope(g, preflight.Select(g, c.o.Namespace, c.o.Names)), time.Now()
	return nil
}

// check reads what else the checks want to know, and runs them.
func (c *checking) check(ctx context.Context) (found []finding.Finding, ignored map[string]int, err error) {
	in := preflight.Input{SourceName: c.source.Name(), Namespace: c.o.Namespace, Names: c.o.Names, Source: c.scope, Now: c.at}
	if err := c.askSource(ctx, &in); err != nil {
		return nil, nil, err
	}
	if c.target != nil {
		if in.Target, err = c.readTarget(ctx); err != nil {
			return nil, nil, err
		}
	}
	if c.o.Rights {
		if in.Missing, err = c.missingRights(ctx); err != nil {
			return nil, nil, err
		}
	}
	found, ignored = preflight.Ignore(preflight.Run(in), c.o.Ignore)
	return found, ignored, nil
}
