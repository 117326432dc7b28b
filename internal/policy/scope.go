package policy

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Scope is what an arm is limited to. The zero Scope is everything.
type Scope struct {
	// Namespace of the objects; empty for all. It need not exist yet.
	Namespace string
	// Selector of the objects' own labels, as kubectl's -l takes it; empty for all.
	Selector string
}

// Name is the scope's part in the name of a binding: "all", "ns-fleet", or a hash
// where there is a selector.
func (s Scope) Name() (string, error) {
	selector, err := s.objects()
	if err != nil {
		return "", err
	}
	name := "all"
	if s.Namespace != "" {
		name = "ns-" + s.Namespace
	}
	if s.Selector == "" {
		return name, nil
	}
	hash := "sel-" + digest(metav1.FormatLabelSelector(selector))
	if s.Namespace != "" {
		return name + "-" + hash, nil
	}
	return hash, nil
}

// String is the scope in words.
func (s Scope) String() string {
	text := "all namespaces"
	if s.Namespace != "" {
		text = "namespace " + s.Namespace
	}
	if s.Selector != "" {
		text += ", objects labelled " + s.Selector
	}
	return text
}

// Validate says what is wrong with the selector.
func (s Scope) Validate() error {
	selector, err := s.objects()
	if err != nil {
		return err
	}
	if _, err = satisfying(selector); err != nil {
		return fmt.Errorf("--selector %q selects nothing: %w", s.Selector, err)
	}
	return nil
}

// objects is the selector as the API has it.
func (s Scope) objects() (*metav1.LabelSelector, error) {
	parsed, err := labels.Parse(s.Selector)
	if err != nil {
		return nil, fmt.Errorf("--selector %q is no label selector: %w", s.Selector, err)
	}
	out := &metav1.LabelSelector{}
	requirements, _ := parsed.Requirements()
	for _, r := range requirements {
		values := slices.Sorted(slices.Values(r.ValuesUnsorted()))
		var op metav1.LabelSelectorOperator
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if _, twice := out.MatchLabels[r.Key()]; !twice && len(values) == 1 {
				metav1.AddLabelToSelector(out, r.Key(), values[0])
				continue
			}
			op = metav1.LabelSelectorOpIn
		case selection.NotEquals, selection.NotIn:
			op = metav1.LabelSelectorOpNotIn
		case selection.Exists:
			op = metav1.LabelSelectorOpExists
		case selection.DoesNotExist:
			op = metav1.LabelSelectorOpDoesNotExist
		default:
			return nil, fmt.Errorf("--selector %q: an admission policy knows no %s", s.Selector, r.Operator())
		}
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: r.Key(), Operator: op, Values: values})
	}
	return out, nil
}

func (s Scope) namespaces() *metav1.LabelSelector {
	if s.Namespace == "" {
		return &metav1.LabelSelector{}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.Namespace}}
}

// scopeOf reads a scope back from the selectors of a binding.
func scopeOf(namespaces, objects *metav1.LabelSelector) Scope {
	var s Scope
	if namespaces != nil {
		s.Namespace = namespaces.MatchLabels["kubernetes.io/metadata.name"]
	}
	if objects != nil && len(objects.MatchLabels)+len(objects.MatchExpressions) > 0 {
		s.Selector = metav1.FormatLabelSelector(objects)
	}
	return s
}

// satisfying are labels that a selector selects: the probe carries them.
func satisfying(selector *metav1.LabelSelector) (map[string]string, error) {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	requirements, _ := parsed.Requirements()
	out := map[string]string{}
	for _, r := range requirements {
		candidates := []string{"move-hook"}
		for _, other := range requirements {
			if other.Key() == r.Key() && (other.Operator() == selection.In || other.Operator() == selection.Equals) {
				candidates = append(candidates, slices.Sorted(slices.Values(other.ValuesUnsorted()))...)
			}
		}
		for _, value := range candidates {
			if matchesAll(requirements, r.Key(), labels.Set{r.Key(): value}) {
				out[r.Key()] = value
				break
			}
		}
	}
	if !parsed.Matches(labels.Set(out)) {
		return nil, errors.New("its parts contradict each other")
	}
	return out, nil
}

// Is says that both scopes are the same, however they are written.
func (s Scope) Is(other Scope) bool {
	one, errOne := s.Name()
	two, errTwo := other.Name()
	return errOne == nil && errTwo == nil && one == two
}

func matchesAll(requirements labels.Requirements, key string, set labels.Set) bool {
	for _, r := range requirements {
		if r.Key() == key && !r.Matches(set) {
			return false
		}
	}
	return true
}
