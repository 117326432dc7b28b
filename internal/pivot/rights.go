package pivot

import (
	"context"
	"slices"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/preflight"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// needsOf are the kinds of one side. moves says of which there are objects that move.
func needsOf(d *management.Discovery, namespace string, moves func(graph.GroupKind) bool) preflight.Needs {
	n := preflight.Needs{Namespace: namespace}
	for _, k := range d.Moved() {
		n.Resources = append(n.Resources, preflight.Resource{Group: k.Group, Plural: k.Resource, Namespaced: k.Namespaced, Moves: moves(k.GroupKind)})
	}
	return n
}

// essential are the rights without which nothing can be read at all.
func essential(side preflight.Side) []preflight.Right {
	return preflight.Rights(side, preflight.Needs{})[:1]
}

// blind tells who may not even look: there is nothing to judge then.
func (c *checking) blind(ctx context.Context) ([]finding.Finding, error) {
	if !c.o.Rights {
		return nil, nil
	}
	var missing []preflight.Right
	for side, of := range map[preflight.Side]*management.Cluster{preflight.Source: c.o.Source, preflight.Target: c.o.Target} {
		if of == nil {
			continue
		}
		m, err := lacking(ctx, of, essential(side))
		if err != nil {
			return nil, err
		}
		missing = append(missing, m...)
	}
	found := preflight.MissingPermissions(missing)
	finding.Sort(found)
	return found, nil
}

// missingRights are those of a pivot that this user lacks on either side.
func (c *checking) missingRights(ctx context.Context) ([]preflight.Right, error) {
	moving := c.scope.Moving()
	moves := func(gk graph.GroupKind) bool { return len(moving[gk]) > 0 }
	d, err := c.o.Source.Discover(ctx)
	if err != nil {
		return nil, err
	}
	n := needsOf(d, c.o.Namespace, moves)
	// Who may not list the Providers is told so by the rights themselves.
	if providers, err := c.o.Source.Providers(ctx); err == nil {
		for _, p := range providers {
			if p.Type == "InfrastructureProvider" && !slices.Contains(n.ProviderNamespaces, p.Namespace) {
				n.ProviderNamespaces = append(n.ProviderNamespaces, p.Namespace)
			}
		}
	}
	missing, err := lacking(ctx, c.o.Source, preflight.Rights(preflight.Source, n))
	if err != nil || c.o.Target == nil {
		return missing, err
	}
	if d, err = c.o.Target.Discover(ctx); err != nil {
		return nil, err
	}
	n = needsOf(d, c.o.Namespace, moves)
	for namespace := range namespacesOf(moving) {
		exists, err := c.o.Target.NamespaceExists(ctx, namespace)
		if err != nil {
			return nil, err
		}
		n.NewNamespaces = n.NewNamespaces || !exists
	}
	more, err := lacking(ctx, c.o.Target, preflight.Rights(preflight.Target, n))
	return append(missing, more...), err
}

func namespacesOf(moving map[graph.GroupKind][]graph.ID) map[string]bool {
	names := map[string]bool{}
	for _, ids := range moving {
		for _, id := range ids {
			if id.Namespace != "" {
				names[id.Namespace] = true
			}
		}
	}
	return names
}

// lacking asks the server which of the rights this user does not have.
func lacking(ctx context.Context, c *management.Cluster, rights []preflight.Right) ([]preflight.Right, error) {
	var all []management.Access
	for _, r := range rights {
		for _, verb := range r.Verbs {
			all = append(all, accessOf(r, verb))
		}
	}
	denied, err := c.Denied(ctx, all)
	if err != nil {
		return nil, err
	}
	not := map[management.Access]bool{}
	for _, a := range denied {
		not[a] = true
	}
	return preflight.Lacking(rights, func(r preflight.Right, verb string) bool { return not[accessOf(r, verb)] }), nil
}

func accessOf(r preflight.Right, verb string) management.Access {
	return management.Access{Verb: verb, Group: r.Group, Resource: r.Resource, Namespace: r.Namespace}
}

// Role is a ClusterRole with the rights that a pivot needs on one side, as text for
// `kubectl apply -f -`.
func Role(ctx context.Context, c *management.Cluster, side preflight.Side) (string, error) {
	d, err := c.Discover(ctx)
	if err != nil {
		return "", err
	}
	n := needsOf(d, "", func(graph.GroupKind) bool { return true })
	n.NewNamespaces = true
	return preflight.Role(side, preflight.Rights(side, n))
}
