package adopt

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// controllers lets upstream's controllers act once on what they see, as far as
// they can do harm: they adopt what has no controller, make what they miss and
// delete what they think is surplus. It says what they did. Nobody acts on what is
// paused. What statuses they rebuild is in it too.
func (w *memory) controllers() []string {
	c := &reconcilers{w: w, g: w.graph()}
	cluster, ok := c.g.Object(w.cluster)
	if !ok || cluster.Facts.Paused {
		return nil
	}
	if !labels.PausedByAnnotation(labels.MetaOf(cluster)) {
		c.status()
	}
	for _, o := range c.g.OfKind(graph.KubeadmControlPlane) {
		if c.acts(o) && owns(o, cluster) {
			c.scale(o, func(m *graph.Object) bool { return isControlPlaneMachine(m.Labels) })
		}
	}
	for _, o := range c.g.OfKind(graph.MachineDeployment) {
		if c.acts(o) {
			c.deploy(o)
		}
	}
	for _, o := range c.g.OfKind(graph.MachineSet) {
		if c.acts(o) {
			c.scale(o, func(m *graph.Object) bool { return selects(o.Facts.Selector, m.Labels) })
		}
	}
	for _, m := range c.g.OfKind(graph.Machine) {
		c.claimStandAlone(m, cluster)
	}
	return c.did
}

type reconcilers struct {
	w   *memory
	g   *graph.Graph
	did []string
}

func (c *reconcilers) acts(o *graph.Object) bool { return !labels.PausedByAnnotation(labels.MetaOf(o)) }

func owns(o, by *graph.Object) bool {
	for _, r := range o.Owners {
		if r.UID == by.UID {
			return true
		}
	}
	return false
}

func (c *reconcilers) adopt(o, by *graph.Object, controller bool) {
	ref := metav1.OwnerReference{APIVersion: by.APIVersion, Kind: by.Kind, Name: by.Name, UID: by.UID}
	if controller {
		ref.Controller, ref.BlockOwnerDeletion = yes(), yes()
	}
	stored := clone(c.w.objects[o.ID])
	setOwners(stored, append(slices.Clone(c.w.read[o.ID].Owners), ref))
	c.w.store(o.ID, stored)
	c.did = append(c.did, fmt.Sprintf("%s adopts %s", by.ID, o.ID))
}

// scale is what a KubeadmControlPlane or a MachineSet does about its replicas.
func (c *reconcilers) scale(o *graph.Object, mine func(*graph.Object) bool) {
	var have []*graph.Object
	for _, m := range c.g.OfKind(graph.Machine) {
		switch e, controlled := c.g.Controller(m.ID); {
		case owns(m, o):
			have = append(have, m)
		case mine(m) && !controlled:
			c.adopt(m, o, true)
			have = append(have, m)
		case mine(m) && controlled && e.State != graph.Live && o.GroupKind() == graph.KubeadmControlPlane:
			c.did = append(c.did, fmt.Sprintf("%s refuses mixed management mode", o.ID))
			return
		}
	}
	want := 0
	if o.Facts.Replicas != nil {
		want = int(*o.Facts.Replicas)
	}
	for i := len(have); i < want; i++ {
		l := content{graph.ClusterNameLabel: c.w.cluster.Name}
		for k, v := range o.Facts.Selector {
			l[k] = v
		}
		if o.GroupKind() == graph.KubeadmControlPlane {
			l[graph.ControlPlaneLabel] = ""
		}
		m := content{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": content{"name": fmt.Sprintf("%s-extra-%d", o.Name, i), "labels": l}}
		c.did = append(c.did, fmt.Sprintf("%s makes %s", o.ID, c.w.create(m)))
	}
	for i := want; i < len(have); i++ {
		c.did = append(c.did, fmt.Sprintf("%s deletes %s", o.ID, have[i-want].ID))
		c.w.remove(have[i-want].ID)
	}
}

// deploy is what a MachineDeployment does about its sets.
func (c *reconcilers) deploy(d *graph.Object) {
	sets := 0
	for _, ms := range c.g.OfKind(graph.MachineSet) {
		_, controlled := c.g.Controller(ms.ID)
		switch {
		case owns(ms, d):
			sets++
		case selects(d.Facts.Selector, ms.Labels) && !controlled:
			c.adopt(ms, d, true)
			sets++
		}
	}
	if sets == 0 && d.Facts.Replicas != nil && *d.Facts.Replicas > 0 {
		ms := content{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "metadata": content{"name": d.Name + "-extra", "labels": content{graph.ClusterNameLabel: c.w.cluster.Name}}}
		c.did = append(c.did, fmt.Sprintf("%s makes %s", d.ID, c.w.create(ms)))
	}
}

// claimStandAlone is the Machine controller's part of the race: a Machine that
// nobody controls and no label names gets its Cluster as owner.
func (c *reconcilers) claimStandAlone(m, cluster *graph.Object) {
	_, controlled := c.g.Controller(m.ID)
	for _, key := range []string{graph.SetNameLabel, graph.PoolNameLabel, graph.ControlPlaneNameLabel} {
		if m.Labels[key] != "" {
			return
		}
	}
	if !controlled && !owns(m, cluster) {
		c.adopt(m, cluster, false)
	}
}

// status rebuilds what no move carries.
func (c *reconcilers) status() {
	for id, o := range c.w.objects {
		status := content{}
		switch id.GroupKind() {
		case graph.Cluster:
			status["initialization"] = content{"infrastructureProvisioned": true}
		case graph.Machine:
			status["nodeRef"] = content{"name": id.Name}
		case graph.KubeadmConfig:
			status["dataSecretName"] = id.Name
		default:
			continue
		}
		o = clone(o)
		o["status"] = status
		c.w.store(id, o)
	}
}

func (w *memory) tick(d time.Duration) { w.now = w.now.Add(d) }
