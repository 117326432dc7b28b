package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// content is one object as the API server stores it.
type content = map[string]any

// memory is a World in memory with the API server's rules as far as a pass can
// meet them: resourceVersions, UIDs, no two controllers, no empty UIDs. It is the
// fast net under the tests on a real server, never the proof.
type memory struct {
	mu      sync.Mutex
	now     time.Time
	cluster graph.ID
	// objects are never changed in place: store replaces them.
	objects  map[graph.ID]content
	read     map[graph.ID]graph.Object // the same, extracted
	unlisted map[graph.GroupKind]bool
	version  int

	// The record: in the ConfigMaps of that label where they have arrived, or from a file.
	record   *graph.Snapshot
	fromFile bool
	partial  []Missing

	named   bool
	down    bool // the providers are scaled to zero
	other   OtherSide
	rollout map[graph.ID]Rollout
	// rolloutUnknown and providerVersion are what a State knows beside the verdicts.
	rolloutUnknown, providerVersion string
	policy                          Policy

	// killAt is after how many writes the process dies, the answer unread; negative: never.
	killAt int
	// meddle is called once, between the probe and the first write.
	meddle  func(*memory)
	writes  []string
	dryRuns int
	events  []Event
}

var errKilled = errors.New("killed")

func newMemory() *memory {
	return &memory{
		now:      time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC),
		cluster:  coreID(graph.Cluster, "c1"),
		objects:  map[graph.ID]content{},
		read:     map[graph.ID]graph.Object{},
		unlisted: map[graph.GroupKind]bool{},
		other:    OtherUnknown,
		rollout:  map[graph.ID]Rollout{},
		policy:   Policy{Settle: 5 * time.Second, WatchAfter: 30 * time.Second},
		killAt:   -1,
	}
}

func coreID(gk graph.GroupKind, name string) graph.ID {
	return graph.ID{Group: gk.Group, Kind: gk.Kind, Namespace: "default", Name: name}
}

// clone is a copy that shares nothing that changes.
func (w *memory) clone() *memory {
	c := newMemory()
	c.now, c.cluster, c.version = w.now, w.cluster, w.version
	c.unlisted, c.partial, c.rollout = maps.Clone(w.unlisted), w.partial, w.rollout
	c.record, c.fromFile, c.named, c.other, c.policy = w.record, w.fromFile, w.named, w.other, w.policy
	c.down, c.rolloutUnknown, c.providerVersion = w.down, w.rolloutUnknown, w.providerVersion
	c.objects, c.read = maps.Clone(w.objects), maps.Clone(w.read)
	return c
}

func clone(o content) content {
	var out content
	raw, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

// allKinds are what discovery would tell.
func allKinds() []graph.KindInfo {
	var out []graph.KindInfo
	for apiVersion, names := range map[string][]string{
		"cluster.x-k8s.io/v1beta2":                {"Cluster", "ClusterClass", "Machine", "MachineSet", "MachineDeployment", "MachinePool", "MachineHealthCheck"},
		"bootstrap.cluster.x-k8s.io/v1beta2":      {"KubeadmConfig", "KubeadmConfigTemplate"},
		"controlplane.cluster.x-k8s.io/v1beta2":   {"KubeadmControlPlane", "OtherControlPlane"},
		"infrastructure.cluster.x-k8s.io/v1beta2": {"DevCluster", "DevMachine", "DevMachineTemplate", "DevMachinePool"},
		"addons.cluster.x-k8s.io/v1beta2":         {"ClusterResourceSet", "ClusterResourceSetBinding"},
		"example.com/v1":                          {"Widget"},
		"v1":                                      {"Secret", "ConfigMap"},
	} {
		for _, kind := range names {
			gk := graph.GroupKind{Group: graph.GroupOf(apiVersion), Kind: kind}
			out = append(out, graph.KindInfo{
				GroupKind: gk, APIVersion: apiVersion, Namespaced: true, Discovered: gk.Group != "example.com",
				ForceMove: graph.ForceMoves(gk), ForceMoveHierarchy: graph.ForceMoves(gk),
			})
		}
	}
	return out
}

// graphOf builds a graph of objects, everything listed except what is in unlisted.
func graphOf(objects iter.Seq[graph.Object], unlisted map[graph.GroupKind]bool) *graph.Graph {
	var b graph.Builder
	for _, k := range allKinds() {
		b.Kind(k)
		if !unlisted[k.GroupKind] {
			b.Listed(k.GroupKind, "")
		}
	}
	for o := range objects {
		if !unlisted[o.GroupKind()] {
			b.Add(o)
		}
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

func (w *memory) graph() *graph.Graph { return graphOf(maps.Values(w.read), w.unlisted) }

func extract(o content) graph.Object {
	x, err := graph.Extract(o)
	if err != nil {
		panic(err)
	}
	return x
}

// state is what Observe gives.
func (w *memory) state() State {
	s := State{
		Now: w.now, Cluster: w.cluster, Graph: w.graph(), Named: w.named, Other: w.other,
		Rollout: w.rollout, RolloutUnknown: w.rolloutUnknown, ProviderVersion: w.providerVersion, Policy: w.policy, Record: Expectation{Partial: w.partial},
		ControllersDown: w.down,
	}
	if w.fromFile {
		s.Record.Snapshot = w.record
		return s
	}
	closed := true
	for _, o := range s.Graph.OfKind(graph.ConfigMap) {
		if graph.IsRecord(o) && o.Labels[labels.Record] == w.cluster.Name {
			s.Record.Snapshot = w.record
			s.Record.Objects = append(s.Record.Objects, targetOf(o))
			closed = closed && o.Annotations[labels.Adopted] != ""
		}
	}
	s.Record.Closed = closed && len(s.Record.Objects) > 0
	return s
}

// Observe reads everything.
func (w *memory) Observe(context.Context, graph.ID) (State, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state(), nil
}

// Confirm looks at owners again.
func (w *memory) Confirm(_ context.Context, owners []Target) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.meddle != nil {
		w.meddle(w)
		w.meddle = nil
	}
	for _, t := range owners {
		o, ok := w.objects[t.ID]
		if !ok || metaOf(o)["uid"] != string(t.UID) || metaOf(o)["deletionTimestamp"] != nil {
			return false, nil
		}
	}
	return true, nil
}

// Tell remembers.
func (w *memory) Tell(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// Apply writes as the real World does: a conflict is looked into, and only what
// the decision rested on matters.
func (w *memory) Apply(_ context.Context, a Action, dryRun bool) (Outcome, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.killAt >= 0 && len(w.writes) >= w.killAt && !dryRun {
		return 0, errKilled
	}
	t := a.Target()
	before, ok := w.objects[t.ID]
	if !ok || metaOf(before)["uid"] != string(t.UID) {
		return Moved, nil
	}
	if _, owners := a.(SetOwners); !owners && metaOf(before)["resourceVersion"] != t.ResourceVersion {
		return Moved, nil
	}
	after := clone(before)
	meta := metaOf(after)
	switch a := a.(type) {
	case SetOwners:
		have := w.read[t.ID]
		if !reflect.DeepEqual(have.Owners, a.Before) || have.Deleting {
			return Moved, nil
		}
		if err := valid(a.After); err != nil {
			return 0, fmt.Errorf("%s: %w", t.ID, err)
		}
		setOwners(after, a.After)
	case ChangeMeta:
		edit(meta, "labels", a.Change.SetLabels, a.Change.DropLabels)
		edit(meta, "annotations", a.Change.SetAnnotations, a.Change.DropAnnotations)
	case CloseRecord:
		edit(meta, "annotations", map[string]string{labels.Adopted: a.At.Format(time.RFC3339)}, nil)
	}
	if reflect.DeepEqual(before, after) {
		return AlreadyThere, nil
	}
	if dryRun {
		w.dryRuns++
		return Applied, nil
	}
	w.store(t.ID, after)
	w.writes = append(w.writes, a.String())
	return Applied, nil
}

// valid is ValidateOwnerReferences of apimachinery, as far as it goes here.
func valid(refs []metav1.OwnerReference) error {
	controllers := 0
	for _, r := range refs {
		if r.UID == "" || r.APIVersion == "" || r.Kind == "" || r.Name == "" {
			return fmt.Errorf("422: ownerReferences: uid, apiVersion, kind and name must not be empty: %s", ownerString(r))
		}
		if isTrue(r.Controller) {
			controllers++
		}
	}
	if controllers > 1 {
		return errors.New("422: only one reference can have Controller set to true")
	}
	return nil
}

func (w *memory) store(id graph.ID, o content) {
	w.version++
	metaOf(o)["resourceVersion"] = strconv.Itoa(w.version)
	w.objects[id], w.read[id] = o, extract(o)
}

// remove deletes an object at once.
func (w *memory) remove(id graph.ID) {
	delete(w.objects, id)
	delete(w.read, id)
}

// create is an arrival: a new UID (unless it brings one) and the time of now.
func (w *memory) create(o content) graph.ID {
	o = clone(o)
	meta := metaOf(o)
	if meta["namespace"] == nil {
		meta["namespace"] = "default"
	}
	x := extract(o)
	if meta["uid"] == nil {
		meta["uid"] = newUID(x.ID)
	}
	if meta["creationTimestamp"] == nil {
		meta["creationTimestamp"] = w.now.Format(time.RFC3339)
	}
	w.store(x.ID, o)
	return x.ID
}

func newUID(id graph.ID) string { return "new:" + id.Kind + "/" + id.Name }

func metaOf(o content) content {
	m, ok := o["metadata"].(content)
	if !ok {
		panic(fmt.Sprintf("no metadata: %v", o))
	}
	return m
}

func edit(meta content, field string, set map[string]string, drop []string) {
	if len(set)+len(drop) == 0 {
		return
	}
	m, ok := meta[field].(content)
	if !ok {
		m = content{}
		meta[field] = m
	}
	for k, v := range set {
		m[k] = v
	}
	for _, k := range drop {
		delete(m, k)
	}
}

func setOwners(o content, refs []metav1.OwnerReference) {
	var list []any
	for _, r := range refs {
		ref := content{"apiVersion": r.APIVersion, "kind": r.Kind, "name": r.Name, "uid": string(r.UID)}
		if r.Controller != nil {
			ref["controller"] = *r.Controller
		}
		if r.BlockOwnerDeletion != nil {
			ref["blockOwnerDeletion"] = *r.BlockOwnerDeletion
		}
		list = append(list, ref)
	}
	if list == nil {
		delete(metaOf(o), "ownerReferences")
		return
	}
	metaOf(o)["ownerReferences"] = list
}

// settle runs passes until one has nothing to write, and gives its plan. It
// survives one kill, and fails where passes do not end.
func (w *memory) settle() (Plan, error) {
	const enough = 40
	for range enough {
		p, err := Pass(context.Background(), w, w.cluster)
		switch {
		case errors.Is(err, errKilled):
			w.killAt = -1
		case err != nil:
			return p, err
		case p.Writes() == 0:
			return p, nil
		}
	}
	return Plan{}, fmt.Errorf("%d passes and no end; the last writes: %v", enough, w.writes[max(0, len(w.writes)-5):])
}

// finish settles, and lets time pass wherever only time is awaited.
func (w *memory) finish() (Plan, error) {
	for {
		p, err := w.settle()
		if err != nil || p.Again.IsZero() || !p.Again.After(w.now) {
			return p, err
		}
		w.now = p.Again
	}
}

// image is everything but versions and times of ours: what two runs must agree on.
func (w *memory) image() map[graph.ID]content {
	out := map[graph.ID]content{}
	for id, o := range w.objects {
		o = clone(o)
		delete(metaOf(o), "resourceVersion")
		if a, ok := metaOf(o)["annotations"].(content); ok {
			for _, k := range []string{labels.Released, labels.Adopted} {
				if _, ok := a[k]; ok {
					a[k] = "some time"
				}
			}
			if len(a) == 0 {
				delete(metaOf(o), "annotations")
			}
		}
		if l, ok := metaOf(o)["labels"].(content); ok && len(l) == 0 {
			delete(metaOf(o), "labels")
		}
		out[id] = o
	}
	return out
}

func (w *memory) ids() []graph.ID { return slices.SortedFunc(maps.Keys(w.objects), graph.ID.Compare) }
