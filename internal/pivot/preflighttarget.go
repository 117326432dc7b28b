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
	clusters, err := c.target.Clusters(ctx, c.o.Namespace)
	if err != nil {
		return nil, err
	}
	return &preflight.TargetFacts{Name: c.target.Name(), Clusters: clusters}, nil
}
