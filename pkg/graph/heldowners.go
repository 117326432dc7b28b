package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// heldOwner is how the owners annotation writes an owner reference: without the
// UID, which belonged to a copy that is not here.
type heldOwner struct {
	APIVersion         string `json:"apiVersion"`
	Kind               string `json:"kind"`
	Name               string `json:"name"`
	Controller         *bool  `json:"controller,omitempty"`
	BlockOwnerDeletion *bool  `json:"blockOwnerDeletion,omitempty"`
}

// ParseHeldOwners reads the owners annotation: the owner references that an armed
// target took off an arriving object, without UIDs. An owner that was there twice
// is there once, and manages if either did. Fields that it does not know are
// ignored: a later version may write them.
func ParseHeldOwners(value string) ([]metav1.OwnerReference, error) {
	var held []heldOwner
	if err := json.Unmarshal([]byte(value), &held); err != nil {
		// The error of the decoder speaks of Go's types, which helps nobody.
		return nil, errors.New("it is no JSON list of owners")
	}
	if len(held) == 0 {
		return nil, errors.New("it names no owner")
	}
	var out []metav1.OwnerReference
	for i, h := range held {
		switch {
		case h.APIVersion == "" || h.Kind == "" || h.Name == "":
			return nil, fmt.Errorf("[%d] has no apiVersion, no kind or no name", i)
		case strings.Count(h.APIVersion, "/") > 1:
			return nil, fmt.Errorf("[%d].apiVersion %q is no group and version", i, h.APIVersion)
		}
		ref := metav1.OwnerReference{
			APIVersion: h.APIVersion, Kind: h.Kind, Name: h.Name,
			Controller: h.Controller, BlockOwnerDeletion: h.BlockOwnerDeletion,
		}
		if at := slices.IndexFunc(out, func(o metav1.OwnerReference) bool { return sameOwner(o, ref) }); at >= 0 {
			if ref.Controller != nil && *ref.Controller {
				out[at].Controller = ref.Controller
			}
			continue
		}
		out = append(out, ref)
	}
	return out, nil
}

func sameOwner(a, b metav1.OwnerReference) bool {
	return GroupOf(a.APIVersion) == GroupOf(b.APIVersion) && a.Kind == b.Kind && a.Name == b.Name
}

// HeldOwners are the owner references that an armed target took off the object;
// none, and no error, where it carries no owners annotation.
func (o *Object) HeldOwners() ([]metav1.OwnerReference, error) {
	value, ok := o.Annotations[OwnersAnnotation]
	if !ok {
		return nil, nil
	}
	return ParseHeldOwners(value)
}

// NamedOwners are the object's owner references and those that were taken off it,
// each owner once. What of the annotation cannot be read names nobody.
func (o *Object) NamedOwners() []metav1.OwnerReference {
	held, err := o.HeldOwners()
	if err != nil || len(held) == 0 {
		return o.Owners
	}
	out := slices.Clone(o.Owners)
	for _, ref := range held {
		if !slices.ContainsFunc(o.Owners, func(have metav1.OwnerReference) bool { return sameOwner(have, ref) }) {
			out = append(out, ref)
		}
	}
	return out
}
