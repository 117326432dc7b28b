package management

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/move-hook/move-hook/pkg/graph"
)

// wholePage bounds a page of whole objects, which take more room than what
// decisions read of them.
const wholePage = 500

// asTable asks for the columns that kubectl prints. There is no second choice: a server
// that does not know tables must not send Secrets whole.
const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

// Whole reads the objects of a kind page by page, in the given version. Secrets have
// their metadata and their type: the server does not send their data.
func (c *Cluster) Whole(ctx context.Context, k Kind, apiVersion, namespace string, each func([]unstructured.Unstructured) error) error {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return fmt.Errorf("listing %s: %w", k.GroupKind, err)
	}
	if !k.Namespaced {
		namespace = ""
	}
	ask := func(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
		return c.dynamic.Resource(gv.WithResource(k.Resource)).Namespace(namespace).List(ctx, o)
	}
	if k.GroupKind == graph.Secret {
		ask = func(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
			return c.secrets(ctx, namespace, o)
		}
	}
	for o := (metav1.ListOptions{Limit: wholePage}); ; {
		page, err := c.wholePage(ctx, ask, o)
		if err != nil {
			return fmt.Errorf("listing %s on %s: %w", k.GroupKind, c.name, err)
		}
		if err := each(page.Items); err != nil {
			return err
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}

func (c *Cluster) wholePage(ctx context.Context, ask func(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error), o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return ask(ctx, o)
}

// secrets lists Secrets as a table, which tells their type.
func (c *Cluster) secrets(ctx context.Context, namespace string, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	path := []string{"/api/v1", "secrets"}
	if namespace != "" {
		path = []string{"/api/v1/namespaces", namespace, "secrets"}
	}
	r := c.clientset.CoreV1().RESTClient().Get().AbsPath(path...).SetHeader("Accept", asTable).
		Param("includeObject", string(metav1.IncludeMetadata)).Param("limit", fmt.Sprint(o.Limit))
	if o.Continue != "" {
		r = r.Param("continue", o.Continue)
	}
	result := r.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	text, err := result.Raw()
	if err != nil {
		return nil, err
	}
	return secretsOf(text)
}

// secretsOf reads a table of Secrets.
func secretsOf(text []byte) (*unstructured.UnstructuredList, error) {
	var table metav1.Table
	if err := json.Unmarshal(text, &table); err != nil {
		return nil, fmt.Errorf("reading a table of Secrets: %w", err)
	}
	column := slices.IndexFunc(table.ColumnDefinitions, func(d metav1.TableColumnDefinition) bool { return d.Name == "Type" })
	list := &unstructured.UnstructuredList{}
	list.SetContinue(table.Continue)
	for _, row := range table.Rows {
		if column < 0 || column >= len(row.Cells) {
			return nil, errors.New("reading a table of Secrets: it has no column Type")
		}
		u := unstructured.Unstructured{}
		if err := json.Unmarshal(row.Object.Raw, &u.Object); err != nil {
			return nil, fmt.Errorf("reading a table of Secrets: %w", err)
		}
		u.SetAPIVersion("v1")
		u.SetKind(graph.Secret.Kind)
		annotations := u.GetAnnotations()
		delete(annotations, graph.LastAppliedAnnotation) // has the data
		u.SetAnnotations(annotations)
		u.Object["type"] = row.Cells[column]
		list.Items = append(list.Items, u)
	}
	return list, nil
}

// Offer asks the server what it would make of an object of another management cluster,
// without owners and status. Nothing is stored. It tries what clusterctl does
// (mover.go, createTargetObject): to create it or, where there is one already, to
// update that to it. refused is what the server says where it would not.
func (c *Cluster) Offer(ctx context.Context, k Kind, u, there *unstructured.Unstructured) (got *unstructured.Unstructured, refused *metav1.Status, err error) {
	u = u.DeepCopy()
	if err := creatable(u); err != nil {
		return nil, nil, fmt.Errorf("offering %s: %w", IDOf(u), err)
	}
	u.SetManagedFields(nil)
	gv, err := schema.ParseGroupVersion(u.GetAPIVersion())
	if err != nil {
		return nil, nil, fmt.Errorf("offering %s: %w", IDOf(u), err)
	}
	api := c.dynamic.Resource(gv.WithResource(k.Resource)).Namespace(u.GetNamespace())
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	dry := []string{metav1.DryRunAll}
	if there == nil {
		got, err = api.Create(ctx, u, metav1.CreateOptions{DryRun: dry, FieldManager: FieldManager})
	} else {
		u.SetUID(there.GetUID())
		u.SetResourceVersion(there.GetResourceVersion())
		// What is there is judged without a change of owners: post repairs those.
		u.SetOwnerReferences(there.GetOwnerReferences())
		got, err = api.Update(ctx, u, metav1.UpdateOptions{DryRun: dry, FieldManager: FieldManager})
	}
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return got, nil, nil
	case Answered(err) && errors.As(err, &status):
		said := status.Status()
		return nil, &said, nil
	}
	return nil, nil, fmt.Errorf("offering %s to %s: %w", IDOf(u), c.name, err)
}
