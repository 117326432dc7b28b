package management

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/graph"
)

// providerKind is clusterctl's inventory of installed providers.
var providerKind = graph.GroupKind{Group: "clusterctl.cluster.x-k8s.io", Kind: "Provider"}

// Provider is one entry of clusterctl's inventory.
type Provider struct {
	// Type and Name tell one provider from another: "InfrastructureProvider", "docker".
	Type, Name string
	Namespace  string
	Version    string
}

// Providers are those that clusterctl installed; none where clusterctl installed none.
func (c *Cluster) Providers(ctx context.Context) ([]Provider, error) {
	d, err := c.Discover(ctx)
	if err != nil {
		return nil, err
	}
	k, ok := d.Find(providerKind)
	if !ok {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := c.dynamic.Resource(k.GVR()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing clusterctl's Providers on %s: %w", c.name, err)
	}
	var found []Provider
	for _, p := range list.Items {
		text := func(field string) string { s, _ := p.Object[field].(string); return s }
		found = append(found, Provider{Type: text("type"), Name: text("providerName"), Namespace: p.GetNamespace(), Version: text("version")})
	}
	return found, nil
}

// ProviderNamespaces are the namespaces of those providers.
func (c *Cluster) ProviderNamespaces(ctx context.Context) ([]string, error) {
	all, err := c.Providers(ctx)
	var namespaces []string
	for _, p := range all {
		namespaces = append(namespaces, p.Namespace)
	}
	return namespaces, err
}

// KubeadmProviderVersion is the version of the KubeadmControlPlane provider that is
// installed, as clusterctl's inventory has it; empty where that does not tell (an
// operator installed it, or several are there).
func (c *Cluster) KubeadmProviderVersion(ctx context.Context) (string, error) {
	all, err := c.Providers(ctx)
	if err != nil {
		return "", err
	}
	var found []string
	for _, p := range all {
		if p.Type == "ControlPlaneProvider" && p.Name == "kubeadm" && p.Version != "" {
			found = append(found, p.Version)
		}
	}
	if len(found) != 1 {
		return "", nil
	}
	return found[0], nil
}
