package preflight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Role writes the rights of one side as a ClusterRole, for `kubectl apply -f -`. How
// to give it to somebody stands in a comment before it.
func Role(side Side, rights []Right) (string, error) {
	role := rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "move-hook-" + string(side)},
		Rules:      rulesOf(rights),
	}
	text, err := yaml.Marshal(role)
	if err != nil {
		return "", fmt.Errorf("writing the ClusterRole: %w", err)
	}
	head := fmt.Sprintf("# What a pivot needs on its %s. It is given with\n#   kubectl create clusterrolebinding %s --clusterrole=%s --user=USER\n",
		side, role.Name, role.Name)
	return head + string(text), nil
}

// rulesOf joins the resources of a group that need the same verbs.
func rulesOf(rights []Right) []rbacv1.PolicyRule {
	verbs := map[[2]string]map[string]bool{}
	for _, r := range rights {
		key := [2]string{r.Group, r.Resource}
		if verbs[key] == nil {
			verbs[key] = map[string]bool{}
		}
		for _, v := range r.Verbs {
			verbs[key][v] = true
		}
	}
	joined := map[[2]string][]string{}
	for key, set := range verbs {
		same := [2]string{key[0], strings.Join(slices.Sorted(maps.Keys(set)), ",")}
		joined[same] = append(joined[same], key[1])
	}
	var rules []rbacv1.PolicyRule
	for same, resources := range joined {
		slices.Sort(resources)
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{same[0]}, Resources: resources, Verbs: strings.Split(same[1], ",")})
	}
	slices.SortFunc(rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(strings.Compare(a.APIGroups[0], b.APIGroups[0]), slices.Compare(a.Resources, b.Resources))
	})
	return rules
}
