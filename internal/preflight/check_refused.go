package preflight

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// Refusal is what the target said to an object that it was offered.
type Refusal struct {
	ID   graph.ID
	Said metav1.Status
	// StandIn is the namespace in which it was offered because its own does not exist
	// yet; TakenIn another in which it was then not refused.
	StandIn, TakenIn string
}

// checkRefused tells what the target would not take: by its schema, a webhook or a
// policy. Objects of one kind to which it says the same are one finding.
func checkRefused(in Input) []finding.Finding {
	type group struct {
		first Refusal
		n     int
	}
	groups := map[string]*group{}
	refusals := slices.SortedFunc(slices.Values(in.Target.Refusals), func(a, b Refusal) int { return a.ID.Compare(b.ID) })
	for _, r := range refusals {
		key := fmt.Sprint(r.ID.GroupKind(), r.ID.Namespace, r.TakenIn, strings.ReplaceAll(r.Said.Message, r.ID.Name, ""))
		if groups[key] == nil {
			groups[key] = &group{first: r}
		}
		groups[key].n++
	}
	fellows := in.awaited()
	var found []finding.Finding
	for _, g := range groups {
		f, ok := refusalOf(in, g.first, fellows)
		if !ok {
			continue
		}
		if g.n > 1 {
			f.Message += fmt.Sprintf(" (and to %d more of its kind)", g.n-1)
		}
		found = append(found, f)
	}
	finding.Sort(found)
	return found
}

// refusalOf judges one refusal; false: it is nothing to tell, or another check's to tell.
func refusalOf(in Input, r Refusal, fellows map[string]bool) (finding.Finding, bool) {
	says := strings.TrimSpace(r.Said.Message)
	f := finding.Finding{
		ID: "RefusedByTarget", Severity: finding.Stops, Object: r.ID.String(),
		Message: fmt.Sprintf("would be refused by %s, which says: %s", in.Target.Name, says),
		Remedy:  "resolve on the target what it says, or change the object on the source, then run the command again",
	}
	if r.StandIn != "" {
		f.Message = fmt.Sprintf("would be refused by %s, which says (asked in namespace %s, because %s does not exist there yet): %s",
			in.Target.Name, r.StandIn, r.ID.Namespace, says)
	}
	if r.ID.GroupKind() == graph.Secret {
		f.Message += " (it was offered without its data)"
	}
	unsure := func(why string) (finding.Finding, bool) {
		f.ID, f.Severity = "OfferUnsure", finding.Notes
		f.Message = why
		f.Remedy = ""
		return f, true
	}
	switch causeOf(r.Said) {
	case byRights, byNamespace, byUs, byRace:
		return f, false
	case byQuota:
		// What a quota leaves is counted: the offer sees only one that is used up.
		return f, r.StandIn == "" && len(in.Target.Rooms[r.ID.Namespace].Quotas) == 0
	case byDeafness:
		return unsure(fmt.Sprintf("could not be offered to %s: %s", in.Target.Name, says))
	case byItself:
	}
	if r.TakenIn != "" {
		f, _ := unsure(fmt.Sprintf("nobody can say whether %s will take it: %s does not exist there yet, namespace %s would take it and namespace %s would not: %s",
			in.Target.Name, r.ID.Namespace, r.TakenIn, r.StandIn, says))
		f.Remedy = "create the namespace on the target as it will be, then run the command again"
		return f, true
	}
	if name := namesAwaited(says, r.ID.Name, fellows); name != "" {
		return unsure(fmt.Sprintf("nobody can say whether %s will take it, because %s, which moves too, is not there yet: %s", in.Target.Name, name, says))
	}
	return f, true
}

// awaited are the names of what moves and is not on the target yet.
func (in Input) awaited() map[string]bool {
	names := map[string]bool{}
	for _, id := range in.Source.moving() {
		if _, there := in.Target.There[id]; !there {
			names[id.Name] = true
		}
	}
	return names
}

var quoted = regexp.MustCompile(`["'\x60]([^"'\x60]+)["'\x60]`)

// namesAwaited: a webhook that looks for another object says that it is not found and
// names it. In a move the owners and what came before would be there.
func namesAwaited(says, own string, fellows map[string]bool) string {
	if lower := strings.ToLower(says); !strings.Contains(lower, "not found") && !strings.Contains(lower, "not exist") {
		return ""
	}
	for _, m := range quoted.FindAllStringSubmatch(says, -1) {
		name := m[1][strings.LastIndex(m[1], "/")+1:]
		if name != own && fellows[name] {
			return name
		}
	}
	return ""
}

// cause is who refused.
type cause int

const (
	// byItself: schema, webhook, policy: what a real create would meet too.
	byItself cause = iota
	// byRights: this user may not; the rights are another check's.
	byRights
	byQuota
	// byNamespace: there is none, or it is going.
	byNamespace
	// byUs: our own guard or arm.
	byUs
	// byRace: somebody made, changed or removed it meanwhile.
	byRace
	// byDeafness: a webhook that may not be asked in a dry run.
	byDeafness
)

// ours is how the API server names our policies when one of them denies
// (k8s.io/apiserver, admission/plugin/policy).
var ours = regexp.MustCompile(`AdmissionPolicy '?"?move-hook-`)

func causeOf(s metav1.Status) cause {
	switch {
	case strings.Contains(s.Message, "does not support dry run"):
		return byDeafness
	case ours.MatchString(s.Message):
		return byUs
	case s.Reason == metav1.StatusReasonAlreadyExists, s.Reason == metav1.StatusReasonConflict:
		return byRace
	case hasCause(s, corev1.NamespaceTerminatingCause), s.Reason == metav1.StatusReasonNotFound && s.Details != nil && s.Details.Kind == "namespaces":
		return byNamespace
	case s.Reason == metav1.StatusReasonNotFound:
		return byRace
	case s.Reason != metav1.StatusReasonForbidden:
		return byItself
	case strings.Contains(s.Message, "exceeded quota:"):
		return byQuota
	case rights.MatchString(s.Message):
		return byRights
	}
	return byItself
}

var rights = regexp.MustCompile(`User "[^"]*" cannot (create|update|patch) resource`)

func hasCause(s metav1.Status, t metav1.CauseType) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Type == t })
}
