package bare_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/test/stack"
)

// makeEverything is all that the builders can make, owned as controllers would
// have it, and what a namespace gathers beside it.
func makeEverything(t *testing.T, c *management.Cluster, ns string) map[string]graph.MoveReason {
	stack.Must(stack.Cluster("all").InNamespace(ns).ControlPlane(3).Workers("md-0", 2).Workers("md-1", 1).OverlappingSelectors().
		MachinePool("mp-0", 2).HealthCheck().UserCertificates().ResourceSet("crs").Movable("extra").Create(t.Context(), world.Management))(t)
	cluster := id(graph.Cluster, ns, "all")
	ownByRule(t, c, ns, cluster)
	crs := id(graph.ClusterResourceSet, ns, "crs")
	own(t, c, id(graph.ConfigMap, ns, "crs"), by(t, c, crs))
	own(t, c, id(graph.Secret, ns, "crs"), by(t, c, crs))
	binding := func(name string) *addonsv1.ClusterResourceSetBinding {
		return &addonsv1.ClusterResourceSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
			Spec: addonsv1.ClusterResourceSetBindingSpec{ClusterName: "all"}}
	}
	create(t, binding("all"), binding("all-soft"), secret(ns, "all-kubeconfig", nil))
	own(t, c, id(graph.ClusterResourceSetBinding, ns, "all"), by(t, c, crs))
	own(t, c, id(graph.Secret, ns, "all-kubeconfig"), controlledBy(t, c, id(graph.KubeadmControlPlane, ns, "all-cp")))

	move, hierarchy := map[string]string{graph.MoveLabel: ""}, map[string]string{graph.MoveHierarchyLabel: ""}
	create(t, template(ns, "spare"), secret(ns, "all-foo", nil), secret(ns, "elsewhere-ca", nil), configMap(ns, "plain", nil),
		custom(widgetKind, ns, "w"), template(ns, "two-owners"), configMap(ns, "below-two-owners", nil),
		configMap(ns, "labelled-and-owned", move), template(ns, "stale"), template(ns, "half-stale"), configMap(ns, "below-stale", nil),
		template(ns, "dangling"), secret(ns, "all-proxy-dangling", nil), configMap(ns, "ring-a", move), configMap(ns, "ring-b", move),
		configMap(ns, "below-ring", move), configMap(ns, "root", hierarchy), secret(ns, "leaf", nil), secret(ns, "of-identity", nil))
	ofCluster, ofWidget := by(t, c, cluster), by(t, c, id(widgetKind, ns, "w"))
	stale := id(devMachineTemplate, ns, "stale")
	// Not of Cluster, ClusterClass or Machine: clusterctl refuses to move at all
	// where it does not see one of these, see TestMoveSet_OwnersThatStopClusterctl.
	ofPool := by(t, c, id(graph.MachinePool, ns, "all-mp-0"))
	gone := withUID(ofPool, "gone")
	gone.Name = "gone"
	ringA, ringB := id(graph.ConfigMap, ns, "ring-a"), id(graph.ConfigMap, ns, "ring-b")
	for child, owners := range map[graph.ID][]metav1.OwnerReference{
		id(devMachineTemplate, ns, "two-owners"):      {ofCluster, ofWidget},
		id(graph.ConfigMap, ns, "below-two-owners"):   {by(t, c, id(devMachineTemplate, ns, "two-owners"))},
		id(graph.ConfigMap, ns, "labelled-and-owned"): {ofWidget},
		stale:                                      {withUID(ofPool, "of-the-source")},
		id(devMachineTemplate, ns, "half-stale"):   {by(t, c, id(graph.MachineDeployment, ns, "all-md-0")), withUID(ofPool, "of-the-source")},
		id(graph.ConfigMap, ns, "below-stale"):     {by(t, c, stale), ofCluster},
		id(devMachineTemplate, ns, "dangling"):     {ofCluster, gone},
		id(graph.Secret, ns, "all-proxy-dangling"): {gone},
		ringA:                                 {by(t, c, ringB)},
		ringB:                                 {by(t, c, ringA)},
		id(graph.ConfigMap, ns, "below-ring"): {by(t, c, ringA)},
		id(graph.Secret, ns, "leaf"):          {by(t, c, id(graph.ConfigMap, ns, "root"))},
		id(graph.Secret, ns, "of-identity"):   {by(t, c, id(identityKind, "", "account"))},
	} {
		own(t, c, child, owners...)
	}
	return map[string]graph.MoveReason{
		"DevMachineTemplate spare":      graph.NoRoot,
		"Secret all-foo":                graph.NoRoot,
		"Secret elsewhere-ca":           graph.NoRoot,
		"ConfigMap plain":               graph.NoRoot,
		"Widget w":                      graph.NotDiscovered,
		"DevMachineTemplate two-owners": graph.OwnerOutside,
		"ConfigMap below-two-owners":    graph.OwnerOutside,
		"ConfigMap labelled-and-owned":  graph.OwnerOutside,
		"DevMachineTemplate stale":      graph.OwnerStale,
		"DevMachineTemplate half-stale": graph.OwnerStale,
		"ConfigMap below-stale":         graph.OwnerOutside,
		"DevMachineTemplate dangling":   graph.OwnerUnseen,
		"Secret all-proxy-dangling":     graph.OwnerUnseen,
		"ConfigMap ring-a":              graph.InCycle,
		"ConfigMap ring-b":              graph.InCycle,
		"ConfigMap below-ring":          graph.OwnerOutside,
	}
}

// ownByRule gives the builders' objects the owners that controllers would, and
// every MachineDeployment a MachineSet with a Machine.
func ownByRule(t *testing.T, c *management.Cluster, ns string, cluster graph.ID) {
	t.Helper()
	ofCluster := by(t, c, cluster)
	for o := range read(t, c, management.Scope{Namespace: ns}).All() {
		if o.Namespace != ns {
			continue
		}
		pool := id(graph.MachinePool, ns, o.Name)
		switch o.GroupKind() {
		case infra("DevCluster"), graph.KubeadmControlPlane, graph.MachineDeployment, graph.MachinePool, graph.MachineHealthCheck,
			devMachineTemplate, graph.GroupKind{Group: bootstrapv1.GroupVersion.Group, Kind: "KubeadmConfigTemplate"}:
			own(t, c, o.ID, ofCluster)
		case infra("DevMachinePool"), graph.KubeadmConfig:
			own(t, c, o.ID, controlledBy(t, c, pool))
		}
		if o.GroupKind() == graph.MachineDeployment {
			makeMachineSet(t, c, o.ID)
		}
	}
}

// makeMachineSet makes a MachineSet and a Machine of a MachineDeployment, with
// the Machine's bootstrap configuration, data and infrastructure.
func makeMachineSet(t *testing.T, c *management.Cluster, of graph.ID) {
	t.Helper()
	ns, name := of.Namespace, of.Name+"-x"
	md := &clusterv1.MachineDeployment{}
	if err := world.Client().Get(t.Context(), client.ObjectKey{Namespace: ns, Name: of.Name}, md); err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: ns, Name: name, Labels: md.Spec.Template.Labels}
	spec := md.Spec.Template.Spec
	spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubeadmConfig", Name: name}
	spec.InfrastructureRef.Kind, spec.InfrastructureRef.Name = "DevMachine", name
	create(t,
		&clusterv1.MachineSet{ObjectMeta: meta, Spec: clusterv1.MachineSetSpec{
			ClusterName: spec.ClusterName, Replicas: ptr.To(int32(1)), Selector: md.Spec.Selector, Template: md.Spec.Template,
		}},
		&clusterv1.Machine{ObjectMeta: meta, Spec: spec},
		&bootstrapv1.KubeadmConfig{ObjectMeta: meta},
		&infrav1.DevMachine{ObjectMeta: meta, Spec: template(ns, name).Spec.Template.Spec},
		secret(ns, name, nil))
	own(t, c, id(graph.MachineSet, ns, name), controlledBy(t, c, of))
	own(t, c, id(graph.Machine, ns, name), controlledBy(t, c, id(graph.MachineSet, ns, name)))
	ownMachineParts(t, c, ns, name)
}

// ownMachineParts makes what belongs to a Machine the Machine's.
func ownMachineParts(t *testing.T, c *management.Cluster, ns, name string) {
	t.Helper()
	ofMachine := controlledBy(t, c, id(graph.Machine, ns, name))
	own(t, c, id(graph.KubeadmConfig, ns, name), ofMachine)
	own(t, c, id(infra("DevMachine"), ns, name), ofMachine)
	own(t, c, id(graph.Secret, ns, name), controlledBy(t, c, id(graph.KubeadmConfig, ns, name)))
}

// makeStandAlone is a control plane of Machines that no control plane object owns.
func makeStandAlone(t *testing.T, c *management.Cluster, ns string) map[string]graph.MoveReason {
	stack.Must(stack.Cluster("alone").InNamespace(ns).StandAloneControlPlane(3).Create(t.Context(), world.Management))(t)
	cluster := id(graph.Cluster, ns, "alone")
	own(t, c, id(infra("DevCluster"), ns, "alone"), by(t, c, cluster))
	for _, name := range []string{"alone-cp-0", "alone-cp-1", "alone-cp-2"} {
		create(t, secret(ns, name, nil))
		own(t, c, id(graph.Machine, ns, name), by(t, c, cluster))
		ownMachineParts(t, c, ns, name)
	}
	// The certificates are the first Machine's bootstrap configuration's; the
	// kubeconfig came from its user.
	create(t, secret(ns, "alone-ca", nil), secret(ns, "alone-kubeconfig", nil))
	own(t, c, id(graph.Secret, ns, "alone-ca"), controlledBy(t, c, id(graph.KubeadmConfig, ns, "alone-cp-0")))
	return map[string]graph.MoveReason{}
}

// makeTopology has a Cluster whose class is in another namespace, one of a class
// of its own, and a class that nobody uses.
func makeTopology(t *testing.T, c *management.Cluster, ns string) map[string]graph.MoveReason {
	const classes = "moveset-classes"
	for _, at := range []client.ObjectKey{{Namespace: classes, Name: "shared"}, {Namespace: classes, Name: "neighbour"},
		{Namespace: ns, Name: "local"}, {Namespace: ns, Name: "unused"}} {
		makeClass(t, c, at)
	}
	for class, of := range map[string]string{"shared": classes, "local": ns} {
		name := "of-" + class
		stack.Must(stack.Cluster(name).InNamespace(ns).OfClass(of, class).ControlPlane(1).Workers("md-0", 1).Create(t.Context(), world.Management))(t)
		create(t, template(ns, name), secret(ns, name+"-kubeconfig", nil))
		own(t, c, id(devMachineTemplate, ns, name), by(t, c, id(graph.Cluster, ns, name)))
	}
	create(t, template(ns, "spare"))
	return map[string]graph.MoveReason{"DevMachineTemplate spare": graph.NoRoot}
}

// makeClass makes a ClusterClass that owns its templates, the one for remediation
// too: of a class in another namespace, clusterctl does not fetch that.
func makeClass(t *testing.T, c *management.Cluster, at client.ObjectKey) {
	t.Helper()
	objects := stack.Class(at.Namespace, at.Name)
	remediation := template(at.Namespace, at.Name+"-remediation")
	for _, o := range objects {
		if class, ok := o.(*clusterv1.ClusterClass); ok {
			class.Spec.ControlPlane.HealthCheck.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{
				APIVersion: infrav1.GroupVersion.String(), Kind: devMachineTemplate.Kind, Name: remediation.Name,
			}
		}
	}
	create(t, append(objects, remediation)...)
	class := id(graph.ClusterClass, at.Namespace, at.Name)
	ofClass := by(t, c, class)
	for o := range read(t, c, management.Scope{Namespace: at.Namespace}).All() {
		if o.Namespace == at.Namespace && o.GroupKind() != graph.ClusterClass && len(o.Owners) == 0 && ofThis(o.Name, at.Name) {
			own(t, c, o.ID, ofClass)
		}
	}
}

// ofThis: the templates of a class are called as it is, or begin with its name.
func ofThis(name, class string) bool {
	return name == class || strings.HasPrefix(name, class+"-")
}
