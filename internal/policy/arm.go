package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// Hold builds the policy that pauses arriving scalers and marks the pause as ours,
// by the rules of labels.Hold: not what is paused already, by annotation or by
// spec.paused. since is when it was first armed; it goes into the mark.
func Hold(t Terms, since time.Time) *admissionv1.MutatingAdmissionPolicy {
	by := labels.Holder{Who: "move-hook arm", Since: since}
	return build(HoldName, since, slices.Concat(scalers, t.ControlPlanes),
		[]admissionv1.MatchCondition{notByProvider(t.Providers), notPaused(), notSpecPaused()},
		room("annotations"),
		annotate(graph.PausedAnnotation, "''"),
		unless(has("object", "annotations", graph.HeldAnnotation), annotate(graph.HeldAnnotation, quote(by.String()))))
}

// Pending builds the policy that puts the adoption label on arriving control
// planes and control-plane Machines.
func Pending(t Terms, since time.Time) *admissionv1.MutatingAdmissionPolicy {
	return build(LabelName, since, append(slices.Clone(t.ControlPlanes), machines),
		[]admissionv1.MatchCondition{notByProvider(t.Providers), notUsers(), {Name: "control-plane",
			Expression: "object.kind != 'Machine' || (" + has("object", "labels", graph.ControlPlaneLabel) + ")"}},
		room("labels"),
		set("labels", graph.AdoptionLabel, quote(graph.AdoptionPending)))
}

// Owners builds the policy that takes the owner references off arriving objects and
// keeps them, without their UIDs, in an annotation: the garbage collector then has
// nothing to go by, and post gives them back. Owners outside Cluster API are
// nobody's business here, nor is what Kubernetes' own controllers create.
func Owners(t Terms, since time.Time) *admissionv1.MutatingAdmissionPolicy {
	return build(OwnersName, since, t.Moved,
		[]admissionv1.MatchCondition{notByProvider(t.Providers), notBySystem(), {Name: "owned-by-cluster-api", Expression: probeCondition +
			" || (has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, " + isCoreGroup("o.apiVersion") + "))"}},
		room("annotations"),
		annotate(graph.OwnersAnnotation, ownersAsJSON()),
		"[JSONPatch{op: 'remove', path: '/metadata/ownerReferences'}]")
}

// notBySystem leaves out Kubernetes' own components. Other system: users may well
// restore: a backup tool is a service account, and some distributions call their
// administrator system:admin.
func notBySystem() admissionv1.MatchCondition {
	return admissionv1.MatchCondition{Name: "not-by-kubernetes", Expression: probeCondition +
		" || !(request.userInfo.username in ['system:apiserver', 'system:kube-controller-manager', 'system:kube-scheduler'] || " +
		"(has(request.userInfo.groups) && request.userInfo.groups.exists(g, g in ['system:nodes', 'system:serviceaccounts:kube-system'])))"}
}

// build makes an arm policy: on CREATE of the resources, where all conditions hold,
// the patches. The probe gets nothing but a mark that tells this very policy.
func build(name string, since time.Time, rs []Resource, conditions []admissionv1.MatchCondition, patches ...string) *admissionv1.MutatingAdmissionPolicy {
	p := &admissionv1.MutatingAdmissionPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "MutatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{Label: LabelArm},
			Annotations: map[string]string{SinceAnnotation: since.UTC().Format(time.RFC3339)}},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints:   constraints(rules(append(sorted(slices.Clone(rs)), Resource{probeGroup, probePlural}), admissionv1.Create)),
			MatchConditions:    conditions,
			FailurePolicy:      ref(admissionv1.Fail),
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
		},
	}
	mutations := func(mark string) []admissionv1.Mutation {
		probed := room("annotations") + " + " + annotate(probeMark+name, quote(mark))
		return []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{
			Expression: probeCondition + " ? " + probed + " : " + strings.Join(patches, " + "),
		}}}
	}
	p.Spec.Mutations = mutations("")
	p.Spec.Mutations = mutations(digest(p.Spec))
	return p
}

// markOf is what a probe that went through the policy carries.
func markOf(p *admissionv1.MutatingAdmissionPolicy) (key, value string) {
	before := annotate(probeMark+p.Name, "'")
	_, after, _ := strings.Cut(p.Spec.Mutations[0].JSONPatch.Expression, strings.TrimSuffix(before, "}]"))
	value, _, _ = strings.Cut(after, "'")
	return probeMark + p.Name, value
}

func digest(v any) string {
	// Of our own types: cannot fail.
	text, _ := json.Marshal(v)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// Bind builds the binding that puts an arm policy in force for a scope. until is
// when the arm is meant to end.
func Bind(policy string, scope Scope, by string, since, until time.Time) (*admissionv1.MutatingAdmissionPolicyBinding, error) {
	name, err := scope.Name()
	if err != nil {
		return nil, err
	}
	objects, err := scope.objects()
	if err != nil {
		return nil, err
	}
	create := []admissionv1.OperationType{admissionv1.Create}
	m := constraints([]admissionv1.NamedRuleWithOperations{
		named(rule(create, "*", admissionv1.NamespacedScope, "*")),
		// Each binding answers to a probe of its own, whatever else is armed.
		named(rule(create, probeGroup, admissionv1.AllScopes, probePlural), probeName+name),
	})
	m.NamespaceSelector, m.ObjectSelector = scope.namespaces(), objects
	return &admissionv1.MutatingAdmissionPolicyBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "MutatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: policy + "-" + name, Labels: map[string]string{Label: LabelArm}, Annotations: map[string]string{
			SinceAnnotation:   since.UTC().Format(time.RFC3339),
			ExpiresAnnotation: until.UTC().Format(time.RFC3339),
			ArmedByAnnotation: by,
		}},
		Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy, MatchResources: m},
	}, nil
}

// constraints spells out every default of the server, so that what is read back
// equals what was built.
func constraints(rs []admissionv1.NamedRuleWithOperations) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		ResourceRules: rs, MatchPolicy: ref(admissionv1.Equivalent),
	}
}

// rules are one rule for each API group, in the order of the resources.
func rules(rs []Resource, ops ...admissionv1.OperationType) []admissionv1.NamedRuleWithOperations {
	var out []admissionv1.NamedRuleWithOperations
	for _, r := range rs {
		if n := len(out); n > 0 && out[n-1].APIGroups[0] == r.Group {
			out[n-1].Resources = append(out[n-1].Resources, r.Plural)
			continue
		}
		out = append(out, named(rule(ops, r.Group, admissionv1.AllScopes, r.Plural)))
	}
	return out
}

func rule(ops []admissionv1.OperationType, group string, scope admissionv1.ScopeType, plural string) admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{Operations: ops,
		Rule: admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{plural}, Scope: &scope}}
}

func named(r admissionv1.RuleWithOperations, names ...string) admissionv1.NamedRuleWithOperations {
	return admissionv1.NamedRuleWithOperations{ResourceNames: names, RuleWithOperations: r}
}

func ref[T any](v T) *T { return &v }
