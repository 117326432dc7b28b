package adopt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// Verdict is what came of a check.
type Verdict string

const (
	Fine    Verdict = "fine"
	Refused Verdict = "refused"
	// Allowed: it is not as it should be, and a flag or the record lets it pass.
	Allowed Verdict = "allowed"
	// Skipped: the check is not for this Cluster, or nobody could look.
	Skipped Verdict = "skipped"
)

// Check is one question that is asked before a Cluster is adopted, and its answer.
type Check struct {
	// Name says what is asked, in a few words.
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Compared are the values that were looked at, a line each.
	Compared []string `json:"compared,omitempty"`
	// Diff is upstream's comparison of KubeadmConfigs, where they differ.
	Diff     string            `json:"diff,omitempty"`
	Findings []finding.Finding `json:"findings,omitempty"`
}

// Explain gives all that is asked about a complete Cluster before it is adopted,
// with what was compared, also where everything is fine. While the Cluster is not
// complete there is nothing to ask: nil.
func Explain(s State) []Check {
	if impossible(&s) != "" {
		return nil
	}
	v := newView(&s)
	if v.cluster == nil || Decide(s).Phase == Deferred {
		return nil
	}
	refused, notes := v.refusals(), []finding.Finding{}
	for _, d := range v.judgeAll(v.members) {
		for _, f := range d.faults {
			if f.cure == refuse {
				refused = append(refused, f.Finding)
			}
		}
	}
	rollouts, toCome := v.rollouts()
	refused, notes = append(refused, rollouts...), append(notes, toCome...)
	out := []Check{
		v.explainSource(),
		{Name: "one control plane", Compared: v.namesOf(v.controlPlanes)},
		{Name: "nothing is being deleted", Compared: []string{fmt.Sprintf("%d objects", len(v.own))}},
		{Name: "Machines are controlled by nobody else", Compared: v.controllersOf()},
		v.explainBootstrap(),
		v.explainVersions(),
		{Name: "replicas are the Machines found", Compared: v.countsOf()},
	}
	ids := [][]string{
		{idSourceUnpaused}, {idTwoControlPlanes}, {idBeingDeleted, idOwnerBeingDeleted}, {idForeignController, idSecondController, idTwoControllers, idAmbiguousOwner},
		{idBootstrapKind}, {idVersionSkew}, {idReplicasDiffer},
	}
	for i := range out {
		out[i].settle(pick(refused, ids[i]), nil)
	}
	out = append(out, v.explainRollouts(refused, notes)...)
	seen := map[string]bool{}
	for _, c := range out {
		for _, f := range c.Findings {
			seen[f.String()] = true
		}
	}
	others := Check{Name: "labels and owners are as recorded", Verdict: Fine}
	others.settle(slices.DeleteFunc(refused, func(f finding.Finding) bool { return seen[f.String()] }), nil)
	return append(out, others)
}

// settle gives a check its verdict, unless it was skipped.
func (c *Check) settle(refused, notes []finding.Finding) {
	c.Findings = sortFindings(slices.Concat(c.Findings, refused, notes))
	switch {
	case len(refused) > 0:
		c.Verdict = Refused
	case c.Verdict == Skipped:
	case slices.ContainsFunc(notes, func(f finding.Finding) bool { return f.ID == idWillRollOut }):
		c.Verdict = Allowed
	case c.Verdict == "":
		c.Verdict = Fine
	}
}

func pick(fs []finding.Finding, ids []string) []finding.Finding {
	return slices.DeleteFunc(slices.Clone(fs), func(f finding.Finding) bool { return !slices.Contains(ids, f.ID) })
}

func (v *view) explainSource() Check {
	c := Check{Name: "the source does not reconcile its copy", Compared: []string{"its copy is " + string(cmp.Or(v.Other, OtherUnknown))}}
	if v.Other == OtherUnknown || v.Other == "" {
		c.Verdict = Skipped
	}
	return c
}

func (v *view) namesOf(objects []*graph.Object) []string {
	var out []string
	for _, o := range objects {
		out = append(out, o.ID.String())
	}
	if len(out) == 0 {
		out = []string{"none"}
	}
	return out
}

func (v *view) controllersOf() []string {
	var out []string
	for _, m := range v.machines {
		by := "nobody"
		if e, ok := v.Graph.Controller(m.ID); ok {
			by = e.To.String()
		}
		out = append(out, fmt.Sprintf("%s: by %s", m.ID, by))
	}
	return out
}

func (v *view) explainBootstrap() Check {
	c := Check{Name: "bootstrap configs are KubeadmConfigs"}
	if !v.isKubeadm() {
		c.Verdict, c.Compared = Skipped, []string{"no KubeadmControlPlane"}
		return c
	}
	for _, m := range v.controlPlaneMachines {
		kind := "none"
		if to, ok := m.RefTo(graph.FieldBootstrapConfigRef); ok {
			kind = to.GroupKind().String()
		}
		c.Compared = append(c.Compared, fmt.Sprintf("%s: %s", m.ID, kind))
	}
	return c
}

func (v *view) explainVersions() Check {
	c := Check{Name: "Kubernetes versions"}
	if v.controlPlane == nil {
		c.Verdict, c.Compared = Skipped, []string{"no control plane"}
		return c
	}
	want := cmp.Or(v.controlPlane.Facts.Version, "none")
	for _, m := range v.controlPlaneMachines {
		have := cmp.Or(m.Facts.Version, "none")
		c.Compared = append(c.Compared, fmt.Sprintf("%s: %s, %s: %s", m.ID, have, v.controlPlane.Kind, want))
		if have != want {
			c.Verdict = Allowed
		}
	}
	return c
}

func (v *view) countsOf() []string {
	var out []string
	line := func(o *graph.Object, have int) {
		out = append(out, fmt.Sprintf("%s: spec.replicas %s, found %d", o.ID, cmp.Or(number(o.Facts.Replicas), "none"), have))
	}
	if v.controlPlane != nil {
		line(v.controlPlane, len(v.controlPlaneMachines))
	}
	have := v.dependents()
	for _, set := range v.sets {
		line(set, have[set.ID])
	}
	return out
}

// explainRollouts has a check for each control-plane Machine.
func (v *view) explainRollouts(refused, notes []finding.Finding) []Check {
	const name = "its control plane leaves it as it is"
	asked := v.judgedByUpstream()
	if len(asked) == 0 {
		return []Check{{Name: "the control plane replaces no Machine", Verdict: Skipped, Compared: []string{"no KubeadmControlPlane"}}}
	}
	var out []Check
	if v.RolloutUnknown != "" || len(v.otherProvider()) > 0 {
		c := Check{Name: "the control plane's verdict can be foretold", Verdict: Skipped}
		ids := []string{idRolloutUnknown, idPredictionVersion}
		c.settle(pick(refused, ids), pick(notes, ids))
		out = append(out, c)
	}
	for _, id := range asked {
		c := Check{Name: id.String() + ": " + name}
		r, ok := v.Rollout[id]
		switch {
		case !ok:
			c.Verdict, c.Compared = Skipped, []string{"not asked"}
		case r.UpToDate:
			c.Compared = []string{"equal, as Cluster API " + r.Version + " judges"}
		default:
			for _, why := range r.Reasons {
				c.Compared = append(c.Compared, strings.ReplaceAll(why.String(), "\n", " "))
			}
			c.Diff = r.Diff
		}
		of := func(fs []finding.Finding) []finding.Finding {
			return slices.DeleteFunc(pick(fs, []string{idWouldRollOut, idWillRollOut}), func(f finding.Finding) bool { return f.Object != id.String() })
		}
		c.settle(of(refused), of(notes))
		out = append(out, c)
	}
	return out
}
