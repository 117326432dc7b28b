package graph

import "strings"

// secretPurposes are the suffixes of Cluster API's Secret names
// (util/secret/consts.go, allSecretPurposes), in upstream's order.
var secretPurposes = []string{"kubeconfig", "ca", "etcd", "sa", "proxy", "apiserver-etcd-client"}

// ParseSecretName splits "<cluster>-<purpose>" as upstream's
// util/secret.ParseSecretName does; false if it is no such name.
func ParseSecretName(name string) (cluster, purpose string, ok bool) {
	for _, p := range secretPurposes {
		if c, found := strings.CutSuffix(name, "-"+p); found {
			return c, p, true
		}
	}
	return "", "", false
}

// IsInitLock says that an object is the lock under which the bootstrap provider lets
// one Machine of the cluster run kubeadm init (bootstrap/kubeadm/pkg/locking). It
// goes as soon as the next Machine joins, so it may be gone at any time.
func IsInitLock(id ID, cluster string) bool {
	return id.GroupKind() == ConfigMap && id.Name == cluster+"-lock"
}

// softEdge is to the owner that an object has by convention and not by an owner
// reference (clusterctl's objectGraph.setSoftOwnership); false without one, and
// where that owner was not seen: a convention promises nothing.
func (g *Graph) softEdge(o *Object) (Edge, bool) {
	var to ID
	switch o.GroupKind() {
	case Secret:
		// A Secret with any owner, even a dangling one, is not softly owned.
		cluster, _, ok := ParseSecretName(o.Name)
		if len(o.Owners) > 0 || !ok {
			return Edge{}, false
		}
		to = ID{Cluster.Group, Cluster.Kind, o.Namespace, cluster}
	case Cluster:
		to = refTo(o, FieldClassRef)
	case ClusterResourceSetBinding:
		to = refTo(o, FieldClusterName)
	default:
		return Edge{}, false
	}
	if _, ok := g.index[to]; !ok {
		return Edge{}, false
	}
	return Edge{From: o.ID, To: to, Kind: Soft, State: Live}, true
}

func refTo(o *Object, field string) ID {
	for _, r := range o.Refs {
		if r.Field == field {
			return r.To
		}
	}
	return ID{}
}

// RefTo is what an object refers to in a field; false if it does not.
func (o *Object) RefTo(field string) (ID, bool) {
	id := refTo(o, field)
	return id, !id.IsZero()
}
