package graph

import (
	"fmt"
	"strings"
	"time"
)

// factsOf reads the values that decisions need, in v1beta1's and v1beta2's places.
// A value of the wrong type is as if it were not there: the object does not say.
func factsOf(id ID, spec, status map[string]any) Facts {
	f := Facts{
		Replicas:       integer(spec["replicas"]),
		Version:        str(spec["version"]),
		ProviderID:     str(spec["providerID"]),
		DataSecretName: str(status["dataSecretName"]),
	}
	if f.Version == "" {
		f.Version = str(dig(spec, "template", "spec", "version"))
	}
	f.Endpoint = endpoint(dig(spec, "controlPlaneEndpoint"))
	f.SelectorExpressions = len(list(dig(spec, "selector", "matchExpressions"))) > 0
	f.ObservedReplicas, f.UpToDateReplicas = integer(status["replicas"]), integer(status["upToDateReplicas"])
	if f.UpToDateReplicas == nil { // The place in v1beta1.
		f.UpToDateReplicas = integer(status["updatedReplicas"])
	}
	f.RolloutAfter = when(dig(spec, "rollout", "after"), spec["rolloutAfter"])
	f.CertificatesExpiry = str(status["certificatesExpiryDate"])
	f.Selector, _ = stringMap(dig(spec, "selector", "matchLabels"))
	switch id.GroupKind() {
	case Machine:
		f.NodeName = str(dig(status, "nodeRef", "name"))
	case Cluster:
		f.Paused, _ = spec["paused"].(bool)
		topology, _ := dig(spec, "topology").(map[string]any)
		f.Topology = len(topology) > 0
		f.TopologyDeployments = namesOf(dig(topology, "workers", "machineDeployments"))
		f.TopologyPools = namesOf(dig(topology, "workers", "machinePools"))
		f.InfrastructureProvisioned, _ = dig(status, "initialization", "infrastructureProvisioned").(bool)
		if ready, _ := status["infrastructureReady"].(bool); ready { // The place in v1beta1.
			f.InfrastructureProvisioned = true
		}
	}
	if id.Group == ControlPlaneGroup {
		f.ExternalEtcd = dig(spec, "kubeadmConfigSpec", "clusterConfiguration", "etcd", "external") != nil
	}
	return f
}

// when is the first of the values that is a time.
func when(values ...any) time.Time {
	for _, v := range values {
		if t, err := time.Parse(time.RFC3339, str(v)); err == nil {
			return t
		}
	}
	return time.Time{}
}

func namesOf(v any) []string {
	var out []string
	for _, item := range list(v) {
		if name := str(dig(item, "name")); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// endpoint is host:port, with brackets around an IPv6 address; empty while
// either is unset (upstream's APIEndpoint.IsValid).
func endpoint(v any) string {
	host, port := str(dig(v, "host")), integer(dig(v, "port"))
	if host == "" || port == nil || *port == 0 {
		return ""
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return fmt.Sprintf("%s:%d", host, *port)
}
