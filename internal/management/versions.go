package management

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/move-hook/move-hook/pkg/graph"
)

// Versions are the versions in which a management cluster serves its kinds.
type Versions struct {
	served map[graph.GroupKind][]string
	// Warnings name the API groups of which nobody can say what they serve.
	Warnings []Warning
}

// Of gives the versions of a kind as "group/version", the server's first choice
// first; none if the server does not serve it.
func (v *Versions) Of(gk graph.GroupKind) []string { return v.served[gk] }

// Versions asks in which versions the server serves what can be created.
func (c *Cluster) Versions(ctx context.Context) (*Versions, error) {
	lists, err := within(ctx, func() ([]*metav1.APIResourceList, error) {
		_, lists, err := c.discovery.ServerGroupsAndResources()
		return lists, err
	})
	v := &Versions{served: map[graph.GroupKind][]string{}}
	var partial *discovery.ErrGroupDiscoveryFailed
	switch {
	case errors.As(err, &partial):
		v.Warnings = warningsOf(partial)
	case err != nil:
		return nil, fmt.Errorf("asking %s which versions it serves: %w", c.name, err)
	}
	for _, list := range lists {
		for _, r := range list.APIResources {
			if gk := (graph.GroupKind{Group: graph.GroupOf(list.GroupVersion), Kind: r.Kind}); isKind(r) && slices.Contains(r.Verbs, "create") {
				v.served[gk] = append(v.served[gk], list.GroupVersion)
			}
		}
	}
	return v, nil
}

// Stored gives the version in which each of the kinds is stored, "group/version": the
// one in which clusterctl reads and creates its objects (objectgraph.go,
// getDiscoveryTypes). Where the server does not tell, or does not serve that version,
// it is the preferred one. CRDs are not read for it, because their schemas are
// megabytes: discovery tells it by a hash.
func (c *Cluster) Stored(ctx context.Context, kinds []Kind, v *Versions) (map[graph.GroupKind]string, error) {
	stored := map[graph.GroupKind]string{}
	lists := map[string]*metav1.APIResourceList{}
	for _, k := range kinds {
		stored[k.GroupKind] = k.APIVersion
		if len(v.Of(k.GroupKind)) < 2 {
			continue
		}
		list, ok := lists[k.APIVersion]
		if !ok {
			var err error
			list, err = within(ctx, func() (*metav1.APIResourceList, error) {
				return c.discovery.ServerResourcesForGroupVersion(k.APIVersion)
			})
			if err != nil {
				return nil, fmt.Errorf("asking %s in which versions it stores what it serves as %s: %w", c.name, k.APIVersion, err)
			}
			lists[k.APIVersion] = list
		}
		for _, r := range list.APIResources {
			for _, gv := range v.Of(k.GroupKind) {
				if r.Name == k.Resource && r.StorageVersionHash == storageHash(gv, k.Kind) {
					stored[k.GroupKind] = gv
				}
			}
		}
	}
	return stored, nil
}

// storageHash is discovery.StorageVersionHash of k8s.io/apiserver. A group without a
// name has a slash before its version there.
func storageHash(gv, kind string) string {
	if graph.GroupOf(gv) == "" {
		gv = "/" + gv
	}
	sum := sha256.Sum256([]byte(gv + "/" + kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}
