package pivot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/policy"
	"github.com/move-hook/move-hook/internal/watch"
	"github.com/move-hook/move-hook/pkg/graph"
)

// ArmOptions say which target to arm against what.
type ArmOptions struct {
	Target *management.Cluster
	// Namespace and Selector limit what is held; both empty for all that arrives.
	Namespace, Selector string
	// Expires is for how long the arm is meant to stay.
	Expires time.Duration
	// HoldOwners takes owner references off what arrives, until post gives them back.
	HoldOwners bool
	DryRun     bool
	Progress   flow.Progress
}

// ArmResult is how Arm or Disarm ended.
type ArmResult struct {
	// Outcome is Done, or Blocked where the server cannot do it.
	Outcome flow.Outcome `json:"outcome"`
	DryRun  bool         `json:"dryRun,omitempty"`
	// Arms are all that there are on the management cluster now.
	Arms []policy.Arm `json:"arms"`
	// Pending is what keeps the guard in place after Disarm.
	Pending []graph.ID `json:"pending,omitempty"`
	// Notes are about control plane kinds that a hold may not stop.
	Notes []string `json:"notes,omitempty"`
	// Writes in the order in which they were made; empty where all was so already.
	Writes  []flow.Write `json:"writes"`
	Message string       `json:"message,omitempty"`
}

// Arm makes the API server of the target hold and label what arrives there, and
// returns when it does. It may be killed anywhere and run again; armed, it writes
// nothing. The error is a usage error for a selector that is none.
func Arm(ctx context.Context, o ArmOptions) (ArmResult, error) {
	r := ArmResult{Outcome: flow.Done, DryRun: o.DryRun, Arms: []policy.Arm{}, Writes: []flow.Write{}}
	scope := policy.Scope{Namespace: o.Namespace, Selector: o.Selector}
	if err := scope.Validate(); err != nil {
		return r, flow.Usage(err)
	}
	store := policy.New(o.Target, o.DryRun)
	g := guarded{store, o.Target.Name(), ""}
	err := follow(ctx, o.Progress, []step{
		{"Guarding what will be labelled", func(ctx context.Context) (bool, error) {
			// Where nothing can be armed, nothing is labelled.
			if _, err := store.Arms(ctx); err != nil {
				return true, err
			}
			wrote, err := g.install(ctx, o.Progress, map[string]bool{})
			r.wrote(o.Progress, wrote)
			return err != nil, err
		}},
		{"Arming " + scope.String() + " of " + o.Target.Name(), func(ctx context.Context) (bool, error) {
			armed, err := store.Arm(ctx, policy.ArmOptions{Scope: scope, Expires: o.Expires, HoldOwners: o.HoldOwners})
			r.wrote(o.Progress, armed.Writes)
			r.Notes = armed.Notes
			if armed.Unproven != "" {
				o.Progress.Say(flow.Update{Time: time.Now(), Message: armed.Unproven, Warning: true})
			}
			return err != nil, err
		}},
	})
	if errors.Is(err, policy.ErrUnserved) {
		r.Outcome = flow.Blocked
		r.Message = fmt.Sprintf("%s cannot be armed (Kubernetes serves the API by default from 1.36 on, 1.34 and 1.35 as a beta that has to be switched on): "+
			"use `move-hook arm --with=scale-down` instead: %v", o.Target.Name(), err)
		return r, nil
	}
	if err != nil {
		return r, err
	}
	return r, r.now(ctx, store)
}

// DisarmOptions say what to disarm.
type DisarmOptions struct {
	Target *management.Cluster
	// All removes every arm; else that of exactly this Namespace and Selector.
	All                 bool
	Namespace, Selector string
	DryRun              bool
	Progress            flow.Progress
}

// Disarm removes arms, and the guard where nothing needs it. What is held and
// labelled stays so: that is for post to end. Run again it writes nothing.
func Disarm(ctx context.Context, o DisarmOptions) (ArmResult, error) {
	r := ArmResult{Outcome: flow.Done, DryRun: o.DryRun, Arms: []policy.Arm{}, Writes: []flow.Write{}}
	scope := policy.Scope{Namespace: o.Namespace, Selector: o.Selector}
	if err := scope.Validate(); err != nil {
		return r, flow.Usage(err)
	}
	store := policy.New(o.Target, o.DryRun)
	which := scope.Is
	if o.All {
		which = nil
	}
	if err := r.raise(ctx, o); err != nil {
		return r, err
	}
	wrote, err := store.Disarm(ctx, which)
	r.wrote(o.Progress, wrote)
	if err != nil && !errors.Is(err, policy.ErrUnserved) {
		return r, err
	}
	wrote, r.Pending, err = guarded{store, o.Target.Name(), ""}.lift(ctx, o.Progress)
	r.Writes = append(r.Writes, wrote...)
	if err != nil {
		return r, err
	}
	if err := r.now(ctx, store); err != nil {
		return r, err
	}
	switch {
	case len(r.Pending) > 0:
		r.Message = fmt.Sprintf("the guard stays: %s%s is labelled for adoption; run `move-hook post`, or remove its label %s",
			r.Pending[0], andMore(len(r.Pending)-1), graph.AdoptionLabel)
	case len(r.Writes) == 0:
		r.Message = "nothing to disarm in " + scope.String()
		if o.All {
			r.Message = "nothing is armed"
		}
	}
	return r, nil
}

func (r *ArmResult) wrote(progress flow.Progress, writes []flow.Write) {
	r.Writes = append(r.Writes, writes...)
	for _, w := range writes {
		progress.Say(flow.Update{Time: time.Now(), Wrote: w})
	}
}

// now reads back what is armed.
func (r *ArmResult) now(ctx context.Context, store *policy.Store) error {
	arms, err := store.Arms(ctx)
	if err != nil && !errors.Is(err, policy.ErrUnserved) {
		return err
	}
	r.Arms = append(r.Arms, arms...)
	return nil
}

// PostOptions say how the policies of a target are treated around its adoption.
type PostOptions struct {
	Target    *management.Cluster
	Namespace string
	// Disarm removes the arms of the namespace once everything is adopted.
	Disarm   bool
	DryRun   bool
	Progress flow.Progress
}

// PostResult is how the adoption ended, and what became of the policies.
type PostResult struct {
	watch.Result
	Policies []flow.Write `json:"policies,omitempty"`
}

// Post adopts, which run does, warns before of arms that have expired, and takes
// the guard and, if asked, the arm off afterwards. That nobody may look at policies
// keeps no adoption.
func Post(ctx context.Context, o PostOptions, run func(context.Context) (watch.Result, error)) (PostResult, error) {
	store := policy.New(o.Target, o.DryRun)
	if arms, err := store.Arms(ctx); err == nil {
		for _, a := range arms {
			if a.Expired && (o.Namespace == "" || a.Namespace == "" || a.Namespace == o.Namespace) {
				o.Progress.Say(flow.Update{Time: time.Now(), Warning: true, Message: fmt.Sprintf(
					"the arm for %s has expired on %s and holds still what arrives: renew it with `move-hook arm`, or remove it with `move-hook disarm`",
					a.Scope(), a.Expires.Format(time.RFC3339))})
			}
		}
	}
	adopted, err := run(ctx)
	r := PostResult{Result: adopted}
	if err != nil || o.DryRun || ctx.Err() != nil {
		return r, err
	}
	if o.Disarm && adopted.Outcome == flow.Done {
		wrote, err := store.Disarm(ctx, func(s policy.Scope) bool { return o.Namespace == "" || s.Namespace == o.Namespace })
		r.Policies = append(r.Policies, wrote...)
		for _, w := range wrote {
			o.Progress.Say(flow.Update{Time: time.Now(), Wrote: w})
		}
		if err != nil && !errors.Is(err, policy.ErrUnserved) {
			return r, fmt.Errorf("everything is adopted and the arm is not removed, run `move-hook disarm`: %w", err)
		}
	}
	wrote, _, err := guarded{store, o.Target.Name(), ""}.lift(ctx, o.Progress)
	r.Policies = append(r.Policies, wrote...)
	return r, err
}
