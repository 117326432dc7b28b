package pivot

import (
	"context"

	"github.com/move-hook/move-hook/internal/preflight"
	"github.com/move-hook/move-hook/pkg/graph"
)

// targetReader is what a preflight needs of a target.
type targetReader interface {
	Name() string
	Clusters(ctx context.Context, namespace string) ([]graph.Object, error)
}

// readTarget reads what the checks of the target want to know. The source has been
// read; nothing is written.
func (c *checking) readTarget(ctx context.Context) (*preflight.TargetFacts, error) {
	facts := &preflight.TargetFacts{Name: c.target.Name()}
	if c.o.Target != nil {
		s := survey{source: c.o.Source, target: c.o.Target, scope: c.scope, namespace: c.o.Namespace, offer: c.o.Offer,
			progress: c.o.Progress, told: c.told, facts: facts}
		if err := s.run(ctx); err != nil {
			return nil, err
		}
		if len(facts.Kinds[graph.Cluster].Served) == 0 {
			return facts, nil
		}
	}
	var err error
	facts.Clusters, err = c.target.Clusters(ctx, c.o.Namespace)
	return facts, err
}
