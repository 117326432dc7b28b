package policy

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/move-hook/move-hook/pkg/graph"
)

// probeKind is what a probe creates with dry run, to learn whether the API server
// uses a policy already: a kind that every server has and that is cluster-scoped,
// so that a namespace that does not exist yet needs none for it.
const (
	probeKind      = "PriorityClass"
	probeGroup     = "scheduling.k8s.io"
	probePlural    = "priorityclasses"
	probeName      = "move-hook-arm-probe-"
	probeMark      = "pivot.cluster.x-k8s.io/probe-"
	probeCondition = "object.kind == '" + probeKind + "'"
)

// quote makes a CEL string literal.
func quote(s string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "'", `\'`) + "'"
}

func quoteAll(all []string) string {
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// pointer escapes a key for a JSON pointer (RFC 6901).
func pointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// has says that a label or annotation is there; of is "object" or "oldObject".
func has(of, field, key string) string {
	return "has(" + of + ".metadata." + field + ") && " + quote(key) + " in " + of + ".metadata." + field
}

// room makes the map that an added key goes into, where there is none.
func room(field string) string {
	return "(has(object.metadata." + field + ") ? [] : [JSONPatch{op: 'add', path: '/metadata/" + field + "', value: {}}])"
}

// set adds a key; value is an expression.
func set(field, key, value string) string {
	return "[JSONPatch{op: 'add', path: " + quote("/metadata/"+field+"/"+pointer(key)) + ", value: " + value + "}]"
}

func annotate(key, value string) string { return set("annotations", key, value) }

// unless is a part of a list that is left out where the condition holds.
func unless(condition, part string) string { return "(" + condition + " ? [] : " + part + ")" }

// notByProvider: what a provider creates is no arrival. The probe is nobody's.
func notByProvider(providers []string) admissionv1.MatchCondition {
	groups := make([]string, len(providers))
	for i, namespace := range providers {
		groups[i] = "system:serviceaccounts:" + namespace
	}
	return admissionv1.MatchCondition{Name: "not-by-a-provider", Expression: probeCondition +
		" || !has(request.userInfo.groups) || !request.userInfo.groups.exists(g, g in " + quoteAll(groups) + ")"}
}

// notPaused: a pause is its user's, or a hold that travelled along; neither is
// held on top (labels.Hold).
func notPaused() admissionv1.MatchCondition {
	return admissionv1.MatchCondition{Name: "not-paused", Expression: probeCondition +
		" || !(" + has("object", "annotations", graph.PausedAnnotation) + ")"}
}

// notUsers: what its user paused is left alone; what is held is labelled as well.
func notUsers() admissionv1.MatchCondition {
	return admissionv1.MatchCondition{Name: "not-paused-by-its-user", Expression: probeCondition +
		" || !(" + has("object", "annotations", graph.PausedAnnotation) + ") || (" + has("object", "annotations", graph.HeldAnnotation) + ")"}
}

// notSpecPaused: spec.paused pauses a Cluster; in other kinds the field, where
// there is one, means something else.
func notSpecPaused() admissionv1.MatchCondition {
	return admissionv1.MatchCondition{Name: "not-spec-paused",
		Expression: "object.kind != 'Cluster' || !has(object.spec) || !has(object.spec.paused) || object.spec.paused != true"}
}

// isCoreGroup says that the group of an apiVersion is Cluster API's.
func isCoreGroup(apiVersion string) string {
	group := apiVersion + ".split('/')[0]"
	return "(" + group + " == " + quote(graph.CoreGroup) + " || " + group + ".endsWith(" + quote("."+graph.CoreGroup) + "))"
}

// ownersAsJSON is the list of owner references as the owners annotation keeps it:
// without UIDs, which belong to the copy on the source.
func ownersAsJSON() string {
	optional := func(field string) string {
		return "(has(o." + field + ") ? ',\"" + field + "\":' + (o." + field + " ? 'true' : 'false') : '')"
	}
	text := func(field, before string) string {
		return quote(before+`"`+field+`":`) + " + strings.quote(o." + field + ")"
	}
	return "'[' + object.metadata.ownerReferences.map(o, '{' + " + text("apiVersion", "") + " + " + text("kind", ",") + " + " + text("name", ",") +
		" + " + optional("controller") + " + " + optional("blockOwnerDeletion") + " + '}').join(',') + ']'"
}
