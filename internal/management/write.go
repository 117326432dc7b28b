package management

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// conflictTries is how often a patch is sent again after a conflict that did not
// touch what the decision had read: busy status writers must not starve us.
const conflictTries = 5

// WriteError is a write that the server refused, or of which nobody knows whether
// it took effect.
type WriteError struct {
	Object graph.ID
	// Unknown: the request may have taken effect. Never assume that it failed:
	// observe again.
	Unknown bool
	Err     error
}

// Error names the object and what the server said.
func (e *WriteError) Error() string {
	if e.Unknown {
		return fmt.Sprintf("writing %s: outcome unknown: %v", e.Object, e.Err)
	}
	return fmt.Sprintf("writing %s: the server refused: %v", e.Object, e.Err)
}

// Unwrap gives the server's error.
func (e *WriteError) Unwrap() error { return e.Err }

// Apply performs one action as a JSON merge patch of the object's metadata that
// carries the UID and resourceVersion of the decision. With dryRun the server
// judges and stores nothing. After a conflict the object is read again: if what
// the decision read still stands, the same patch is sent with the new version.
func (c *Cluster) Apply(ctx context.Context, a adopt.Action, dryRun bool) (adopt.Outcome, error) {
	gvr, err := c.resourceOf(ctx, a.Target().ID)
	if err != nil {
		return adopt.Moved, err
	}
	t := a.Target()
	api := c.metadata.Resource(gvr).Namespace(t.Namespace)
	options := metav1.PatchOptions{FieldManager: FieldManager}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	version := t.ResourceVersion
	for try := 0; ; try++ {
		body, err := json.Marshal(map[string]any{"metadata": patchOf(a, version)})
		if err != nil {
			return adopt.Moved, fmt.Errorf("writing %s: %w", t.ID, err)
		}
		got, err := patch(ctx, api, t.Name, body, options)
		switch {
		case err == nil && !dryRun && got.ResourceVersion == version:
			return adopt.AlreadyThere, nil
		case err == nil:
			return adopt.Applied, nil
		case apierrors.IsNotFound(err), isOtherCopy(err):
			return adopt.Moved, nil
		case apierrors.IsConflict(err):
			if try == conflictTries {
				return adopt.Moved, nil
			}
			now, err := c.Get(ctx, t.ID, false)
			if apierrors.IsForbidden(err) {
				// Who may list and watch, and not get, hears of it.
				return adopt.Moved, nil
			}
			if err != nil {
				return adopt.Moved, &WriteError{Object: t.ID, Unknown: true, Err: err}
			}
			if now == nil || now.UID != t.UID || now.Deleting || !stands(a, now) {
				return adopt.Moved, nil
			}
			version = now.ResourceVersion
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsUnauthorized(err), apierrors.IsMethodNotSupported(err):
			return adopt.Moved, &WriteError{Object: t.ID, Err: err}
		default:
			return adopt.Moved, &WriteError{Object: t.ID, Unknown: true, Err: err}
		}
	}
}

func patch(ctx context.Context, api metadata.ResourceInterface, name string, body []byte, o metav1.PatchOptions) (*metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return api.Patch(ctx, name, types.MergePatchType, body, o)
}

func patchOf(a adopt.Action, version string) map[string]any {
	m := map[string]any{"uid": a.Target().UID, "resourceVersion": version}
	switch a := a.(type) {
	case adopt.SetOwners:
		if len(a.After) == 0 {
			m["ownerReferences"] = nil
		} else {
			m["ownerReferences"] = a.After
		}
	case adopt.ChangeMeta:
		m["labels"] = merge(a.Change.SetLabels, a.Change.DropLabels)
		m["annotations"] = merge(a.Change.SetAnnotations, a.Change.DropAnnotations)
	case adopt.CloseRecord:
		m["annotations"] = map[string]any{graph.AdoptedAnnotation: a.At.UTC().Format(time.RFC3339)}
	}
	return m
}

func merge(set map[string]string, drop []string) map[string]any {
	out := make(map[string]any, len(set)+len(drop))
	for k, v := range set {
		out[k] = v
	}
	for _, k := range drop {
		out[k] = nil
	}
	return out
}

// stands says whether what the decision read of the object is still so, although
// somebody wrote it meanwhile.
func stands(a adopt.Action, now *graph.Object) bool {
	switch a := a.(type) {
	case adopt.SetOwners:
		return equality.Semantic.DeepEqual(now.Owners, a.Before)
	case adopt.ChangeMeta:
		return labelsStand(a.Change.SetLabels, a.Change.DropLabels, now.Labels) &&
			labelsStand(a.Change.SetAnnotations, a.Change.DropAnnotations, now.Annotations) &&
			pauseStands(a.Change, now)
	case adopt.CloseRecord:
		// Nobody but `move-hook pre` writes a record: there may be a new one in it.
		return false
	}
	return false
}

// labelsStand: what is to be dropped is still there, and what is to be set was not
// set to something else by somebody else.
func labelsStand(set map[string]string, drop []string, now map[string]string) bool {
	for _, k := range drop {
		if _, ok := now[k]; !ok {
			return false
		}
	}
	for k, v := range set {
		if have, ok := now[k]; ok && have != v {
			return false
		}
	}
	return true
}

// pauseStands: a pause is dropped only while it is ours, and set only where
// nobody else has paused meanwhile.
func pauseStands(c labels.Change, now *graph.Object) bool {
	value, paused := now.Annotations[graph.PausedAnnotation]
	if slices.Contains(c.DropAnnotations, graph.PausedAnnotation) {
		return paused && value == ""
	}
	if _, sets := c.SetAnnotations[graph.PausedAnnotation]; sets {
		return !paused
	}
	return true
}

// isOtherCopy: the UID in the patch is not the object's (seen when it was deleted
// and made again).
func isOtherCopy(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field == "metadata.uid"
	})
}

// Confirm takes one uncached look at owners that are about to be written into
// references: the same copies, none being deleted. False means observe again.
func (c *Cluster) Confirm(ctx context.Context, owners []adopt.Target) (bool, error) {
	alive := make([]bool, len(owners))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, t := range owners {
		group.Go(func() error {
			o, err := c.Get(ctx, t.ID, false)
			alive[i] = o != nil && o.UID == t.UID && !o.Deleting
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return false, err
	}
	return !slices.Contains(alive, false), nil
}
