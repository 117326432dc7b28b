package pivot

import (
	"context"
	"errors"
	"time"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/policy"
	"github.com/move-hook/move-hook/internal/scaledown"
	"github.com/move-hook/move-hook/pkg/graph"
)

// guarding is what the flows need of policy.Store.
type guarding interface {
	Guard(context.Context) ([]flow.Write, error)
	Guarded(context.Context) (policy.GuardState, error)
	Unguard(context.Context) ([]flow.Write, error)
	Pending(context.Context) ([]graph.ID, error)
	Arms(context.Context) ([]policy.Arm, error)
}

// guarded is a management cluster that a pivot guards.
type guarded struct {
	guarding
	// name is the management cluster's, and where is put behind its writes.
	name, where string
}

func guardOf(c *management.Cluster, where string, dryRun bool) guarded {
	return guarded{policy.New(c, dryRun), c.Name(), where}
}

func (g guarded) placed(writes []flow.Write) []flow.Write {
	for i := range writes {
		writes[i] += flow.Write(g.where)
	}
	return writes
}

// install installs the guard. A pivot is safe without it as long as nobody
// interferes, so that policies cannot be managed is a warning, given once.
func (g guarded) install(ctx context.Context, progress flow.Progress, told map[string]bool) ([]flow.Write, error) {
	wrote, err := g.Guard(ctx)
	if policy.Unavailable(err) {
		if key := "guard " + g.name; !told[key] {
			told[key] = true
			progress.Say(flow.Update{Time: time.Now(), Warning: true, Message: "there is no guard on " + g.name +
				", nobody is kept from changing or deleting what is being moved: " + err.Error()})
		}
		err = nil
	}
	return g.placed(wrote), err
}

// lift takes the guard off once nothing on the management cluster needs it: left is
// what is pending there still, in any namespace. It stays while something is armed,
// and where what is pending cannot be listed.
func (g guarded) lift(ctx context.Context, progress flow.Progress) (wrote []flow.Write, left []graph.ID, err error) {
	state, err := g.Guarded(ctx)
	switch {
	case policy.Unavailable(err):
		return nil, nil, nil
	case err != nil || state == policy.GuardAbsent:
		return nil, nil, err
	}
	left, err = g.Pending(ctx)
	if err == nil && len(left) == 0 {
		var arms []policy.Arm
		arms, err = g.Arms(ctx)
		if len(arms) > 0 {
			return nil, nil, nil
		}
		if errors.Is(err, policy.ErrUnserved) {
			err = nil
		}
	}
	if err == nil && len(left) == 0 {
		wrote, err = g.Unguard(ctx)
	}
	if policy.Unavailable(err) {
		progress.Say(flow.Update{Time: time.Now(), Warning: true, Message: "the guard stays on " + g.name + ", run `move-hook disarm` as somebody who may remove it: " + err.Error()})
		err = nil
	}
	for _, w := range g.placed(wrote) {
		progress.Say(flow.Update{Time: time.Now(), Wrote: w})
	}
	return wrote, left, err
}

// PolicyStatus is what one side is armed and guarded with, and whether its
// providers are stopped instead.
type PolicyStatus struct {
	// On is "source" or "target".
	On    string            `json:"on"`
	Arms  []policy.Arm      `json:"arms,omitempty"`
	Guard policy.GuardState `json:"guard,omitempty"`
	// Stopped is since when the providers are scaled to zero by move-hook; nil if they are not.
	Stopped *time.Time `json:"stopped,omitempty"`
	// Unknown says why nobody can tell.
	Unknown string `json:"unknown,omitempty"`
}

// policyStatus looks. A server without the API has no policies.
func policyStatus(ctx context.Context, on string, g guarding, providers func(context.Context) (scaledown.State, error)) PolicyStatus {
	s := PolicyStatus{On: on}
	var errArms, errGuard error
	s.Arms, errArms = g.Arms(ctx)
	s.Guard, errGuard = g.Guarded(ctx)
	stopped, errProviders := providers(ctx)
	if stopped.Down {
		s.Stopped = &stopped.Since
	}
	for _, err := range []error{errArms, errGuard, errProviders} {
		if err != nil && !errors.Is(err, policy.ErrUnserved) {
			s.Unknown = err.Error()
		}
	}
	return s
}
