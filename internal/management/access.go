package management

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Access is one thing to do with a resource, in one namespace or (empty) everywhere.
type Access struct {
	Verb, Group, Resource, Namespace string
}

// Denied gives those of the accesses that this user does not have, in their order.
func (c *Cluster) Denied(ctx context.Context, all []Access) ([]Access, error) {
	// Who may do everything is asked once.
	if free, err := c.may(ctx, Access{"*", "*", "*", ""}); err != nil || free {
		return nil, err
	}
	allowed := make([]bool, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, a := range all {
		group.Go(func() (err error) {
			allowed[i], err = c.may(ctx, a)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var denied []Access
	for i, a := range all {
		if !allowed[i] {
			denied = append(denied, a)
		}
	}
	return denied, nil
}

func (c *Cluster) may(ctx context.Context, a Access) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: a.Verb, Group: a.Group, Resource: a.Resource, Namespace: a.Namespace},
	}}
	got, err := c.clientset.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking %s what this user may do: %w", c.name, err)
	}
	return got.Status.Allowed, nil
}
