package preflight

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/internal/fleet"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func hintsAt(field string, to graph.ID) fleet.Edit {
	return func(o *graph.Object) { o.Hints = append(o.Hints, graph.Ref{Field: field, To: to}) }
}

// ownedAlso adds an owner of Cluster API's core group that does not control.
func ownedAlso(kind, name string, uid types.UID) fleet.Edit {
	return func(o *graph.Object) {
		o.Owners = append(o.Owners, metav1.OwnerReference{APIVersion: graph.CoreGroup + "/v1beta2", Kind: kind, Name: name, UID: uid})
	}
}

func facts(change func(*graph.Facts)) fleet.Edit {
	return func(o *graph.Object) { change(&o.Facts) }
}

// more makes a kind known; of namespaced or cluster scope.
func more(o *fleet.Objects, kind graph.GroupKind, namespaced, hierarchy bool) {
	o.Kinds = append(o.Kinds, graph.KindInfo{GroupKind: kind, APIVersion: kind.Group + "/v1beta2", Namespaced: namespaced, Discovered: true,
		ForceMove: hierarchy, ForceMoveHierarchy: hierarchy})
}

var (
	c1       = fleet.ID(graph.Cluster, "c1")
	c1Infra  = fleet.ID(fleet.InfraCluster, "c1")
	kcp      = fleet.ID(graph.KubeadmControlPlane, "c1-cp")
	cp0      = fleet.ID(graph.Machine, "c1-cp-0")
	worker   = fleet.ID(graph.Machine, "c1-md-0")
	md       = fleet.ID(graph.MachineDeployment, "c1-md")
	ms       = fleet.ID(graph.MachineSet, "c1-md-1")
	identity = graph.GroupKind{Group: fleet.InfraGroup, Kind: "DevIdentity"}
	account  = graph.ID{Group: identity.Group, Kind: identity.Kind, Name: "account"}
)

func TestLeftBehind_WhatProvidersReferToInTheirOwnWay(t *testing.T) {
	credentials := fleet.ID(graph.Secret, "credentials")
	each(t, map[string]planted{
		"a reference without a version to a kind of the same provider": {func(o *fleet.Objects) {
			more(o, identity, false, false)
			o.Rename(o.Add(identity, "account", nil, hintsAt("spec.clientSecret", credentials)), account)
			o.Add(graph.Secret, "credentials", nil)
			o.Change(c1Infra, hintsAt("spec.identityRef", account))
		}, []string{"LeftBehind DevIdentity account harms", "LeftBehind Secret fleet/credentials harms"}},
		"the Secret of a cluster-scoped identity, named without a namespace": {func(o *fleet.Objects) {
			more(o, identity, false, false)
			o.Rename(o.Add(identity, "account", nil, hintsAt("spec.secretRef", graph.ID{Kind: "Secret", Name: "credentials"})), account)
			o.Rename(o.Add(graph.Secret, "credentials", nil), graph.ID{Kind: "Secret", Namespace: "infra-system", Name: "credentials"})
			o.Change(c1Infra, fleet.RefersTo("spec.identityRef", account))
		}, []string{"LeftBehind DevIdentity account harms", "LeftBehind Secret infra-system/credentials harms"}},
		"credentials that only a name tells": {func(o *fleet.Objects) {
			o.Add(graph.Secret, "credentials", nil)
			o.Change(c1Infra, hintsAt("spec.credentialsSecretName", credentials))
		}, []string{"LeftBehind Secret fleet/credentials harms"}},
		"a name that only looks like one": {func(o *fleet.Objects) {
			o.Change(c1Infra, hintsAt("spec.credentialsSecretName", fleet.ID(graph.Secret, "not-there")))
		}, nil},
		"credentials that are labelled": {func(o *fleet.Objects) {
			o.Add(graph.Secret, "credentials", nil, fleet.Labelled(graph.MoveLabel, ""))
			o.Change(c1Infra, hintsAt("spec.credentialsSecretName", credentials))
		}, nil},
		"rules for draining": {func(o *fleet.Objects) {
			more(o, drainRules, true, false)
			o.Add(drainRules, "gently", nil)
		}, []string{"LeftBehind MachineDrainRule fleet/gently harms"}},
		"moved too early": {func(o *fleet.Objects) {
			o.Change(ms, fleet.Replicas(3))
			o.Change(fleet.ID(fleet.InfraTemplate, "c1"), func(t *graph.Object) { t.Owners = nil })
		}, []string{"LeftBehind DevMachineTemplate fleet/c1 harms", "InFlight MachineSet fleet/c1-md-1 harms"}},
	})
}

func TestNotNow_WhatIsPausedBlockedOrInFlight(t *testing.T) {
	each(t, map[string]planted{
		"held by a pivot to here that has not ended": {func(o *fleet.Objects) {
			o.Change(c1, fleet.Annotated(labels.Paused, "true"), fleet.Annotated(labels.Held, "move-hook 2026-01-02T03:04:05Z"))
		}, []string{"Paused Cluster fleet/c1 stops"}},
		"the move is blocked": {func(o *fleet.Objects) {
			o.Change(c1Infra, fleet.Annotated(graph.BlockMoveAnnotation, "true"))
		}, []string{"BlockMove DevCluster fleet/c1 notes"}},
		"scaling": {func(o *fleet.Objects) { o.Change(ms, fleet.Replicas(3)) }, []string{"InFlight MachineSet fleet/c1-md-1 harms"}},
		"a rollout of the control plane": {func(o *fleet.Objects) {
			o.Change(kcp, observed(1, 0))
		}, []string{"InFlight KubeadmControlPlane fleet/c1-cp harms"}},
		"a MachinePool that scales": {func(o *fleet.Objects) {
			more(o, graph.MachinePool, true, false)
			o.Add(graph.MachinePool, "c1-mp", []graph.ID{c1}, fleet.Replicas(2), observed(1, 1))
		}, []string{"InFlight MachinePool fleet/c1-mp harms"}},
		"scalers that are as they should be": {func(o *fleet.Objects) {
			more(o, graph.MachinePool, true, false)
			o.Add(graph.MachinePool, "c1-mp", []graph.ID{c1}, fleet.Replicas(2), observed(2, 2))
			o.Change(kcp, observed(1, 1))
			o.Change(md, observed(2, 2))
		}, nil},
		"a remediation": {func(o *fleet.Objects) {
			o.Change(kcp, fleet.Annotated(remediationAnnotation, "{}"))
		}, []string{"InFlight KubeadmControlPlane fleet/c1-cp harms"}},
		"an update in place": {func(o *fleet.Objects) {
			o.Change(worker, fleet.Annotated(hooksAnnotation, "UpdateMachine"))
		}, []string{"InFlight Machine fleet/c1-md-0 harms"}},
		"hooks that are still to be called": {func(o *fleet.Objects) {
			o.Change(c1, fleet.Annotated(hooksAnnotation, "AfterClusterUpgrade"))
		}, []string{"InFlight Cluster fleet/c1 harms"}},
	})
}

func observed(replicas, upToDate int64) fleet.Edit {
	return facts(func(f *graph.Facts) { f.ObservedReplicas, f.UpToDateReplicas = &replicas, &upToDate })
}

func TestLostStatus_WhatNoSpecTells(t *testing.T) {
	noEndpoint := facts(func(f *graph.Facts) { f.Endpoint = "" })
	after := func(d time.Duration) fleet.Edit {
		return facts(func(f *graph.Facts) { f.RolloutAfter = now.Add(d) })
	}
	made := func(d time.Duration) fleet.Edit { return func(m *graph.Object) { m.Created = now.Add(d) } }
	expires := facts(func(f *graph.Facts) { f.CertificatesExpiry = "2027-01-01T00:00:00Z" })
	each(t, map[string]planted{
		"the provider ID is in status only": {func(o *fleet.Objects) {
			o.Change(fleet.ID(fleet.InfraMachine, "c1-md-0"), facts(func(f *graph.Facts) { f.ProviderID = "" }))
		}, []string{"ProviderIDNotInSpec DevMachine fleet/c1-md-0 stops"}},
		"a Machine without the provider ID that its infrastructure has": {func(o *fleet.Objects) {
			o.Change(worker, facts(func(f *graph.Facts) { f.ProviderID = "" }))
		}, []string{"ProviderIDNotInSpec Machine fleet/c1-md-0 stops"}},
		"no endpoint": {func(o *fleet.Objects) { o.Change(c1, noEndpoint) }, []string{"EndpointNotInSpec Cluster fleet/c1 harms"}},
		"the endpoint is its infrastructure's": {func(o *fleet.Objects) {
			o.Change(c1, noEndpoint)
			o.Change(c1Infra, facts(func(f *graph.Facts) { f.Endpoint = "10.0.0.1:6443" }))
		}, nil},
		"a rollout that was asked for and is not done": {func(o *fleet.Objects) {
			o.Change(kcp, after(-time.Hour))
			o.Change(cp0, made(-2*time.Hour))
		}, []string{"RolloutAfterForgotten KubeadmControlPlane fleet/c1-cp harms"}},
		"a rollout that is done": {func(o *fleet.Objects) {
			o.Change(kcp, after(-time.Hour))
			o.Change(cp0, made(-time.Minute))
		}, nil},
		"a rollout that is to come": {func(o *fleet.Objects) {
			o.Change(kcp, after(time.Hour))
			o.Change(cp0, made(-time.Hour))
		}, nil},
		"a MachineDeployment that has begun its rollout": {func(o *fleet.Objects) {
			o.Change(md, after(-time.Hour))
			o.Change(ms, made(-time.Minute))
			o.Add(graph.MachineSet, "c1-md-old", []graph.ID{md}, fleet.Replicas(0), made(-2*time.Hour))
		}, nil},
		"a MachineDeployment that has not": {func(o *fleet.Objects) {
			o.Change(md, after(-time.Hour))
			o.Change(ms, made(-2*time.Hour))
		}, []string{"RolloutAfterForgotten MachineDeployment fleet/c1-md harms"}},
		"the expiry of certificates in status only": {func(o *fleet.Objects) {
			o.Change(cp0, expires)
		}, []string{"CertificatesExpiryForgotten Machine fleet/c1-cp-0 notes"}},
		"the expiry of certificates in an annotation": {func(o *fleet.Objects) {
			o.Change(cp0, expires)
			o.Change(fleet.ID(graph.KubeadmConfig, "c1-cp-0"), fleet.Annotated(expiryAnnotation, "2027-01-01T00:00:00Z"))
		}, nil},
	})
}

func TestOwners_TheHealthOfTheGraph(t *testing.T) {
	secret := fleet.ID(graph.Secret, "c1-md-0")
	each(t, map[string]planted{
		"no owner that exists": {func(o *fleet.Objects) {
			o.Change(secret, func(s *graph.Object) { s.Owners[0].UID = "another" })
		}, []string{"CollectorTakes Secret fleet/c1-md-0 harms"}},
		"one owner is another copy": {func(o *fleet.Objects) {
			o.Change(secret, ownedAlso("Machine", "c1-md-0", o.All[worker].UID), func(s *graph.Object) { s.Owners[0].UID = "another" })
		}, []string{"OwnerStale Secret fleet/c1-md-0 harms"}},
		"one owner is gone": {func(o *fleet.Objects) {
			o.Change(fleet.ID(graph.KubeadmConfig, "c1-md-0"), ownedAlso("MachineSet", "gone", "gone"))
		}, []string{"OwnerGone KubeadmConfig fleet/c1-md-0 harms", "LeftBehind Secret fleet/c1-md-0 harms"}},
		"one owner is in another namespace": {func(o *fleet.Objects) {
			elsewhere := o.Add(graph.MachineSet, "elsewhere", nil)
			uid := o.All[elsewhere].UID
			o.Rename(elsewhere, graph.ID{Group: elsewhere.Group, Kind: elsewhere.Kind, Namespace: "other", Name: elsewhere.Name})
			o.Change(secret, ownedAlso("MachineSet", "elsewhere", uid))
		}, []string{"OwnerElsewhere Secret fleet/c1-md-0 harms"}},
		"the same owner twice": {func(o *fleet.Objects) {
			o.Change(secret, func(s *graph.Object) {
				again := s.Owners[0]
				again.Controller = nil
				s.Owners = append(s.Owners, again)
			})
		}, []string{"OwnerTwice Secret fleet/c1-md-0 harms"}},
		"two controllers": {func(o *fleet.Objects) {
			yes := true
			o.Change(secret, ownedAlso("Machine", "c1-md-0", o.All[worker].UID), func(s *graph.Object) { s.Owners[1].Controller = &yes })
		}, []string{"TwoControllers Secret fleet/c1-md-0 stops"}},
		"owners in a circle": {func(o *fleet.Objects) {
			o.Change(md, ownedAlso("MachineSet", "c1-md-1", o.All[ms].UID))
			o.Change(ms, fleet.Replicas(0))
			for _, name := range []string{"c1-md-0", "c1-md-1"} { // What hangs below is told as left behind.
				for _, kind := range []graph.GroupKind{graph.Machine, graph.KubeadmConfig, fleet.InfraMachine, graph.Secret} {
					delete(o.All, fleet.ID(kind, name))
				}
			}
		}, []string{"OwnerCycle MachineDeployment fleet/c1-md harms", "OwnerCycle MachineSet fleet/c1-md-1 harms"}},
		"an owner in an old version": {func(o *fleet.Objects) {
			o.Change(fleet.ID(fleet.InfraMachine, "c1-md-0"), func(m *graph.Object) { m.Owners[0].APIVersion = "cluster.x-k8s.io/v1beta1" })
		}, []string{"OwnerVersion DevMachine fleet/c1-md-0 notes"}},
	})
}

func TestSelectors_WhatWouldAdoptWhat(t *testing.T) {
	selecting := func(pairs ...string) fleet.Edit {
		return func(o *graph.Object) {
			o.Facts.Selector = map[string]string{graph.ClusterNameLabel: "c1"}
			for i := 0; i < len(pairs); i += 2 {
				o.Facts.Selector[pairs[i]] = pairs[i+1]
			}
		}
	}
	two := func(o *fleet.Objects, first, second fleet.Edit) {
		o.Change(md, first)
		mine := fleet.Labelled(graph.ClusterNameLabel, "c1", graph.DeploymentNameLabel, "c1-two")
		other := o.Add(graph.MachineDeployment, "c1-two", []graph.ID{c1}, mine, fleet.Replicas(0), second)
		o.Add(graph.MachineSet, "c1-two-1", []graph.ID{other}, mine, fleet.Replicas(0))
	}
	each(t, map[string]planted{
		"selectors that overlap": {func(o *fleet.Objects) {
			two(o, selecting(), selecting())
		}, []string{"OverlappingSelectors MachineDeployment fleet/c1-md harms", "OverlappingSelectors MachineDeployment fleet/c1-two harms"}},
		"selectors with a label of their own": {func(o *fleet.Objects) {
			two(o, selecting(graph.DeploymentNameLabel, "c1-md"), selecting(graph.DeploymentNameLabel, "c1-two"))
		}, nil},
		"what expressions select is not known": {func(o *fleet.Objects) {
			expressions := facts(func(f *graph.Facts) { f.SelectorExpressions = true })
			two(o, func(o *graph.Object) { selecting()(o); expressions(o) }, selecting(graph.DeploymentNameLabel, "c1-two"))
		}, nil},
		"MachineSets that select each other's Machines": {func(o *fleet.Objects) {
			o.Change(ms, selecting())
			o.Machine(c1, o.Add(graph.MachineSet, "c1-alone", []graph.ID{c1}, fleet.Replicas(1), func(o *graph.Object) {
				yes := true
				o.Facts.Selector = map[string]string{graph.SetNameLabel: "c1-alone"}
				o.Owners[0].Controller = &yes
			}), "c1-alone-0", fleet.Labelled(graph.SetNameLabel, "c1-alone"))
		}, []string{"OverlappingSelectors MachineSet fleet/c1-md-1 harms"}},
	})
}

func TestShared_WhatIsOnBothSidesAfterwards(t *testing.T) {
	each(t, map[string]planted{
		"a cluster-scoped object that moves": {func(o *fleet.Objects) {
			more(o, identity, false, true)
			o.Rename(o.Add(identity, "account", nil), account)
			o.Change(c1Infra, fleet.RefersTo("spec.identityRef", account))
		}, []string{"StaysOnBothSides DevIdentity account notes"}},
		"a class of this namespace": {func(o *fleet.Objects) {
			o.Change(c1, fleet.RefersTo(graph.FieldClassRef, o.Add(graph.ClusterClass, "quick", nil)))
		}, nil},
	})
	o := fleet.New("source")
	o.Cluster("c1", 1, 2)
	class := o.Add(graph.ClusterClass, "quick", nil)
	o.Change(c1, fleet.RefersTo(graph.FieldClassRef, class))
	stays := graph.Object{ID: graph.ID{Group: c1.Group, Kind: c1.Kind, Namespace: "other", Name: "c9"}, Refs: []graph.Ref{{Field: graph.FieldClassRef, To: class}}}
	in := Input{Namespace: "fleet", Source: NewScope(o.Graph(), []graph.ID{c1}), Now: now, Others: []graph.Object{stays}}
	same(t, []string{"StaysOnBothSides ClusterClass fleet/quick notes"}, Run(in))
}
