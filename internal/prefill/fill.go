package prefill

import (
	"strings"

	"github.com/move-hook/move-hook/pkg/finding"
)

// fill merges what was worked out into what the user said: the user's value stays,
// and where it is another one both are reported. It returns the whole.
func (p *Proposal) fill(in Input, worked values) values {
	have := compact(valuesOf(in.Existing.Spec))
	var found []difference
	p.Additions = lacks("spec", have, compact(worked), &found)
	for _, d := range found {
		if d.path == "spec.replicas" {
			continue // a refusal of its own, see limits
		}
		f := differs(idContradiction, in.controlPlane(), d.path, shown(d.path, d.have), shown(d.path, d.want), "is not what the Machines have; it is kept")
		if strings.HasPrefix(d.path, "spec.machineTemplate.spec.infrastructureRef") {
			// Machines need not be made from the template that is used for new ones.
			f.Severity = finding.Notes
		}
		p.add(f)
	}
	return merged(have, p.Additions)
}

// lacks are the fields of want that have has not, and found those that it has with
// another value.
func lacks(path string, have, want values, found *[]difference) values {
	out := values{}
	for _, k := range union(want) {
		at := path + "." + k
		h, there := have[k]
		hm, hok := h.(values)
		wm, wok := want[k].(values)
		switch {
		case !there:
			out[k] = want[k]
		case hok && wok:
			if inner := lacks(at, hm, wm, found); len(inner) > 0 {
				out[k] = inner
			}
		case text(h) != text(want[k]):
			*found = append(*found, difference{at, h, want[k]})
		}
	}
	return out
}

func merged(have, additions values) values {
	out := clone(have)
	for k, add := range additions {
		hm, hok := out[k].(values)
		am, aok := add.(values)
		if hok && aok {
			out[k] = merged(hm, am)
			continue
		}
		out[k] = add
	}
	return out
}
