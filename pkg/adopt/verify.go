package adopt

import (
	"fmt"
	"strconv"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// VerifyOptions are what Verify knows beside the objects.
type VerifyOptions struct {
	// Other is what is known of the Cluster's copy on the other management cluster.
	Other OtherSide
}

// Verify compares a Cluster with its record, read-only: nothing is missing, owned
// by others, left behind, changed or added. Findings are sorted, worst first; none
// means that the pivot lost nothing.
func Verify(want graph.Snapshot, have *graph.Graph, o VerifyOptions) []finding.Finding {
	s := State{Cluster: want.Cluster, Graph: have, Record: Expectation{Snapshot: &want}, Other: o.Other}
	if why := impossible(&s); why != "" {
		return []finding.Finding{about(idImpossibleState, s.Cluster, why)}
	}
	v := newView(&s)
	out := v.common()
	for i := range want.Nodes {
		n := &want.Nodes[i]
		have, ok := s.Graph.Object(n.ID)
		if !ok {
			out = append(out, v.lost(n)...)
			continue
		}
		out = append(out, changed(n, have)...)
		out = append(out, pauses(n, have)...)
	}
	out = append(out, v.extra()...)
	out = append(out, labelLost(v)...)
	return verified(out)
}

// VerifyByRules judges a Cluster of which there is no record: by what its own
// specs and labels say, and by Cluster API's rules of ownership.
func VerifyByRules(cluster graph.ID, have *graph.Graph, o VerifyOptions) []finding.Finding {
	s := State{Cluster: cluster, Graph: have, Other: o.Other}
	if why := impossible(&s); why != "" {
		return []finding.Finding{about(idImpossibleState, s.Cluster, why)}
	}
	v := newView(&s)
	out := v.common()
	for _, m := range v.incomplete() {
		id := idMissingObject
		if m.unlisted {
			id = idUnjudged
		}
		out = append(out, about(id, m.Object, m.What))
	}
	for _, reason := range []func(*view) []finding.Finding{
		twoControlPlanes, bootstrapNotKubeadm, versionSkew, controlPlaneReplicas, machineSetReplicas, machineDeploymentReplicas,
	} {
		out = append(out, reason(v)...)
	}
	return verified(out)
}

// verified gives the findings their severity in a judgement that stops nothing.
func verified(fs []finding.Finding) []finding.Finding {
	for i := range fs {
		if fs[i].Severity == finding.Stops {
			fs[i].Severity = finding.Harms
		}
	}
	return sortFindings(fs)
}

// common are the checks that need no record: owners, marks, deletion, the other side.
func (v *view) common() []finding.Finding {
	out := sourceUnpaused(v)
	for _, d := range v.judgeAll(v.members) {
		for _, f := range d.faults {
			if f.cure == repair && d.has(refuse) {
				f.Remedy = "resolve what stops the repair, then " + remedyPost
			}
			out = append(out, f.Finding)
		}
	}
	out = append(out, beingDeleted(v)...)
	out = append(out, v.heldLeft()...)
	for _, o := range v.own {
		m := labels.MetaOf(o)
		if labels.IsPending(m) {
			out = append(out, differs(idLabelLeft, o.ID, "metadata.labels["+labels.Adoption+"]", m.Labels[labels.Adoption], "",
				"it still carries the adoption label"))
		}
		if labels.IsHeld(m) {
			out = append(out, differs(idHoldLeft, o.ID, "metadata.annotations["+labels.Held+"]", m.Annotations[labels.Held], "",
				"it is still held"))
		}
	}
	return out
}

// lost is about a node that is not there. What clusterctl does not move was
// recorded because something refers to it, so it is missed as well.
func (v *view) lost(n *graph.SnapshotNode) []finding.Finding {
	if !v.Graph.Listed(n.GroupKind(), n.Namespace) {
		if !n.Moves {
			return nil
		}
		return []finding.Finding{about(idUnjudged, n.ID, "it is in the record, and its kind could not be listed")}
	}
	message := "it is in the record and does not exist"
	if !n.Moves {
		message = "it was referred to on the source, clusterctl does not move it, and it does not exist"
	}
	return []finding.Finding{about(idMissingObject, n.ID, message)}
}

// changed compares the values that a pivot must not change, where the record has them.
func changed(n *graph.SnapshotNode, o *graph.Object) []finding.Finding {
	var out []finding.Finding
	compare := func(id, field, have, want, message string) {
		if want != "" && have != want {
			out = append(out, differs(id, o.ID, field, have, want, message))
		}
	}
	compare(idReplicasChanged, "spec.replicas", number(o.Facts.Replicas), number(n.Facts.Replicas), "its replicas are not those of the source")
	compare(idVersionChanged, "spec.version", o.Facts.Version, n.Facts.Version, "its Kubernetes version is not that of the source")
	compare(idProviderIDChanged, "spec.providerID", o.Facts.ProviderID, n.Facts.ProviderID, "it stands for another instance than on the source")
	return out
}

func number(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// pauses compares who was paused by their user with who is. A hold of ours is not such a pause.
func pauses(n *graph.SnapshotNode, o *graph.Object) []finding.Finding {
	now := labels.PausedByUser(labels.MetaOf(o))
	field := "metadata.annotations[" + labels.Paused + "]"
	if n.GroupKind() == graph.Cluster {
		field = "spec.paused"
	}
	switch {
	case n.PausedByUser && !now:
		return []finding.Finding{differs(idPauseLost, o.ID, field, "not paused", "paused", "its user had paused it on the source")}
	case !n.PausedByUser && now:
		return []finding.Finding{differs(idPauseLeft, o.ID, field, "paused", "not paused", "it was not paused on the source")}
	}
	return nil
}

// extra are Machines, and what makes Machines, that the record does not have.
func (v *view) extra() []finding.Finding {
	var out []finding.Finding
	for _, o := range v.own {
		if _, ok := v.recorded(o.ID); ok {
			continue
		}
		switch {
		case o.GroupKind() == graph.Machine:
			out = append(out, about(idExtraMachine, o.ID, "it is not in the record"))
		case v.standAlone && v.controlPlane != nil && o.ID == v.controlPlane.ID:
			// It was made to take over Machines that were stand-alone on the source.
		case v.isScaler(o) || isControlPlaneKind(o.GroupKind()):
			out = append(out, about(idExtraScaler, o.ID, fmt.Sprintf("it makes Machines for %s and is not in the record", v.Cluster)))
		}
	}
	return out
}
