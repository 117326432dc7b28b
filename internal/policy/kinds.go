package policy

import (
	"slices"
	"strings"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/pkg/graph"
)

// Resource is a kind as admission rules name it.
type Resource struct {
	Group, Plural string
}

// Terms are what the policies depend on: what the management cluster serves and
// who its providers are. Sorted, so that the same Terms build the same policies.
type Terms struct {
	// ControlPlanes are the kinds that a Cluster may refer to as its control plane.
	ControlPlanes []Resource
	// Moved are the namespaced kinds that clusterctl moves, Secrets and ConfigMaps
	// among them: those whose owner references hold-owners takes off.
	Moved []Resource
	// Providers are the namespaces of clusterctl's inventory: service accounts there
	// are controllers, and what these create is no arrival.
	Providers []string
}

// kubeadm is known without discovery: its CRD may be installed after the arm.
var kubeadm = Resource{graph.ControlPlaneGroup, "kubeadmcontrolplanes"}

// scalers create or delete other objects, as pre holds them on the source; the
// control plane is one too.
var scalers = []Resource{
	{graph.CoreGroup, "clusters"}, {graph.CoreGroup, "machinedeployments"}, {graph.CoreGroup, "machinehealthchecks"},
	{graph.CoreGroup, "machinepools"}, {graph.CoreGroup, "machinesets"},
}

var machines = Resource{graph.CoreGroup, "machines"}

// termsOf reads them from discovery.
func termsOf(d *management.Discovery, providers []string) Terms {
	t := Terms{ControlPlanes: []Resource{kubeadm}}
	for _, k := range d.Listed() {
		if k.Namespaced && isControlPlane(k.GroupKind) {
			t.ControlPlanes = append(t.ControlPlanes, resourceOf(k))
		}
		if k.Namespaced && k.Discovered {
			t.Moved = append(t.Moved, resourceOf(k))
		}
	}
	t.ControlPlanes, t.Moved = sorted(t.ControlPlanes), sorted(t.Moved)
	t.Providers = slices.Compact(slices.Sorted(slices.Values(providers)))
	return t
}

func resourceOf(k management.Kind) Resource { return Resource{k.Group, k.Resource} }

func sorted(rs []Resource) []Resource {
	slices.SortFunc(rs, func(a, b Resource) int {
		if c := strings.Compare(a.Group, b.Group); c != 0 {
			return c
		}
		return strings.Compare(a.Plural, b.Plural)
	})
	return slices.Compact(rs)
}

// isControlPlane goes by the names that Cluster API's contract asks of control
// plane providers: the API group controlplane.*, or a kind called *ControlPlane.
func isControlPlane(gk graph.GroupKind) bool {
	if strings.HasSuffix(gk.Kind, "Template") || strings.HasSuffix(gk.Kind, "List") {
		return false
	}
	return strings.HasPrefix(gk.Group, "controlplane.") || strings.HasSuffix(gk.Kind, "ControlPlane")
}

// ignorePaused are control plane kinds whose controllers are known to act on
// objects that carry the paused annotation, and how that is known. Of none it is
// certain today; whoever finds one adds it here with the issue that says so.
var ignorePaused = map[Resource]string{}

// notes say of which control plane kinds nobody tested that a hold stops them.
func notes(t Terms) []string {
	var out []string
	for _, r := range t.ControlPlanes {
		name := r.Plural + "." + r.Group
		if why, known := ignorePaused[r]; known {
			out = append(out, name+" ignores cluster.x-k8s.io/paused ("+why+"): the arm cannot hold it, stop its controller for the restore")
		} else if r != kubeadm {
			out = append(out, name+": move-hook does not know its provider: check that it honours cluster.x-k8s.io/paused on the object itself")
		}
	}
	return out
}
