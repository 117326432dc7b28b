package pivot

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/policy"
	"github.com/move-hook/move-hook/internal/scaledown"
)

// ArmByScaleDown stops the target's providers instead of holding what arrives: for
// API servers that cannot be armed. It concerns the whole management cluster.
// Post holds what has arrived and scales them up; so does Disarm.
func ArmByScaleDown(ctx context.Context, o ArmOptions) (ArmResult, error) {
	r := ArmResult{Outcome: flow.Done, DryRun: o.DryRun, Arms: []policy.Arm{}, Writes: []flow.Write{}}
	providers := scaledown.Providers{Cluster: o.Target, Progress: o.Progress}
	err := follow(ctx, o.Progress, []step{
		{"Scaling the providers of " + o.Target.Name() + " to zero", func(ctx context.Context) (bool, error) {
			wrote, err := providers.Down(ctx, o.DryRun)
			r.Writes = append(r.Writes, wrote...)
			return err != nil, err
		}},
	})
	switch {
	case errors.Is(err, scaledown.ErrNoProviders):
		r.Outcome, r.Message = flow.Blocked, err.Error()
		return r, nil
	case err != nil:
		return r, err
	}
	r.Message = fmt.Sprintf("the providers of %s are scaled to zero: `move-hook post` scales them up once everything that arrived is complete and held, `move-hook disarm` does so at once", o.Target.Name())
	if o.DryRun {
		r.Message = ""
	}
	return r, nil
}

// raise scales up what ArmByScaleDown has scaled down, if anything is. Who may not
// look at Deployments has not scaled them down either: that is said, and no more.
func (r *ArmResult) raise(ctx context.Context, o DisarmOptions) error {
	providers := scaledown.Providers{Cluster: o.Target, Progress: o.Progress}
	wrote, err := providers.Up(ctx, o.DryRun)
	r.Writes = append(r.Writes, wrote...)
	if apierrors.IsForbidden(err) && len(wrote) == 0 {
		if s, blind := providers.State(ctx); blind == nil && s.Down {
			return err
		}
		o.Progress.Say(flow.Update{Time: time.Now(), Warning: true, Message: fmt.Sprintf("whether the providers are scaled down is unknown: %v", err)})
		return nil
	}
	return err
}
