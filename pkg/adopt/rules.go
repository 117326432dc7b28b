package adopt

import (
	"slices"
	"strings"

	"github.com/move-hook/move-hook/pkg/graph"
)

// expectation is who should own an object.
type expectation struct {
	// covered: the record or a rule knows; otherwise owners are left as they are.
	covered bool
	wants   []want
	// candidates is set when several owners fit and nothing tells which.
	candidates []graph.ID
	// sure: it is what the source had, and not what a rule says.
	sure bool
	// unreadable is why the owners annotation cannot be read.
	unreadable error
}

// want is one owner that an object should, or may, have.
type want struct {
	graph.ID
	apiVersion        string
	controller, block *bool
	// why it should, for the plan: "in the record".
	why Reason
	// may: fine if it is there, not added if not.
	may bool
}

const inRecord Reason = "in the record"

// expect asks the record where it has the object, else what it arrived with, else
// the rules.
func (v *view) expect(o *graph.Object) expectation {
	n, ok := v.recorded(o.ID)
	if !ok {
		if x, ok := v.expectHeld(o); ok {
			return x
		}
		return v.rule(o)
	}
	if x, ok := v.expectTakenOver(o, n); ok {
		return x
	}
	x := expectation{covered: true, sure: true}
	for _, owner := range n.Owners {
		w := want{ID: owner.ID, apiVersion: owner.APIVersion, controller: owner.Controller, block: owner.BlockOwnerDeletion, why: inRecord}
		_, recorded := v.record.Node(owner.ID)
		_, exists := v.Graph.Object(owner.ID)
		// A reference that led nowhere on the source either is not awaited here.
		w.may = !recorded && !exists && v.Graph.Listed(owner.GroupKind(), owner.Namespace)
		x.wants = append(x.wants, w)
	}
	return x
}

// rule is who owns an object by Cluster API's own rules, as of v1.14
// (test/framework/ownerreference_helpers.go and the controllers themselves).
func (v *view) rule(o *graph.Object) expectation {
	if slices.ContainsFunc(v.Record.Objects, func(t Target) bool { return t.ID == o.ID }) {
		return owned(plain(v.Cluster, "the record belongs to its Cluster"))
	}
	if x := v.ruleOfResource(o); x.covered {
		return x
	}
	if !v.isOwn[o.ID] {
		return v.ruleOfShared(o)
	}
	switch o.GroupKind() {
	case graph.Cluster:
		return expectation{}
	case graph.Machine:
		return v.ruleOfMachine(o)
	case graph.MachineSet:
		return v.ruleOfMachineSet(o)
	case graph.MachineDeployment, graph.MachinePool, graph.MachineHealthCheck:
		return owned(plain(v.Cluster, "it names the Cluster"))
	case graph.Secret:
		return v.ruleOfSecret(o)
	case graph.ConfigMap:
		if graph.IsInitLock(o.ID, v.Cluster.Name) {
			return owned(plain(v.Cluster, "the Cluster's lock for kubeadm init"))
		}
	case graph.ClusterResourceSetBinding:
		return v.ruleOfBinding(o)
	}
	return v.ruleOfReferred(o)
}

func owned(ws ...want) expectation { return expectation{covered: true, wants: ws} }

func plain(id graph.ID, why Reason) want { return want{ID: id, why: why} }

// managed is an owner set by SetControllerReference.
func managed(id graph.ID, why Reason) want {
	return want{ID: id, controller: yes(), block: yes(), why: why}
}

func (v *view) ruleOfMachine(m *graph.Object) expectation {
	if isControlPlaneMachine(m.Labels) {
		if cp, ok := v.controlPlaneOf(m); ok {
			// One that was adopted when it was stand-alone keeps its Cluster (adoptMachines).
			return owned(managed(cp, Reason("label "+graph.ControlPlaneLabel)), want{ID: v.Cluster, may: true})
		}
		return owned(plain(v.Cluster, "a control-plane Machine without a control plane"))
	}
	if name, ok := v.named(m, graph.SetNameLabel); ok {
		return owned(managed(v.core(graph.MachineSet, name), Reason("label "+graph.SetNameLabel)))
	}
	if name, ok := v.named(m, graph.PoolNameLabel); ok {
		return owned(managed(v.core(graph.MachinePool, name), Reason("label "+graph.PoolNameLabel)))
	}
	return v.ruleBySelector(m, graph.MachineSet, v.sets)
}

func (v *view) ruleOfMachineSet(ms *graph.Object) expectation {
	if name, ok := v.named(ms, graph.DeploymentNameLabel); ok {
		return owned(managed(v.core(graph.MachineDeployment, name), Reason("label "+graph.DeploymentNameLabel)))
	}
	return v.ruleBySelector(ms, graph.MachineDeployment, v.deployments)
}

// controlPlaneOf is the control plane that a control-plane Machine names by
// label, else the Cluster's.
func (v *view) controlPlaneOf(m *graph.Object) (graph.ID, bool) {
	if name, ok := v.named(m, graph.ControlPlaneNameLabel); ok {
		for _, cp := range v.controlPlanes {
			if cp.Name == name {
				return cp.ID, true
			}
		}
	}
	return v.controlPlaneRef()
}

// named reads a label whose value is an object's name. Names of more than 63
// characters are hashed by upstream (internal/../format.MustFormatValue): those
// tell nothing here.
func (v *view) named(o *graph.Object, label string) (string, bool) {
	name := o.Labels[label]
	if name == "" || (strings.HasPrefix(name, "hash_") && strings.HasSuffix(name, "_z")) {
		return "", false
	}
	return name, true
}

func (v *view) core(gk graph.GroupKind, name string) graph.ID {
	return graph.ID{Group: gk.Group, Kind: gk.Kind, Namespace: v.Cluster.Namespace, Name: name}
}

// ruleBySelector is for objects without the label that names their owner: the
// controller that they still name, whatever its UID, else the only one whose
// selector fits, else the Cluster (a stand-alone Machine or MachineSet). What some
// other kind of controller manages is that one's matter.
func (v *view) ruleBySelector(o *graph.Object, gk graph.GroupKind, owners []*graph.Object) expectation {
	if e, ok := v.Graph.Controller(o.ID); ok {
		if e.To.GroupKind() != gk {
			return expectation{}
		}
		return owned(managed(e.To, "its own owner reference"))
	}
	var fits []graph.ID
	for _, owner := range owners {
		if selects(owner.Facts.Selector, o.Labels) {
			fits = append(fits, owner.ID)
		}
	}
	switch len(fits) {
	case 0:
		return owned(plain(v.Cluster, "stand-alone: no selector fits it"))
	case 1:
		return owned(managed(fits[0], "the only selector that fits it"))
	}
	return expectation{covered: true, candidates: fits}
}

// selects is how MachineSets and MachineDeployments match: an empty selector selects nothing.
func selects(selector, l map[string]string) bool {
	for k, want := range selector {
		if have, ok := l[k]; !ok || have != want {
			return false
		}
	}
	return len(selector) > 0
}

// ruleOfReferred is for what specs of the Cluster's objects refer to: control
// plane, infrastructure, bootstrap configs, templates.
func (v *view) ruleOfReferred(o *graph.Object) expectation {
	var x expectation
	for _, e := range v.users[o.ID] {
		from := e.From.GroupKind()
		inTemplate := strings.HasPrefix(e.Field, "spec.template.spec.")
		switch {
		case from == graph.Cluster && (e.Field == graph.FieldInfrastructureRef || e.Field == graph.FieldControlPlaneRef):
			w := plain(v.Cluster, Reason(e.Field+" of the Cluster"))
			if v.cluster.Facts.Topology {
				w = managed(v.Cluster, w.why)
			}
			return owned(w)
		case from == graph.Machine && (e.Field == graph.FieldInfrastructureRef || e.Field == graph.FieldBootstrapConfigRef):
			x.add(managed(e.From, Reason(e.Field+" of the Machine")))
			if pool, ok := v.infrastructureOfPool(e.From); ok {
				x.wants = append(x.wants, want{ID: pool, may: true})
			}
		case isTemplate(o.ID):
			return v.ruleOfTemplate(o)
		case from == graph.MachinePool && inTemplate:
			x.add(managed(e.From, "spec.template of the MachinePool"))
			x.wants = append(x.wants, want{ID: v.Cluster, may: true})
		}
	}
	return x
}

// add takes an owner of which there can be only one: a second makes both candidates.
func (x *expectation) add(w want) {
	x.covered = true
	for i, have := range x.wants {
		if have.may || have.ID == w.ID {
			if have.ID == w.ID {
				return
			}
			continue
		}
		x.candidates = append(x.candidates, have.ID, w.ID)
		x.wants = slices.Delete(x.wants, i, i+1)
		return
	}
	if len(x.candidates) > 0 {
		x.candidates = append(x.candidates, w.ID)
		return
	}
	x.wants = append(x.wants, w)
}

// infrastructureOfPool is the infrastructure of the MachinePool that a Machine is of.
func (v *view) infrastructureOfPool(machine graph.ID) (graph.ID, bool) {
	m, ok := v.Graph.Object(machine)
	if !ok {
		return graph.ID{}, false
	}
	name, ok := v.named(m, graph.PoolNameLabel)
	if !ok {
		return graph.ID{}, false
	}
	pool, ok := v.Graph.Object(v.core(graph.MachinePool, name))
	if !ok {
		return graph.ID{}, false
	}
	return pool.RefTo(graph.FieldTemplateInfrastructureRef)
}

// ruleOfTemplate is for templates that Machines are made from: their users'
// controllers give them the Cluster as owner. Several Clusters may share one.
func (v *view) ruleOfTemplate(o *graph.Object) expectation {
	var x expectation
	own := func(id graph.ID, why Reason) {
		x.covered = true
		if o.Namespace == id.Namespace && !slices.ContainsFunc(x.wants, func(w want) bool { return w.ID == id }) {
			x.wants = append(x.wants, plain(id, why))
		}
	}
	for _, e := range v.users[o.ID] {
		switch {
		case e.From.GroupKind() == graph.ClusterClass:
			own(e.From, "the ClusterClass refers to it")
		case v.makesFrom(e.From):
			own(v.Cluster, Reason(e.Field+" of the "+e.From.Kind))
		}
	}
	for _, e := range v.Graph.Owners(o.ID) {
		if e.To.GroupKind() == graph.Cluster && e.To != v.Cluster {
			x.wants = append(x.wants, want{ID: e.To, may: true})
		}
	}
	return x
}

func (v *view) makesFrom(user graph.ID) bool {
	o, ok := v.Graph.Object(user)
	return ok && v.isOwn[user] && v.isScaler(o)
}

// ruleOfBinding: each ClusterResourceSet that was applied to the Cluster owns the
// binding; before Cluster API 1.4 the Cluster did as well.
func (v *view) ruleOfBinding(o *graph.Object) expectation {
	var x expectation
	for _, r := range o.Refs {
		if r.To.GroupKind() == graph.ClusterResourceSet {
			x.covered = true
			x.wants = append(x.wants, plain(r.To, "the binding names it"))
		}
	}
	if x.covered {
		x.wants = append(x.wants, want{ID: v.Cluster, may: true})
	}
	return x
}

// ruleOfResource: a ClusterResourceSet owns the Secrets and ConfigMaps that it
// applies (ensureResourceOwnerRef).
func (v *view) ruleOfResource(o *graph.Object) expectation {
	var x expectation
	for _, e := range v.users[o.ID] {
		if e.From.GroupKind() == graph.ClusterResourceSet && !slices.ContainsFunc(x.wants, func(w want) bool { return w.ID == e.From }) {
			x.covered = true
			x.wants = append(x.wants, plain(e.From, "the ClusterResourceSet applies it"))
		}
	}
	return x
}

// ruleOfShared covers what is not the Cluster's alone but used by it.
func (v *view) ruleOfShared(o *graph.Object) expectation {
	if isTemplate(o.ID) && len(v.users[o.ID]) > 0 {
		return v.ruleOfTemplate(o)
	}
	return expectation{}
}

// ruleOfSecret covers bootstrap data and what a KubeadmControlPlane makes: Secrets
// of Cluster API's own type with the cluster-name label. Any other is its user's and
// stays as it is (ensureCertificatesOwnerRef, adoptOwnedSecrets).
func (v *view) ruleOfSecret(o *graph.Object) expectation {
	if config, ok := v.configOf(o); ok {
		return owned(want{ID: config, controller: yes(), why: "it is the bootstrap data of that config"})
	}
	cluster, purpose, ok := graph.ParseSecretName(o.Name)
	if !ok || cluster != v.Cluster.Name || o.Labels[graph.ClusterNameLabel] != v.Cluster.Name || o.Facts.UserSecret {
		return expectation{}
	}
	cp, hasControlPlane := v.controlPlaneRef()
	switch {
	case hasControlPlane && cp.GroupKind() == graph.KubeadmControlPlane && purpose == "kubeconfig":
		// A Cluster that made it before there was a control plane stays beside it.
		return owned(managed(cp, "the control plane keeps it"), want{ID: v.Cluster, may: true})
	case hasControlPlane && cp.GroupKind() == graph.KubeadmControlPlane && purpose != "apiserver-etcd-client":
		return owned(managed(cp, "the control plane keeps it"))
	case !hasControlPlane && purpose == "kubeconfig":
		return owned(plain(v.Cluster, "the Cluster keeps it"))
	}
	return expectation{}
}

// configOf is the KubeadmConfig whose bootstrap data a Secret holds: the one
// that a Machine names beside the Secret, else the one that says so or has its name.
func (v *view) configOf(secret *graph.Object) (graph.ID, bool) {
	for _, e := range v.users[secret.ID] {
		if e.Field != graph.FieldDataSecret {
			continue
		}
		if m, ok := v.Graph.Object(e.From); ok {
			if config, ok := m.RefTo(graph.FieldBootstrapConfigRef); ok {
				return config, config.GroupKind() == graph.KubeadmConfig
			}
		}
	}
	id := graph.ID{Group: graph.BootstrapGroup, Kind: graph.KubeadmConfig.Kind, Namespace: secret.Namespace, Name: secret.Name}
	if config, ok := v.Graph.Object(id); ok && v.isOwn[id] {
		named := config.Facts.DataSecretName
		return id, named == "" || named == secret.Name
	}
	return graph.ID{}, false
}
