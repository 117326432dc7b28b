package preflight

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/internal/fleet"
	"github.com/move-hook/move-hook/pkg/graph"
)

// clean is a source with one Cluster of which nothing is wrong.
func clean() *Scope {
	o := fleet.New("source")
	return NewScope(func() (*graph.Graph, []graph.ID) {
		c := o.Cluster("c1", 1, 2)
		return o.Graph(), []graph.ID{c}
	}())
}

// emptyTarget serves all that moves and holds nothing.
func emptyTarget(s *Scope) *TargetFacts {
	t := &TargetFacts{Name: "target", Kinds: map[graph.GroupKind]KindFacts{}, There: map[graph.ID]Copy{},
		Rooms: map[string]Room{"fleet": {Exists: true}}}
	for gk := range s.Moving() {
		info, _ := s.Graph.KindInfo(gk)
		t.Kinds[gk] = KindFacts{Version: info.APIVersion, Served: []string{info.APIVersion}, Labelled: true, Resource: strings.ToLower(gk.Kind) + "s"}
	}
	provider := Provider{Type: "InfrastructureProvider", Name: "docker", Version: "v1.14.2"}
	t.Providers = Inventories{Read: true, Source: []Provider{provider}, Target: []Provider{provider}}
	return t
}

func invalid(message string) metav1.Status {
	return metav1.Status{Reason: metav1.StatusReasonInvalid, Message: message}
}

func forbidden(message string) metav1.Status {
	return metav1.Status{Reason: metav1.StatusReasonForbidden, Message: message}
}

func TestTargetChecks_EachFaultIsFoundAndNothingElse(t *testing.T) {
	c1 := fleet.ID(graph.Cluster, "c1")
	machine, other := fleet.ID(graph.Machine, "c1-md-0"), fleet.ID(graph.Machine, "c1-cp-0")
	ca := fleet.ID(graph.Secret, "c1-ca")
	docker := func(version string) []Provider {
		return []Provider{{Type: "InfrastructureProvider", Name: "docker", Version: version}}
	}
	ofC1 := map[string]string{graph.ClusterNameLabel: "c1"}
	differs := []Difference{{Field: "spec.version", Source: "v1", Target: "v2"}}
	room := func(q Quota) map[string]Room {
		return map[string]Room{"fleet": {Exists: true, Quotas: []Quota{q}}}
	}
	for name, c := range map[string]struct {
		plant func(*TargetFacts)
		want  []string
	}{
		"nothing":                           {func(*TargetFacts) {}, nil},
		"a provider is missing":             {func(t *TargetFacts) { t.Providers.Target = nil }, []string{"ProviderMissing InfrastructureProvider docker stops"}},
		"a provider is older":               {func(t *TargetFacts) { t.Providers.Target = docker("v1.14.1") }, []string{"ProviderOlder InfrastructureProvider docker stops"}},
		"a provider is newer":               {func(t *TargetFacts) { t.Providers.Target = docker("v1.15.0") }, nil},
		"the newest counts":                 {func(t *TargetFacts) { t.Providers.Target = append(docker("v1.9.0"), docker("v1.14.2")...) }, nil},
		"a pre-release is older":            {func(t *TargetFacts) { t.Providers.Target = docker("v1.14.2-rc.1") }, []string{"ProviderOlder InfrastructureProvider docker stops"}},
		"no version":                        {func(t *TargetFacts) { t.Providers.Target = docker("main") }, []string{"ProviderOlder InfrastructureProvider docker stops"}},
		"no inventory on the source":        {func(t *TargetFacts) { t.Providers = Inventories{Read: true} }, nil},
		"an inventory that nobody may read": {func(t *TargetFacts) { t.Providers.Target, t.Providers.Read = nil, false }, nil},
		"a kind is missing": {func(t *TargetFacts) { t.Kinds[graph.KubeadmConfig] = KindFacts{Version: "v1beta2"} },
			[]string{"KindMissing " + graph.KubeadmConfig.String() + " stops"}},
		"a version is missing": {func(t *TargetFacts) {
			k := t.Kinds[graph.KubeadmConfig]
			k.Served = []string{graph.BootstrapGroup + "/v1beta1"}
			t.Kinds[graph.KubeadmConfig] = k
		}, []string{"VersionMissing " + graph.KubeadmConfig.String() + " stops"}},
		"a CRD is not labelled": {func(t *TargetFacts) {
			k := t.Kinds[graph.KubeadmConfig]
			k.Labelled = false
			t.Kinds[graph.KubeadmConfig] = k
		}, []string{"KindUnlabelled " + graph.KubeadmConfig.String() + " harms"}},
		"the namespace does not exist": {func(t *TargetFacts) { t.Rooms["fleet"] = Room{} }, nil},
		"the namespace is terminating": {func(t *TargetFacts) { t.Rooms["fleet"] = Room{Exists: true, Terminating: true} },
			[]string{"NamespaceTerminating Namespace fleet stops"}},
		"a quota is too small": {func(t *TargetFacts) {
			t.Rooms = room(Quota{Name: "q", Hard: map[string]int64{"count/machines.cluster.x-k8s.io": 1}})
		}, []string{"QuotaExceeded ResourceQuota fleet/q stops"}},
		"a quota has room": {func(t *TargetFacts) {
			t.Rooms = room(Quota{Name: "q", Hard: map[string]int64{"count/machines.cluster.x-k8s.io": 100, "pods": 0, "requests.cpu": 1}})
		}, nil},
		"what is there needs no room": {func(t *TargetFacts) {
			t.Rooms = room(Quota{Name: "q", Hard: map[string]int64{"count/clusters.cluster.x-k8s.io": 1}, Used: map[string]int64{"count/clusters.cluster.x-k8s.io": 1}})
			t.There[c1] = Copy{Labels: ofC1}
		}, []string{"AlreadyThere Namespace fleet notes"}},
		"the record needs room too": {func(t *TargetFacts) {
			t.Rooms = room(Quota{Name: "q", Hard: map[string]int64{"configmaps": 0}})
		}, []string{"QuotaExceeded ResourceQuota fleet/q stops"}},
		"an equal copy": {func(t *TargetFacts) { t.There[machine] = Copy{Labels: ofC1} }, []string{"AlreadyThere Namespace fleet notes"}},
		"an earlier try left other content": {func(t *TargetFacts) { t.There[machine] = Copy{Labels: ofC1, Differs: differs} },
			[]string{"NameClash Machine fleet/c1-md-0 harms"}},
		"another Cluster's object has the name": {func(t *TargetFacts) {
			t.There[machine] = Copy{Labels: map[string]string{graph.ClusterNameLabel: "c2"}, Differs: differs}
		}, []string{"NameClash Machine fleet/c1-md-0 stops"}},
		"another Cluster has the name": {func(t *TargetFacts) {
			t.There[c1] = Copy{Differs: []Difference{{Field: "spec.controlPlaneEndpoint.host", Source: "a", Target: "b"}}}
		}, []string{"NameClash Cluster fleet/c1 stops"}},
		"an earlier try left the Cluster in another version": {func(t *TargetFacts) { t.There[c1] = Copy{Differs: differs} }, []string{"NameClash Cluster fleet/c1 harms"}},
		"clusterctl leaves it":                               {func(t *TargetFacts) { t.There[ca] = Copy{Kept: true, Differs: differs} }, []string{"NameClash Secret fleet/c1-ca harms"}},
		"it is being deleted":                                {func(t *TargetFacts) { t.There[machine] = Copy{Labels: ofC1, Deleting: true} }, []string{"NameClash Machine fleet/c1-md-0 stops"}},
		"the update would be refused": {func(t *TargetFacts) {
			s := invalid("spec.template: field is immutable")
			t.There[machine] = Copy{Labels: ofC1, Refused: &s, Differs: differs}
		}, []string{"NameClash Machine fleet/c1-md-0 stops"}},
		"our guard refuses the update of an equal copy": {func(t *TargetFacts) {
			s := forbidden(`machines "c1-md-0" is forbidden: ValidatingAdmissionPolicy 'move-hook-guard' with binding 'move-hook-guard' denied request: held`)
			t.There[machine] = Copy{Labels: ofC1, Refused: &s}
		}, []string{"AlreadyThere Namespace fleet notes"}},
		"a webhook refuses": {func(t *TargetFacts) {
			t.Refusals = []Refusal{{ID: machine, Said: forbidden(`admission webhook "x" denied the request: gate is off`)}}
		}, []string{"RefusedByTarget Machine fleet/c1-md-0 stops"}},
		"the same is said to two": {func(t *TargetFacts) {
			t.Refusals = []Refusal{{ID: machine, Said: invalid(`Machine "c1-md-0" is invalid`)}, {ID: other, Said: invalid(`Machine "c1-cp-0" is invalid`)}}
		}, []string{"RefusedByTarget Machine fleet/c1-cp-0 stops"}},
		"refused in one stand-in only": {func(t *TargetFacts) {
			t.Refusals = []Refusal{{ID: machine, Said: forbidden("no"), StandIn: "default", TakenIn: "kube-public"}}
		}, []string{"OfferUnsure Machine fleet/c1-md-0 notes"}},
		"refused in both stand-ins": {func(t *TargetFacts) { t.Refusals = []Refusal{{ID: machine, Said: forbidden("no"), StandIn: "default"}} },
			[]string{"RefusedByTarget Machine fleet/c1-md-0 stops"}},
		"a webhook looks for what moves too": {func(t *TargetFacts) {
			t.Refusals = []Refusal{{ID: machine, Said: forbidden(`admission webhook "x" denied the request: Cluster "c1" not found`)}}
		}, []string{"OfferUnsure Machine fleet/c1-md-0 notes"}},
		"a webhook looks for what does not move": {func(t *TargetFacts) {
			t.Refusals = []Refusal{{ID: machine, Said: forbidden(`admission webhook "x" denied the request: Zone "z" not found`)}}
		}, []string{"RefusedByTarget Machine fleet/c1-md-0 stops"}},
		"a webhook that is not for dry runs": {func(t *TargetFacts) {
			t.Refusals = []Refusal{{ID: machine, Said: metav1.Status{Reason: metav1.StatusReasonBadRequest, Message: "admission webhook \"x\" does not support dry run"}}}
		}, []string{"OfferUnsure Machine fleet/c1-md-0 notes"}},
		"what other checks tell": {func(t *TargetFacts) {
			t.Rooms = room(Quota{Name: "q"})
			terminating := forbidden("is being terminated")
			terminating.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
			for _, s := range []metav1.Status{
				forbidden(`machines.cluster.x-k8s.io is forbidden: User "u" cannot create resource "machines" in API group "cluster.x-k8s.io" in the namespace "fleet"`),
				forbidden(`machines "m" is forbidden: exceeded quota: q, requested: count/machines.cluster.x-k8s.io=1`),
				forbidden(`machines "m" is forbidden: MutatingAdmissionPolicy 'move-hook-hold' with binding 'x' denied request: failed`),
				{Reason: metav1.StatusReasonNotFound, Message: `namespaces "fleet" not found`, Details: &metav1.StatusDetails{Kind: "namespaces"}},
				{Reason: metav1.StatusReasonAlreadyExists, Message: "already exists"},
				terminating,
			} {
				t.Refusals = append(t.Refusals, Refusal{ID: machine, Said: s})
			}
		}, nil},
		"a quota that nobody may read": {func(t *TargetFacts) {
			t.Refusals = []Refusal{{ID: machine, Said: forbidden(`machines "m" is forbidden: exceeded quota: q, requested: count/machines.cluster.x-k8s.io=1`)}}
		}, []string{"RefusedByTarget Machine fleet/c1-md-0 stops"}},
	} {
		t.Run(name, func(t *testing.T) {
			source := clean()
			in := Input{Namespace: "fleet", Source: source, Target: emptyTarget(source)}
			c.plant(in.Target)
			var got []string
			for _, f := range Run(in) {
				got = append(got, f.ID+" "+f.Object+" "+string(f.Severity))
				if f.Message == "" || f.Severity == "stops" && f.Remedy == "" {
					t.Errorf("no message or remedy: %s", f)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDifferences_AreThoseOfContent(t *testing.T) {
	cluster := func(spec map[string]any) map[string]any {
		return map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": map[string]any{"uid": spec["uid"]}, "spec": spec}
	}
	for name, c := range map[string]struct {
		source, target map[string]any
		want           []Difference
	}{
		"metadata, status and the pause do not count": {
			map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": map[string]any{"uid": "a"}, "status": "a", "spec": map[string]any{"x": "y"}},
			map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": map[string]any{"uid": "b"}, "spec": map[string]any{"paused": true, "x": "y"}}, nil},
		"empty is as good as absent": {cluster(map[string]any{"a": map[string]any{}, "b": []any{}}), cluster(map[string]any{}), nil},
		"a value": {cluster(map[string]any{"a": map[string]any{"b": int64(1)}}), cluster(map[string]any{"a": map[string]any{"b": int64(2)}}),
			[]Difference{{"spec.a.b", "1", "2"}}},
		"a zero is no absence": {cluster(map[string]any{"a": int64(0)}), cluster(map[string]any{}), []Difference{{"spec.a", "0", ""}}},
		"values of others are not shown": {map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": "a"}},
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": "b"}}, []Difference{{Field: "data.k"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Differences(c.source, c.target)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRights_RoleHasThemAndLackingNamesThem(t *testing.T) {
	n := Needs{Namespace: "fleet", ProviderNamespaces: []string{"capd-system"}, Resources: []Resource{
		{Group: graph.CoreGroup, Plural: "clusters", Namespaced: true, Moves: true}, {Plural: "secrets", Namespaced: true, Moves: true},
		{Group: "example.com", Plural: "identities"}}}
	for _, side := range []Side{Source, Target} {
		all := Rights(side, n)
		if missing := Lacking(all, func(Right, string) bool { return false }); len(missing) > 0 {
			t.Errorf("nothing is denied and %v is missing", missing)
		}
		missing := Lacking(all, func(r Right, verb string) bool { return r.Resource == "clusters" && verb == "patch" })
		var got []string
		for _, f := range Run(Input{Namespace: "fleet", Source: clean(), Missing: missing}) {
			got = append(got, f.ID+" "+f.Object+" "+string(f.Severity))
		}
		if diff := cmp.Diff([]string{"MissingPermission clusters.cluster.x-k8s.io in namespace fleet on the " + string(side) + " stops"}, got); diff != "" {
			t.Error(diff)
		}
		role, err := Role(side, all)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"kind: ClusterRole\n", "name: move-hook-" + string(side), "- clusters\n", "- identities\n", "- leases\n"} {
			if !strings.Contains(role, want) {
				t.Errorf("%q is not in\n%s", want, role)
			}
		}
	}
}
