package adopt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// sample is a workload cluster as it stands on its source: ready, everything
// owned as Cluster API v1.14 leaves it. UIDs are "old:Kind/name".
type sample struct {
	name         string
	controlPlane int // replicas; 0: no KubeadmControlPlane
	standAlone   int // control-plane Machines without a control plane
	workers      []workers
	healthCheck  bool
	topology     bool
	externalEtcd bool
	// ownCertificates: its user provides them: no owner, no label.
	ownCertificates bool
	// userPaused is the "Kind/name" of what its user paused.
	userPaused string
}

// workers are one MachineDeployment with one MachineSet of the same name.
type workers struct {
	name     string
	replicas int
	// selector of both; nil: the usual one, by deployment-name.
	selector map[string]string
	// unnamed leaves out the labels that name the owner.
	unnamed bool
}

func (s sample) objects() []content {
	b := &drawing{cluster: s.name}
	spec := content{"infrastructureRef": ref("infrastructure.cluster.x-k8s.io", "DevCluster", s.name)}
	if s.controlPlane > 0 {
		spec["controlPlaneRef"] = ref("controlplane.cluster.x-k8s.io", "KubeadmControlPlane", s.name+"-cp")
	}
	if s.topology {
		spec["topology"] = content{"version": "v1.34.0"}
	}
	cluster := b.add("cluster.x-k8s.io/v1beta2", "Cluster", s.name, spec)
	cluster["status"] = content{"initialization": content{"infrastructureProvisioned": true}}
	c := owner{"Cluster", s.name, s.topology}
	b.add("infrastructure.cluster.x-k8s.io/v1beta2", "DevCluster", s.name, content{}, c)

	keeper := owner{"KubeadmControlPlane", s.name + "-cp", true}
	for i := range s.controlPlane {
		if i == 0 {
			b.controlPlane(s, c)
		}
		m := b.machine(fmt.Sprintf("%s-cp-%d", s.name, i), content{graph.ControlPlaneLabel: "", graph.ControlPlaneNameLabel: s.name + "-cp"}, keeper)
		b.machineParts(m)
	}
	for i := range s.standAlone {
		m := b.machine(fmt.Sprintf("%s-m%d", s.name, i), content{graph.ControlPlaneLabel: ""}, owner{"Cluster", s.name, false})
		b.machineParts(m)
		keeper = owner{"KubeadmConfig", s.name + "-m0", true}
	}
	for _, purpose := range []string{"ca", "sa", "proxy", "etcd"} {
		if s.ownCertificates || (s.externalEtcd && purpose == "etcd") {
			b.provided(s.name + "-" + purpose)
			continue
		}
		b.add("v1", "Secret", s.name+"-"+purpose, nil, keeper)
	}
	if s.externalEtcd {
		b.provided(s.name + "-apiserver-etcd-client")
	}
	if s.controlPlane > 0 {
		b.add("v1", "Secret", s.name+"-kubeconfig", nil, keeper)
	} else {
		b.add("v1", "Secret", s.name+"-kubeconfig", nil, owner{"Cluster", s.name, false})
	}
	for _, w := range s.workers {
		b.deployment(s, w)
	}
	if s.healthCheck {
		b.add("cluster.x-k8s.io/v1beta2", "MachineHealthCheck", s.name+"-mhc", content{"clusterName": s.name}, owner{"Cluster", s.name, false})
	}
	for _, o := range b.all {
		if fmt.Sprintf("%s/%s", o["kind"], metaOf(o)["name"]) == s.userPaused {
			edit(metaOf(o), "annotations", map[string]string{graph.PausedAnnotation: "true"}, nil)
		}
	}
	return b.all
}

type owner struct {
	kind, name string
	controller bool
}

type drawing struct {
	cluster string
	all     []content
}

func (b *drawing) controlPlane(s sample, c owner) {
	etcd := content{"local": content{}}
	if s.externalEtcd {
		etcd = content{"external": content{"endpoints": []any{"https://etcd:2379"}}}
	}
	b.add("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", s.name+"-cp", content{
		"replicas": s.controlPlane, "version": "v1.34.0",
		"machineTemplate":   content{"spec": content{"infrastructureRef": ref("infrastructure.cluster.x-k8s.io", "DevMachineTemplate", s.name+"-cp")}},
		"kubeadmConfigSpec": content{"clusterConfiguration": content{"etcd": etcd}},
	}, c)
	b.add("infrastructure.cluster.x-k8s.io/v1beta2", "DevMachineTemplate", s.name+"-cp", nil, owner{"Cluster", s.name, false})
}

// provided is a Secret that Cluster API did not make.
func (b *drawing) provided(name string) { delete(metaOf(b.add("v1", "Secret", name, nil)), "labels") }

func (b *drawing) deployment(s sample, w workers) {
	selector := content{graph.DeploymentNameLabel: w.name}
	if w.selector != nil {
		selector = content{}
		for k, v := range w.selector {
			selector[k] = v
		}
	}
	template := content{"spec": content{
		"version": "v1.34.0", "clusterName": s.name,
		"bootstrap":         content{"configRef": ref("bootstrap.cluster.x-k8s.io", "KubeadmConfigTemplate", w.name)},
		"infrastructureRef": ref("infrastructure.cluster.x-k8s.io", "DevMachineTemplate", w.name),
	}}
	spec := content{"clusterName": s.name, "replicas": w.replicas, "selector": content{"matchLabels": selector}, "template": template}
	b.add("cluster.x-k8s.io/v1beta2", "MachineDeployment", w.name, spec, owner{"Cluster", s.name, false})
	b.add("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfigTemplate", w.name, nil, owner{"Cluster", s.name, false})
	b.add("infrastructure.cluster.x-k8s.io/v1beta2", "DevMachineTemplate", w.name, nil, owner{"Cluster", s.name, false})
	set := w.name + "-x"
	ms := b.add("cluster.x-k8s.io/v1beta2", "MachineSet", set, clone(spec), owner{"MachineDeployment", w.name, true})
	l := content{graph.DeploymentNameLabel: w.name, graph.SetNameLabel: set}
	if w.unnamed {
		l = content{}
	}
	for k, v := range l {
		if k != graph.SetNameLabel {
			metaOf(ms)["labels"].(content)[k] = v
		}
	}
	for i := range w.replicas {
		b.machineParts(b.machine(fmt.Sprintf("%s-%d", w.name, i), l, owner{"MachineSet", set, true}))
	}
}

func (b *drawing) machine(name string, l content, by owner) string {
	m := b.add("cluster.x-k8s.io/v1beta2", "Machine", name, content{
		"clusterName": b.cluster, "version": "v1.34.0", "providerID": "dev://" + name,
		"bootstrap":         content{"configRef": ref("bootstrap.cluster.x-k8s.io", "KubeadmConfig", name), "dataSecretName": name},
		"infrastructureRef": ref("infrastructure.cluster.x-k8s.io", "DevMachine", name),
	}, by)
	m["status"] = content{"nodeRef": content{"name": name}}
	for k, v := range l {
		metaOf(m)["labels"].(content)[k] = v
	}
	return name
}

func (b *drawing) machineParts(name string) {
	by := owner{"Machine", name, true}
	config := b.add("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig", name, nil, by)
	config["status"] = content{"dataSecretName": name}
	b.add("infrastructure.cluster.x-k8s.io/v1beta2", "DevMachine", name, content{"providerID": "dev://" + name}, by)
	b.add("v1", "Secret", name, nil, owner{"KubeadmConfig", name, true})
}

func (b *drawing) add(apiVersion, kind, name string, spec content, owners ...owner) content {
	o := content{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": content{
			"name": name, "namespace": "default", "uid": "old:" + kind + "/" + name,
			"labels": content{graph.ClusterNameLabel: b.cluster},
		},
	}
	if spec != nil {
		o["spec"] = spec
	}
	var refs []any
	for _, by := range owners {
		r := content{"apiVersion": apiVersionOf(by.kind), "kind": by.kind, "name": by.name, "uid": "old:" + by.kind + "/" + by.name}
		if by.controller {
			r["controller"] = true
			if kind != "Secret" || by.kind != "KubeadmConfig" {
				r["blockOwnerDeletion"] = true
			}
		}
		refs = append(refs, r)
	}
	if refs != nil {
		metaOf(o)["ownerReferences"] = refs
	}
	b.all = append(b.all, o)
	return o
}

func ref(group, kind, name string) content {
	return content{"apiGroup": group, "kind": kind, "name": name}
}

func apiVersionOf(kind string) string {
	for _, k := range allKinds() {
		if k.Kind == kind {
			return k.APIVersion
		}
	}
	return ""
}

// snapshotOf is the record that move-hook pre would make of objects on the source.
func snapshotOf(cluster graph.ID, objects []content) *graph.Snapshot {
	var all []graph.Object
	for _, o := range objects {
		all = append(all, extract(clone(o)))
	}
	s := graphOf(slices.Values(all), nil).Snapshot(cluster)
	return &s
}

// recordMap is the ConfigMap that carries a record.
func recordMap(cluster string) content {
	return content{"apiVersion": "v1", "kind": "ConfigMap", "metadata": content{
		"name": "move-hook-record-" + cluster, "namespace": "default", "labels": content{graph.RecordLabel: cluster, graph.MoveLabel: ""},
	}}
}

// arrival says how objects come to the target.
type arrival struct {
	// owners: "none" (a restore), "stale" (a restore that keeps them), "live" (clusterctl
	// move), "held" (any of them, where the target is armed with --hold-owners).
	owners string
	// held and pending are as an armed target, or move-hook pre, leaves them.
	held, pending bool
	// status is there already.
	status bool
}

// carried is an object of a sample as it comes to the target.
func (a arrival) carried(o content) content {
	o = clone(o)
	meta := metaOf(o)
	delete(meta, "uid")
	switch a.owners {
	case "none":
		delete(meta, "ownerReferences")
	case "held":
		holdOwners(meta)
	case "live":
		refs, _ := meta["ownerReferences"].([]any)
		for _, r := range refs {
			r := r.(content)
			r["uid"] = "new:" + r["kind"].(string) + "/" + r["name"].(string)
		}
	}
	if !a.status {
		delete(o, "status")
	}
	kind, _ := o["kind"].(string)
	if a.held && (kind == "KubeadmControlPlane" || kind == "MachineDeployment" || kind == "MachineSet" || kind == "MachinePool" || kind == "MachineHealthCheck") {
		hold(o)
	}
	l, _ := meta["labels"].(content)
	if _, isControlPlane := l[graph.ControlPlaneLabel]; a.pending && (strings.HasSuffix(kind, "ControlPlane") || (kind == "Machine" && isControlPlane)) {
		edit(meta, "labels", map[string]string{graph.AdoptionLabel: graph.AdoptionPending}, nil)
	}
	return o
}

// holdOwners does what an armed target does to the owner references of an arrival.
func holdOwners(meta content) {
	refs, _ := meta["ownerReferences"].([]any)
	if len(refs) == 0 {
		return
	}
	for _, r := range refs {
		delete(r.(content), "uid")
	}
	text, err := json.Marshal(refs)
	if err != nil {
		panic(err)
	}
	delete(meta, "ownerReferences")
	edit(meta, "annotations", map[string]string{graph.OwnersAnnotation: string(text)}, nil)
}

func hold(o content) {
	c := labels.Hold(labels.MetaOf(new(extract(o))), labels.Holder{Who: "move-hook@test", Since: time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)})
	edit(metaOf(o), "annotations", c.SetAnnotations, nil)
}
