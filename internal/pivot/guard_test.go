package pivot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/move-hook/move-hook/internal/fleet"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/policy"
	"github.com/move-hook/move-hook/pkg/graph"
)

// wall is a guard in memory.
type wall struct {
	state   policy.GuardState
	pending []graph.ID
	arms    []policy.Arm
	// Errors of each call, by its name.
	errs map[string]error
}

func (w *wall) Guard(context.Context) ([]flow.Write, error) {
	if err := w.errs["Guard"]; err != nil || w.state == policy.GuardInstalled {
		return nil, err
	}
	w.state = policy.GuardInstalled
	return []flow.Write{"guard created"}, nil
}

func (w *wall) Guarded(context.Context) (policy.GuardState, error) {
	return w.state, w.errs["Guarded"]
}

func (w *wall) Unguard(context.Context) ([]flow.Write, error) {
	if err := w.errs["Unguard"]; err != nil {
		return nil, err
	}
	w.state = policy.GuardAbsent
	return []flow.Write{"guard deleted"}, nil
}

func (w *wall) Pending(context.Context) ([]graph.ID, error) { return w.pending, w.errs["Pending"] }
func (w *wall) Arms(context.Context) ([]policy.Arm, error)  { return w.arms, w.errs["Arms"] }

var (
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "policies"}, "move-hook-guard", errors.New("you may not"))
	errUnserved  = fmt.Errorf("policies: %w", policy.ErrUnserved)
	errAway      = errors.New("connection refused")
)

func TestGuard_Install(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		wrote   []flow.Write
		failed  error
		warning string
	}{
		"is installed": {nil, []flow.Write{"guard created on the target"}, nil, ""},
		"forbidden":    {errForbidden, nil, nil, "there is no guard on there, nobody is kept from changing or deleting what is being moved: "},
		"not served":   {errUnserved, nil, nil, "there is no guard on there, nobody is kept from changing or deleting what is being moved: "},
		"away":         {errAway, nil, errAway, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, told := &wall{state: policy.GuardAbsent, errs: map[string]error{"Guard": c.err}}, map[string]bool{}
			var said []string
			var all []flow.Write
			for range 2 {
				wrote, err := guarded{w, "there", " on the target"}.install(t.Context(), func(u flow.Update) { said = append(said, u.Message) }, told)
				if !errors.Is(err, c.failed) {
					t.Errorf("error %v", err)
				}
				all = append(all, wrote...)
			}
			if diff := cmp.Diff(c.wrote, all); diff != "" {
				t.Error(diff)
			}
			if (c.warning == "") != (len(said) == 0) || len(said) > 1 || len(said) == 1 && !strings.HasPrefix(said[0], c.warning) {
				t.Errorf("said %q", said)
			}
		})
	}
}

func TestGuard_LiftsWhenNothingNeedsIt(t *testing.T) {
	machine := []graph.ID{fleet.ID(graph.Machine, "m")}
	for name, c := range map[string]struct {
		wall
		wrote, left int
		failed      error
		warning     bool
	}{
		"nothing is pending":      {wall{state: policy.GuardInstalled}, 1, 0, nil, false},
		"half of it":              {wall{state: policy.GuardPartial}, 1, 0, nil, false},
		"it is not there":         {wall{state: policy.GuardAbsent, pending: machine}, 0, 0, nil, false},
		"something is pending":    {wall{state: policy.GuardInstalled, pending: machine}, 0, 1, nil, false},
		"something is armed":      {wall{state: policy.GuardInstalled, arms: []policy.Arm{{}}}, 0, 0, nil, false},
		"nothing can be armed":    {wall{state: policy.GuardInstalled, errs: map[string]error{"Arms": errUnserved}}, 1, 0, nil, false},
		"nobody may look":         {wall{state: policy.GuardInstalled, errs: map[string]error{"Guarded": errForbidden}}, 0, 0, nil, false},
		"who is pending: secret":  {wall{state: policy.GuardInstalled, errs: map[string]error{"Pending": errForbidden}}, 0, 0, nil, true},
		"it may not be removed":   {wall{state: policy.GuardInstalled, errs: map[string]error{"Unguard": errForbidden}}, 0, 0, nil, true},
		"the API server is away":  {wall{state: policy.GuardInstalled, errs: map[string]error{"Guarded": errAway}}, 0, 0, errAway, false},
		"it goes away in between": {wall{state: policy.GuardInstalled, errs: map[string]error{"Pending": errAway}}, 0, 0, errAway, false},
	} {
		t.Run(name, func(t *testing.T) {
			warned := false
			wrote, left, err := guarded{&c.wall, "there", ""}.lift(t.Context(), func(u flow.Update) { warned = warned || u.Warning })
			if len(wrote) != c.wrote || len(left) != c.left || !errors.Is(err, c.failed) || warned != c.warning {
				t.Errorf("wrote %q, left %v, error %v, warned %t", wrote, left, err, warned)
			}
			if gone := c.wall.state == policy.GuardAbsent; gone != (c.wrote > 0 || name == "it is not there") {
				t.Errorf("the guard is %s", c.wall.state)
			}
		})
	}
}

func TestPre_GuardsBeforeItLabels(t *testing.T) {
	c, s := newCluster("source")
	c.Cluster("c1", 3, 2)
	w := &wall{state: policy.GuardAbsent}
	p := preparing(c, s, PreOptions{})
	p.guarded = []guarded{{w, "source", ""}}
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	guard, label := -1, -1
	for i, wrote := range p.result.Writes {
		if wrote == "guard created" {
			guard = i
		}
		if strings.HasSuffix(string(wrote), "labelled") && label < 0 {
			label = i
		}
	}
	if guard < 0 || label < guard {
		t.Errorf("%q", p.result.Writes)
	}
	again := preparing(c, s, PreOptions{})
	again.guarded = p.guarded
	if err := again.run(t.Context()); err != nil || len(again.result.Writes) > 0 {
		t.Errorf("%v: the second run wrote %q", err, again.result.Writes)
	}
	// Who may not manage policies is warned and goes on.
	warned := 0
	w.errs = map[string]error{"Guard": errForbidden}
	limited := preparing(c, s, PreOptions{Progress: func(u flow.Update) {
		if u.Warning {
			warned++
		}
	}})
	limited.guarded = p.guarded
	if err := limited.run(t.Context()); err != nil || limited.result.Outcome != flow.Done || warned != 1 {
		t.Errorf("%v, %s, %d warnings", err, limited.result.Outcome, warned)
	}
}

func TestMove_TakesTheGuardOffBothSides(t *testing.T) {
	s := tell([]ClusterStatus{status("c1", Untouched, "whole", "")}, []ClusterStatus{status("c1", Arrived, "", "whole pending")})
	source, target := &wall{state: policy.GuardInstalled}, &wall{state: policy.GuardInstalled, pending: []graph.ID{fleet.ID(graph.Machine, "of-another")}}
	s.guarded = []guarded{{source, "source", ""}, {target, "target", " on the target"}}
	if err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]flow.Write{"guard deleted"}, s.result.Policies); diff != "" || target.state != policy.GuardInstalled {
		t.Errorf("%s; on the target it is %s", diff, target.state)
	}
}
