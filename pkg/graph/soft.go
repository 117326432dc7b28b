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

// softEdges are the owners that an object has by convention and not by an owner
// reference (clusterctl's objectGraph.setSoftOwnership).
func (g *Graph) softEdges(o *Object) []Edge {
	var to ID
	switch o.GroupKind() {
	case Secret:
		// A Secret with any owner, even a dangling one, is not softly owned.
		cluster, _, ok := ParseSecretName(o.Name)
		if len(o.Owners) > 0 || !ok {
			return nil
		}
		to = ID{Cluster.Group, Cluster.Kind, o.Namespace, cluster}
	case Cluster:
		to = refTo(o, FieldClassRef)
	case ClusterResourceSetBinding:
		to = refTo(o, FieldClusterName)
	default:
		return nil
	}
	if _, ok := g.index[to]; !ok {
		return nil
	}
	return []Edge{{From: o.ID, To: to, Kind: Soft, State: Live}}
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
