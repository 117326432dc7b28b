package policy

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/graph"
)

// GuardPolicy builds the policy that keeps what is pending from being deleted or
// changed: what carries the adoption label may be deleted by clusterctl only, whose
// deletes are announced by an annotation (clusterctl's objectMover.deleteSourceObject),
// and neither replicas nor version may change once they are said: a control plane that
// its user made half is filled in by prefill. The subresource scale does not show
// the labels of its object, so it is denied to every control plane meanwhile.
func GuardPolicy(t Terms) *admissionv1.ValidatingAdmissionPolicy {
	pending := append(sorted(slices.Clone(t.ControlPlanes)), machines)
	guarded := slices.Concat(rules(pending, admissionv1.Update, admissionv1.Delete), rules(scales(t.ControlPlanes), admissionv1.Update))
	return &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: GuardName, Labels: map[string]string{Label: LabelGuard}},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: constraints(guarded),
			MatchConditions: []admissionv1.MatchCondition{{Name: "pending", Expression: isScale + " || (" + has("oldObject", "labels", graph.AdoptionLabel) +
				" && oldObject.metadata.labels[" + quote(graph.AdoptionLabel) + "] == " + quote(graph.AdoptionPending) + ")"}},
			FailurePolicy: ref(admissionv1.Fail),
			Validations: []admissionv1.Validation{
				{
					Expression:        "request.operation != 'DELETE' || (" + has("oldObject", "annotations", graph.DeleteForMoveAnnotation) + ")",
					Message:           "an object whose adoption is pending is not deleted",
					MessageExpression: refusal("it is not deleted"),
					Reason:            ref(metav1.StatusReasonForbidden),
				},
				{
					Expression:        "request.operation != 'UPDATE' || " + isScale + " || (" + kept("replicas") + " && " + kept("version") + ")",
					Message:           "spec.replicas and spec.version of an object whose adoption is pending do not change",
					MessageExpression: refusal("spec.replicas and spec.version do not change"),
					Reason:            ref(metav1.StatusReasonForbidden),
				},
				{
					Expression: "!" + isScale + " || " + same("replicas"),
					Message: "a pivot is under way and the subresource scale does not show whose: " +
						"change spec.replicas of the object itself, for example with kubectl patch",
					Reason: ref(metav1.StatusReasonForbidden),
				},
			},
		},
	}
}

const isScale = "(has(request.subResource) && request.subResource == 'scale')"

func scales(controlPlanes []Resource) []Resource {
	var out []Resource
	for _, r := range controlPlanes {
		out = append(out, Resource{r.Group, r.Plural + "/scale"})
	}
	return out
}

// same says that a field of the spec is as it was.
func same(field string) string {
	return "(" + says("object", field) + " ? (" + says("oldObject", field) + " && object.spec." + field + " == oldObject.spec." + field + ") : !" + says("oldObject", field) + ")"
}

// kept says that a field of the spec is as it was, or was not there.
func kept(field string) string {
	return "(!" + says("oldObject", field) + " || (" + says("object", field) + " && object.spec." + field + " == oldObject.spec." + field + "))"
}

func says(of, field string) string {
	return "(has(" + of + ".spec) && has(" + of + ".spec." + field + "))"
}

// refusal is an expression for the message: who holds the object and how to let it go.
func refusal(what string) string {
	object := "oldObject.kind + ' ' + oldObject.metadata.namespace + '/' + oldObject.metadata.name"
	holder := "(" + has("oldObject", "annotations", graph.HeldAnnotation) +
		" ? oldObject.metadata.annotations[" + quote(graph.HeldAnnotation) + "] : 'move-hook pre or arm')"
	return object + " + ' is being moved to another management cluster, held by ' + " + holder + " + " +
		quote(": "+what+" until adoption has ended. Run move-hook post on the target; to give up instead, remove its label "+graph.AdoptionLabel+" and run move-hook disarm")
}

// GuardBinding builds the binding of the guard.
func GuardBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: GuardName, Labels: map[string]string{Label: LabelGuard}},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: GuardName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}
