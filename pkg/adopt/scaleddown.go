package adopt

import (
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// holder is who the holds are by that Decide itself puts on what arrived while no
// controller ran.
const holder = "move-hook post"

// noControllers is what is awaited of a Cluster that is complete, owned and held
// while the providers are scaled down.
const noControllers = "has no controllers: the providers' Deployments are scaled to zero"

// scaledDown is the plan for a Cluster whose owners are right while the providers'
// controllers are off: status cannot be rebuilt without them, and nothing that
// arrived meanwhile need be held. So everything that scales is held and labelled
// first, as an armed target would have done on arrival; then the controllers are
// awaited, and from there on the way is the usual one.
func (v *view) scaledDown(notes []finding.Finding) Plan {
	if steps := v.holdSteps(); len(steps) > 0 {
		return repairing(v.Cluster, steps, notes)
	}
	return awaiting(v.Cluster, []Missing{{Object: v.Cluster, What: noControllers, Maker: "move-hook post, once all that arrived stands so"}}, notes)
}

// holdSteps hold what makes or deletes Machines, and label the control plane and
// its Machines. A pause of somebody else is left as it is and not held on top.
func (v *view) holdSteps() []Step {
	by := labels.Holder{Who: holder, Since: v.Now}
	var scalers, machines Step
	for _, o := range v.own {
		m := labels.MetaOf(o)
		var c labels.Change
		isControlPlane := v.controlPlane != nil && o.ID == v.controlPlane.ID
		if v.isScaler(o) || o.GroupKind() == graph.MachineHealthCheck {
			c = labels.Hold(m, by)
		}
		if isControlPlane || o.GroupKind() == graph.Machine && isControlPlaneMachine(o.Labels) {
			c.SetLabels = labels.MarkPending(m).SetLabels
		}
		if c.Empty() {
			continue
		}
		a := ChangeMeta{On: targetOf(o), Change: c, Reason: "no controller runs: hold it before one does"}
		if o.GroupKind() == graph.Machine {
			machines = append(machines, a)
		} else {
			scalers = append(scalers, a)
		}
	}
	return tidy([]Step{scalers, machines})
}

// AwaitsControllers says that nothing is awaited but the providers' controllers,
// which are scaled down: the Cluster is complete, owned as it was, and held.
func (p Plan) AwaitsControllers() bool {
	return len(p.Waiting) == 1 && p.Waiting[0].What == noControllers
}
