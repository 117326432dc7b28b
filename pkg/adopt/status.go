package adopt

import (
	"fmt"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// unbuilt names what of the status, which no move carries, is not there again and
// would lead a released control plane astray: it takes bootstrap Secrets for
// certificates while KubeadmConfigs do not name theirs (adoptOwnedSecrets), and
// counts Machines without a node as failed. With a record only what was there on
// the source is awaited, if it knows any status: manifests may come without.
func (v *view) unbuilt() []Missing {
	out := v.paused()
	if len(out) > 0 {
		return out // the cause of all that is still missing
	}
	for _, m := range v.machines {
		n, recorded := v.recordedStatus(m.ID)
		if m.Facts.NodeName == "" && (!recorded || n.Facts.NodeName != "") {
			out = append(out, Missing{Object: m.ID, What: "has no status.nodeRef yet", Maker: byMachine})
		}
		out = append(out, v.unnamedData(m)...)
	}
	n, recorded := v.recordedStatus(v.Cluster)
	if !v.cluster.Facts.InfrastructureProvisioned && (!recorded || n.Facts.InfrastructureProvisioned) {
		out = append(out, Missing{Object: v.Cluster, What: "has no status.initialization.infrastructureProvisioned yet", Maker: byInfrastructure})
	}
	return out
}

// recordedStatus is recorded, and false where the record tells no status. That of
// a Cluster which was never provisioned does not either; nothing moves it (clusterctl's
// checkProvisioningCompleted).
func (v *view) recordedStatus(id graph.ID) (*graph.SnapshotNode, bool) {
	if c, ok := v.recorded(v.Cluster); !ok || !c.Facts.InfrastructureProvisioned {
		return nil, false
	}
	return v.recorded(id)
}

func (v *view) unnamedData(m *graph.Object) []Missing {
	ref, ok := m.RefTo(graph.FieldBootstrapConfigRef)
	if !ok || ref.GroupKind() != graph.KubeadmConfig {
		return nil
	}
	config, ok := v.Graph.Object(ref)
	if !ok || config.Facts.DataSecretName != "" {
		return nil
	}
	if n, recorded := v.recordedStatus(ref); recorded && n.Facts.DataSecretName == "" {
		return nil
	}
	return []Missing{{Object: ref, What: "has no status.dataSecretName yet", Maker: byBootstrap}}
}

// paused says who else keeps the Cluster still: no status is rebuilt meanwhile.
func (v *view) paused() []Missing {
	var out []Missing
	m := labels.MetaOf(v.cluster)
	if m.SpecPaused {
		out = append(out, Missing{Object: v.Cluster, What: "has spec.paused true", Maker: "clusterctl at its end, or whoever paused it"})
	}
	if labels.PausedByAnnotation(m) && !labels.IsHeld(m) {
		out = append(out, Missing{Object: v.Cluster, What: fmt.Sprintf("has the annotation %s, which is not ours", labels.Paused), Maker: "whoever paused it"})
	}
	return out
}
