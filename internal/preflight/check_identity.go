package preflight

import (
	"fmt"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// checkProviderID finds Machines whose instance is told by status alone, which no move
// takes along: their provider would make new instances on the target. A Machine has it
// from its infrastructure, so that is named where both lack it.
func checkProviderID(s *Scope) []finding.Finding {
	var found []finding.Finding
	for _, m := range s.All() {
		if m.GroupKind() != graph.Machine || m.Facts.NodeName == "" {
			continue // What has not joined is MachineWithoutNode's.
		}
		lacks := m
		if id, refers := m.RefTo(graph.FieldInfrastructureRef); refers {
			if infra, seen := s.Graph.Object(id); seen && infra.Facts.ProviderID == "" {
				lacks = infra
			}
		}
		if lacks == m && m.Facts.ProviderID != "" {
			continue
		}
		found = append(found, finding.Finding{
			ID: "ProviderIDNotInSpec", Severity: finding.Stops, Object: lacks.String(), Field: "spec.providerID", Have: "not set", Want: "the ID of its instance",
			Message: "does not say in its spec which instance it is, and status is not moved: its provider would make another one",
			Remedy:  "wait until its controller has set it, or set it to what the Node has in spec.providerID",
		})
	}
	return found
}

// checkEndpoint finds Clusters without a control-plane endpoint in any spec.
func checkEndpoint(s *Scope) []finding.Finding {
	var found []finding.Finding
	for _, id := range s.Clusters {
		cluster, ok := s.Graph.Object(id)
		if !ok || cluster.Facts.Endpoint != "" || !cluster.Facts.InfrastructureProvisioned || !joined(s, id) {
			continue
		}
		if tells(s, cluster, graph.FieldInfrastructureRef) || tells(s, cluster, graph.FieldControlPlaneRef) {
			continue
		}
		found = append(found, finding.Finding{
			ID: "EndpointNotInSpec", Severity: finding.Harms, Object: id.String(), Field: "spec.controlPlaneEndpoint", Have: "not set", Want: "host and port",
			Message: "neither it nor its infrastructure says in a spec where its API server is, and status is not moved",
			Remedy:  "set spec.controlPlaneEndpoint of its infrastructure",
		})
	}
	return found
}

func tells(s *Scope, cluster *graph.Object, field string) bool {
	id, ok := cluster.RefTo(field)
	if !ok {
		return false
	}
	o, ok := s.Graph.Object(id)
	return ok && o.Facts.Endpoint != ""
}

const expiryAnnotation = "machine.cluster.x-k8s.io/certificates-expiry"

// checkForgotten finds what is known of a Machine in a way that a move does not keep:
// its age, by which spec.rollout.after is judged, and the expiry of its certificates
// where only status has it.
func checkForgotten(in Input) []finding.Finding {
	s := in.Source
	var found []finding.Finding
	for _, o := range s.All() {
		after := o.Facts.RolloutAfter
		if !after.IsZero() && !after.After(in.Now) && hasOlder(s, o, after.Unix()) {
			found = append(found, finding.Finding{
				ID: "RolloutAfterForgotten", Severity: finding.Harms, Object: o.String(), Field: "spec.rollout.after", Have: after.UTC().Format("2006-01-02T15:04:05Z"),
				Message: "still has to replace Machines that are older than that; a move makes them young, and the rollout is forgotten",
				Remedy:  "wait until the rollout has ended, or set the field to a time after the move",
			})
		}
		if o.GroupKind() == graph.Machine && o.Facts.CertificatesExpiry != "" && !annotatedExpiry(s, o) {
			found = append(found, finding.Finding{
				ID: "CertificatesExpiryForgotten", Severity: finding.Notes, Object: o.String(), Field: "status.certificatesExpiryDate", Have: o.Facts.CertificatesExpiry,
				Message: fmt.Sprintf("only status tells when its certificates expire: on the target spec.rollout.before does not see it until the annotation %s is there", expiryAnnotation),
				Remedy:  "kubectl annotate " + resource(o.ID) + " " + expiryAnnotation + "=" + o.Facts.CertificatesExpiry,
			})
		}
	}
	return found
}

// hasOlder: a control plane looks at its Machines, a MachineDeployment at its MachineSets.
func hasOlder(s *Scope, scaler *graph.Object, after int64) bool {
	older, younger := false, false
	for _, e := range s.Graph.Dependents(scaler.ID) {
		o, ok := s.Graph.Object(e.From)
		if !ok || o.GroupKind() != graph.Machine && o.GroupKind() != graph.MachineSet || o.Created.IsZero() {
			continue
		}
		if o.Created.Unix() < after {
			older = true
		} else {
			younger = true
		}
	}
	if scaler.GroupKind() == graph.MachineDeployment {
		return older && !younger
	}
	return older
}

func annotatedExpiry(s *Scope, m *graph.Object) bool {
	if _, ok := m.Annotations[expiryAnnotation]; ok {
		return true
	}
	id, _ := m.RefTo(graph.FieldBootstrapConfigRef)
	config, ok := s.Graph.Object(id)
	if !ok {
		return false
	}
	_, annotated := config.Annotations[expiryAnnotation]
	return annotated
}
