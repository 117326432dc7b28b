package prefill

import (
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// The parts of a KubeadmConfig's spec that upstream compares in different ways.
const (
	clusterPart = "clusterConfiguration"
	initPart    = "initConfiguration"
	joinPart    = "joinConfiguration"
)

// healthCheck is in both timeouts and never compared: conversion from v1beta1 sets it
// (filters.go, PrepareKubeadmConfigsForDiff).
const healthCheck = "controlPlaneComponentHealthCheckSeconds"

// joins says that upstream takes a KubeadmConfig for one that joins (filters.go,
// isKubeadmConfigForJoin).
func joins(c *bootstrapv1.KubeadmConfig) bool {
	return c.Spec.JoinConfiguration.ControlPlane != nil || len(c.Spec.JoinConfiguration.NodeRegistration.KubeletExtraArgs) > 0
}

// compared is a KubeadmConfig's spec as upstream compares it: without what it
// leaves out, each part in a form that is equal where upstream calls it equal.
type compared struct {
	cluster, init, join, rest values
}

func comparedOf(spec bootstrapv1.KubeadmConfigSpec) compared {
	all := valuesOf(spec)
	c := compared{
		cluster: compact(without(within(all, clusterPart), "controlPlaneEndpoint", "dns")),
		init:    withoutDefaults(compact(within(all, initPart))),
		join:    withoutDefaults(compact(without(within(all, joinPart), "discovery"))),
		rest:    compact(without(all, clusterPart, initPart, joinPart)),
	}
	if c.rest["format"] == string(bootstrapv1.CloudConfig) {
		delete(c.rest, "format")
	}
	return c
}

func withoutDefaults(section values) values {
	section = clone(section)
	if timeouts, ok := section["timeouts"].(values); ok {
		delete(timeouts, healthCheck)
	}
	if node, ok := section["nodeRegistration"].(values); ok && node["imagePullPolicy"] == "IfNotPresent" {
		delete(node, "imagePullPolicy")
	}
	return compact(section)
}

// both are the fields that init and join have in common.
var both = []string{"timeouts", "patches", "skipPhases", "nodeRegistration"}

// asJoin is what upstream makes of an initConfiguration before it compares it with a
// joinConfiguration.
func asJoin(init values) values {
	out := pick(init, both)
	if endpoint := within(init, "localAPIEndpoint"); len(endpoint) > 0 {
		out["controlPlane"] = values{"localAPIEndpoint": endpoint}
	}
	return clone(out)
}

// asInit is the other way round.
func asInit(join values) values {
	out := pick(join, both)
	if endpoint := within(join, "controlPlane", "localAPIEndpoint"); len(endpoint) > 0 {
		out["localAPIEndpoint"] = endpoint
	}
	return clone(out)
}

func pick(from values, keys []string) values {
	out := values{}
	for _, k := range keys {
		if v, ok := from[k]; ok {
			out[k] = v
		}
	}
	return out
}
