package pivot

import (
	"context"
	"time"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

// host is what a flow needs of a management cluster to read and change objects.
type host interface {
	Name() string
	Read(ctx context.Context, scope management.Scope) (*graph.Graph, []management.Warning, error)
	Apply(ctx context.Context, a adopt.Action, dryRun bool) (adopt.Outcome, error)
}

// step is one named part of a flow; without a name nothing is said of it. It returns true to end the flow; how it ended
// is in the flow's result.
type step struct {
	name string
	run  func(context.Context) (end bool, err error)
}

// follow runs steps in order until one ends the flow.
func follow(ctx context.Context, progress flow.Progress, steps []step) error {
	for _, s := range steps {
		if s.name != "" {
			progress.Say(flow.Update{Time: time.Now(), Step: s.name})
		}
		end, err := s.run(ctx)
		if err != nil || end {
			return err
		}
	}
	return nil
}

// warn tells what could not be read, once for each.
func warn(progress flow.Progress, told map[string]bool, side string, warnings []management.Warning) {
	for _, w := range warnings {
		if told[w.String()] {
			continue
		}
		told[w.String()] = true
		progress.Say(flow.Update{Time: time.Now(), Message: "cannot read " + w.What + " on " + side + ", what it holds is unknown: " + w.Why, Warning: true})
	}
}
