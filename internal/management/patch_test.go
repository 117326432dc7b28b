package management

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
)

// patch does what kube-apiserver v1.36 was seen to do with a merge patch of
// metadata: 404 without the object, 409 when resourceVersion or (with it) UID
// differ, 200 with an unchanged resourceVersion when nothing changes.
func (s *apiServer) patch(w http.ResponseWriter, r *http.Request) {
	o, ok := s.objects[r.URL.Path]
	if !ok {
		refuse(w, http.StatusNotFound, "NotFound", "it is not there")
		return
	}
	var p struct{ Metadata map[string]any }
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	meta := o["metadata"].(map[string]any)
	if p.Metadata["resourceVersion"] != meta["resourceVersion"] || p.Metadata["uid"] != meta["uid"] {
		refuse(w, http.StatusConflict, "Conflict", "the object has been modified")
		return
	}
	next := mergePatch(meta, p.Metadata)
	if !reflect.DeepEqual(meta, next) && r.URL.Query().Get("dryRun") == "" {
		s.version++
		next["resourceVersion"] = strconv.Itoa(s.version)
		o["metadata"] = next
	}
	reply(w, map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": next})
}

func mergePatch(have, patch map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range have {
		out[k] = v
	}
	for k, v := range patch {
		inner, isMap := v.(map[string]any)
		switch {
		case v == nil:
			delete(out, k)
		case isMap:
			before, _ := have[k].(map[string]any)
			if out[k] = mergePatch(before, inner); len(out[k].(map[string]any)) == 0 {
				delete(out, k)
			}
		default:
			out[k] = v
		}
	}
	return out
}
