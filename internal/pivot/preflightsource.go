package pivot

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/preflight"
	"github.com/move-hook/move-hook/internal/rollout"
	"github.com/move-hook/move-hook/pkg/graph"
)

const (
	// manyRollouts is how many Clusters' control planes are asked about unbidden: each
	// costs some ten requests.
	manyRollouts = 20
	// manyBlocked is how many holders of block-move annotations are looked up.
	manyBlocked = 20
)

// asked is what a preflight wants to know of the source beside its graph.
type asked interface {
	rollout.Source
	Clusters(ctx context.Context, namespace string) ([]graph.Object, error)
	KubeadmProviderVersion(ctx context.Context) (string, error)
	// AnnotatedBy is who wrote an annotation last; empty where that is not known.
	AnnotatedBy(ctx context.Context, id graph.ID, annotation string) (string, error)
}

// askSource adds what the graph does not tell. A host that cannot be asked says nothing.
func (c *checking) askSource(ctx context.Context, in *preflight.Input) error {
	source, ok := c.source.(asked)
	if !ok {
		return nil
	}
	if err := c.askRollouts(ctx, source, in); err != nil {
		return err
	}
	in.BlockedBy = map[graph.ID]string{}
	for _, o := range in.Source.All() {
		if _, blocked := o.Annotations[graph.BlockMoveAnnotation]; !blocked || len(in.BlockedBy) == manyBlocked {
			continue
		}
		by, err := source.AnnotatedBy(ctx, o.ID, graph.BlockMoveAnnotation)
		if err != nil {
			return err
		}
		in.BlockedBy[o.ID] = by
	}
	if c.o.Namespace == "" || len(in.Source.Graph.OfKind(graph.ClusterClass)) == 0 {
		return nil
	}
	clusters, err := source.Clusters(ctx, "")
	if err != nil {
		// Who may not see other namespaces learns nothing of them.
		warn(c.o.Progress, c.told, c.source.Name(), []management.Warning{{What: "Clusters of other namespaces", Why: err.Error()}})
		return nil //nolint:nilerr // It was told as a warning.
	}
	for i := range clusters {
		if clusters[i].Namespace != c.o.Namespace {
			in.Others = append(in.Others, clusters[i])
		}
	}
	return nil
}

// askRollouts asks upstream which Machines each control plane will replace.
func (c *checking) askRollouts(ctx context.Context, source asked, in *preflight.Input) error {
	machines := map[graph.ID][]graph.ID{}
	controlPlanes := map[graph.ID]graph.ID{}
	for _, cluster := range in.Source.Clusters {
		if cp, ms := preflight.RolloutQuestion(in.Source, cluster); len(ms) > 0 {
			controlPlanes[cluster], machines[cluster] = cp, ms
		}
	}
	if len(machines) > manyRollouts && !c.o.Rollouts {
		c.o.Progress.Say(flow.Update{Time: time.Now(), Message: fmt.Sprintf("Whether Machines will be replaced was not asked for %d control planes: name Clusters, or run preflight with --rollouts", len(machines))})
		return nil
	}
	// What is installed is only told: that it cannot be read is no reason to stop.
	version, _ := source.KubeadmProviderVersion(ctx)
	in.Rollouts = map[graph.ID]preflight.Rollout{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for cluster := range machines {
		group.Go(func() error {
			answer, err := rollout.Ask(ctx, source, cluster, controlPlanes[cluster], machines[cluster])
			if err != nil {
				return fmt.Errorf("asking whether %s would replace Machines: %w", controlPlanes[cluster], err)
			}
			mu.Lock()
			defer mu.Unlock()
			in.Rollouts[cluster] = preflight.Rollout{Verdicts: answer.Verdicts, Unknown: answer.Unknown, ProviderVersion: version}
			return nil
		})
	}
	return group.Wait()
}
