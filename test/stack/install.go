package stack

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// installed is a provider in one management cluster.
type installed struct {
	provider
	webhookPort int
	healthPort  int
	certDir     string
	webhooks    []*unstructured.Unstructured
}

// install does what `clusterctl init` would: CRDs, Namespaces, the managers'
// rights, and the inventory, without which clusterctl finds nothing to move.
// The Deployments stay out: their processes are the stack's.
func (m *Management) install(ctx context.Context) error {
	var first, crds, rest []*unstructured.Unstructured
	for _, p := range providers {
		manifest, err := m.tools.load(p)
		if err != nil {
			return err
		}
		in := installed{provider: p, certDir: m.dir + "/webhook-" + p.label()}
		if in.webhookPort, err = m.ports.port(); err != nil {
			return err
		}
		if in.healthPort, err = m.ports.port(); err != nil {
			return err
		}
		for _, object := range manifest.Objects {
			switch object.GetKind() {
			case "Namespace":
				first = append(first, object)
			case "CustomResourceDefinition":
				if err := m.prepareCRD(object, in); err != nil {
					return err
				}
				crds = append(crds, object)
			case "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
				rest = append(rest, object)
			case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
				if err := m.pointWebhooksAt(object, in.webhookPort); err != nil {
					return err
				}
				in.webhooks = append(in.webhooks, object)
			case "Deployment", "Service", "Certificate", "Issuer":
			default:
				return fmt.Errorf("the manifests of %s hold a %s, of which the stack does not know what to do", p.label(), object.GetKind())
			}
		}
		inventory, err := inventoryOf(p, manifest.Version)
		if err != nil {
			return err
		}
		rest = append(rest, inventory)
		m.providers = append(m.providers, in)
	}
	if err := m.createAll(ctx, append(first, crds...)); err != nil {
		return err
	}
	if err := m.waitEstablished(ctx, len(crds)); err != nil {
		return err
	}
	return m.createAll(ctx, rest)
}

// prepareCRD labels a CRD as clusterctl does and sends its conversions to the
// manager's process, or does without conversion where no manager runs.
func (m *Management) prepareCRD(crd *unstructured.Unstructured, p installed) error {
	labels := crd.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterctlv1.ClusterctlLabel] = ""
	crd.SetLabels(labels)

	if _, found, _ := unstructured.NestedMap(crd.Object, "spec", "conversion", "webhook"); !found {
		return nil
	}
	if m.options.Bare {
		unstructured.RemoveNestedField(crd.Object, "spec", "conversion")
		return nil
	}
	return unstructured.SetNestedField(crd.Object, m.clientConfig(p.webhookPort, "/convert"), "spec", "conversion", "webhook", "clientConfig")
}

func (m *Management) pointWebhooksAt(configuration *unstructured.Unstructured, port int) error {
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, w := range webhooks {
		webhook := w.(map[string]any)
		path, _, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if err != nil {
			return err
		}
		webhook["clientConfig"] = m.clientConfig(port, path)
	}
	return unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks")
}

func (m *Management) clientConfig(port int, path string) map[string]any {
	return map[string]any{
		"url":      "https://" + localAddress(port) + path,
		"caBundle": base64.StdEncoding.EncodeToString(m.ca.pem),
	}
}

func inventoryOf(p provider, version string) (*unstructured.Unstructured, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&clusterctlv1.Provider{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterctlv1.GroupVersion.String(), Kind: "Provider"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.label(), Labels: map[string]string{
			clusterctlv1.ClusterctlLabel:     "",
			clusterctlv1.ClusterctlCoreLabel: clusterctlv1.ClusterctlCoreLabelInventoryValue,
			"cluster.x-k8s.io/provider":      p.label(),
		}},
		ProviderName: p.name,
		Type:         string(p.kind),
		Version:      version,
	})
	return &unstructured.Unstructured{Object: object}, err
}

// createAll creates objects that do not depend on each other.
func (m *Management) createAll(ctx context.Context, objects []*unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, object := range objects {
		group.Go(func() error {
			err := m.client.Create(ctx, object.DeepCopy())
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (m *Management) waitEstablished(ctx context.Context, want int) error {
	missing := sets.New[string]()
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		list := &apiextensionsv1.CustomResourceDefinitionList{}
		if err := m.client.List(ctx, list); err != nil {
			return false, err
		}
		missing.Clear()
		for i := range list.Items {
			if !established(&list.Items[i]) {
				missing.Insert(list.Items[i].Name)
			}
		}
		return len(list.Items) >= want && missing.Len() == 0, nil
	})
	if err != nil {
		return fmt.Errorf("CRDs not established: %v: %w", sets.List(missing), err)
	}
	return nil
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// waitAggregated waits until the roles that gather others have their rules: a
// manager that starts earlier is refused what it reads first.
func (m *Management) waitAggregated(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		list := &rbacv1.ClusterRoleList{}
		if err := m.client.List(ctx, list, client.HasLabels{"cluster.x-k8s.io/provider"}); err != nil {
			return false, err
		}
		for _, role := range list.Items {
			if role.AggregationRule != nil && len(role.Rules) == 0 {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("the providers' roles are not aggregated: %w", err)
	}
	return nil
}
