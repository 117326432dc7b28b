package policy

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/pkg/graph"
)

// ErrUnserved is what an error is, by errors.Is, where the API server does not
// serve the kind of policy that is needed.
var ErrUnserved = errors.New("the API server does not serve it")

// Unavailable says that the policies of a management cluster cannot be managed and
// that going on without them is for the caller to decide: the server does not
// serve them, or the user may not.
func Unavailable(err error) bool {
	return errors.Is(err, ErrUnserved) || apierrors.IsForbidden(err)
}

// Store manages our policies on one management cluster. Every call may be killed
// anywhere and made again.
type Store struct {
	cluster *management.Cluster
	// DryRun lets the server judge every write and store nothing.
	DryRun bool
}

// New gives the store of a management cluster. It talks to no server yet.
func New(c *management.Cluster, dryRun bool) *Store { return &Store{cluster: c, DryRun: dryRun} }

type (
	mutatingPolicies   = endpoint[admissionv1.MutatingAdmissionPolicy, *admissionv1.MutatingAdmissionPolicy]
	mutatingBindings   = endpoint[admissionv1.MutatingAdmissionPolicyBinding, *admissionv1.MutatingAdmissionPolicyBinding]
	validatingPolicies = endpoint[admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicy]
	validatingBindings = endpoint[admissionv1.ValidatingAdmissionPolicyBinding, *admissionv1.ValidatingAdmissionPolicyBinding]
)

// mutating opens the two kinds of the arm, in v1 or, on older servers, v1beta1.
func (s *Store) mutating(ctx context.Context) (mutatingPolicies, mutatingBindings, error) {
	version, err := s.served(ctx, "MutatingAdmissionPolicy", "v1", "v1beta1")
	return mutatingPolicies{s.rest(), s.cluster.Name(), version, "MutatingAdmissionPolicy", s.DryRun},
		mutatingBindings{s.rest(), s.cluster.Name(), version, "MutatingAdmissionPolicyBinding", s.DryRun}, err
}

// validating opens the two kinds of the guard, which every server since 1.30 serves.
func (s *Store) validating(ctx context.Context) (validatingPolicies, validatingBindings, error) {
	version, err := s.served(ctx, "ValidatingAdmissionPolicy", "v1")
	return validatingPolicies{s.rest(), s.cluster.Name(), version, "ValidatingAdmissionPolicy", s.DryRun},
		validatingBindings{s.rest(), s.cluster.Name(), version, "ValidatingAdmissionPolicyBinding", s.DryRun}, err
}

func (s *Store) rest() rest.Interface {
	return s.cluster.Clientset().AdmissionregistrationV1().RESTClient()
}

func (s *Store) served(ctx context.Context, kind string, versions ...string) (string, error) {
	d, err := s.cluster.Discover(ctx)
	if err != nil {
		return "", err
	}
	k, ok := d.Find(graph.GroupKind{Group: group, Kind: kind})
	for _, v := range versions {
		if ok && k.APIVersion == group+"/"+v {
			return k.APIVersion, nil
		}
	}
	return "", fmt.Errorf("%s of %s on %s: %w", kind, group, s.cluster.Name(), ErrUnserved)
}

// terms are read anew each time: providers come and go.
func (s *Store) terms(ctx context.Context) (Terms, error) {
	d, err := s.cluster.Discover(ctx)
	if err != nil {
		return Terms{}, err
	}
	providers, err := s.cluster.ProviderNamespaces(ctx)
	if err != nil {
		return Terms{}, err
	}
	return termsOf(d, providers), nil
}

// user is who the API server takes us for.
func (s *Store) user(ctx context.Context) string {
	review, err := s.cluster.Clientset().AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || review.Status.UserInfo.Username == "" {
		return "move-hook"
	}
	return review.Status.UserInfo.Username
}

// Pending gives what carries the adoption label, in every namespace: as long as
// there is any, the guard stays.
func (s *Store) Pending(ctx context.Context) ([]graph.ID, error) {
	d, err := s.cluster.Discover(ctx)
	if err != nil {
		return nil, err
	}
	var found []graph.ID
	for _, k := range d.Listed() {
		if k.GroupKind != graph.Machine && !isControlPlane(k.GroupKind) {
			continue
		}
		ids, err := s.cluster.Labelled(ctx, k, graph.AdoptionLabel+"="+graph.AdoptionPending)
		if err != nil {
			return nil, err
		}
		found = append(found, ids...)
	}
	return found, nil
}
