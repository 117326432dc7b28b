package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/graph"
)

// tries bounds how often a write starts over because somebody else wrote too.
const tries = 5

// object is a pointer to one of the API's types.
type object[T any] interface {
	*T
	metav1.Object
}

// endpoint is one kind of policy in the version that the server serves. v1 and
// v1beta1 have the same fields, so v1's types are used for both and only the
// apiVersion on the wire differs.
type endpoint[T any, P object[T]] struct {
	rest       rest.Interface
	on         string
	apiVersion string
	kind       string
	dryRun     bool
}

func (e endpoint[T, P]) plural() string {
	if strings.HasSuffix(e.kind, "Policy") {
		return strings.ToLower(strings.TrimSuffix(e.kind, "y")) + "ies"
	}
	return strings.ToLower(e.kind) + "s"
}

func (e endpoint[T, P]) request(verb, name string) *rest.Request {
	path := []string{"/apis", e.apiVersion, e.plural()}
	if name != "" {
		path = append(path, name)
	}
	r := e.rest.Verb(verb).AbsPath(path...).SetHeader("Accept", "application/json")
	if verb == "GET" {
		return r
	}
	r = r.SetHeader("Content-Type", "application/json")
	if verb == "DELETE" {
		return r
	}
	r = r.Param("fieldManager", management.FieldManager)
	if e.dryRun {
		r = r.Param("dryRun", metav1.DryRunAll)
	}
	return r
}

// answer is what the server sent, or its own words for why not, which Raw leaves out.
func answer(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	return r.Raw()
}

// get is nil where there is none.
func (e endpoint[T, P]) get(ctx context.Context, name string) (P, error) {
	text, err := answer(e.request("GET", name).Do(ctx))
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, e.failed("reading", name, err)
	}
	out := P(new(T))
	if err := json.Unmarshal(text, out); err != nil {
		return nil, e.failed("reading", name, err)
	}
	return out, nil
}

// list gives all, whoever made them: somebody else's binding may use our policy.
func (e endpoint[T, P]) list(ctx context.Context) ([]T, error) {
	text, err := answer(e.request("GET", "").Do(ctx))
	if err != nil {
		return nil, fmt.Errorf("listing %s on %s: %w", e.plural(), e.on, err)
	}
	var out struct {
		Items []T `json:"items"`
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("listing %s on %s: %w", e.plural(), e.on, err)
	}
	return out.Items, nil
}

// ensure makes what is there what is wanted, and returns what it wrote: nothing
// where same says that it is so. want is asked again after somebody else's write.
func (e endpoint[T, P]) ensure(ctx context.Context, name string, want func(have P) (P, error), same func(have, want P) bool) ([]flow.Write, error) {
	for range tries {
		have, err := e.get(ctx, name)
		if err != nil {
			return nil, err
		}
		wanted, err := want(have)
		if err != nil {
			return nil, err
		}
		verb, participle, at := "POST", "created", ""
		if have != nil {
			if same(have, wanted) {
				return nil, nil
			}
			verb, participle, at = "PUT", "configured", name
			wanted.SetResourceVersion(have.GetResourceVersion())
			wanted.SetUID(have.GetUID())
		}
		body, err := e.encode(wanted)
		if err != nil {
			return nil, e.failed("writing", name, err)
		}
		err = e.request(verb, at).Body(body).Do(ctx).Error()
		switch {
		case err == nil:
			return []flow.Write{flow.Wrote(graph.ID{Group: group, Kind: e.kind, Name: name}, participle, e.dryRun)}, nil
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
			continue
		}
		return nil, e.failed("writing", name, err)
	}
	return nil, e.failed("writing", name, errors.New("somebody else keeps writing it: run the command again"))
}

// remove deletes it if it is still the copy that was looked at.
func (e endpoint[T, P]) remove(ctx context.Context, o P) ([]flow.Write, error) {
	uid := o.GetUID()
	options := metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Preconditions: &metav1.Preconditions{UID: &uid}}
	if e.dryRun {
		// With a body, the server takes no options from the query.
		options.DryRun = []string{metav1.DryRunAll}
	}
	body, err := json.Marshal(options)
	if err != nil {
		return nil, e.failed("deleting", o.GetName(), err)
	}
	err = e.request("DELETE", o.GetName()).Body(body).Do(ctx).Error()
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil, nil
	case err != nil:
		return nil, e.failed("deleting", o.GetName(), err)
	}
	return []flow.Write{flow.Wrote(graph.ID{Group: group, Kind: e.kind, Name: o.GetName()}, "deleted", e.dryRun)}, nil
}

func (e endpoint[T, P]) encode(o P) ([]byte, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"] = e.apiVersion, e.kind
	return json.Marshal(fields)
}

func (e endpoint[T, P]) failed(doing, name string, err error) error {
	return fmt.Errorf("%s %s on %s: %w", doing, flow.Resource(graph.ID{Group: group, Kind: e.kind, Name: name}), e.on, err)
}
