package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	kcp "sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/desiredstate"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

const (
	fieldVersion       = "spec.version"
	fieldConfigSpec    = "spec.kubeadmConfigSpec"
	fieldTemplate      = "spec.machineTemplate.spec.infrastructureRef"
	fieldRolloutBefore = "spec.rollout.before.certificatesExpiryDays"
	fieldRolloutAfter  = "spec.rollout.after"
)

// readers bounds how many Machines' objects are read at the same time.
const readers = 4

// Predict says of each control-plane Machine whether the control plane would
// replace it once it manages it, with every reason. r serves KubeadmConfigs,
// infrastructure machines and templates (unstructured) and the metadata of their
// CRDs, in the versions that ClusterAPIVersion reads; it may answer for a
// template that does not exist yet.
//
// What makes upstream's reconcile fail, as a template that does not exist, is a
// reason; the error is for what could not be read.
func Predict(ctx context.Context, r client.Reader, cluster *clusterv1.Cluster, controlPlane *controlplanev1.KubeadmControlPlane, machines []*clusterv1.Machine) (map[graph.ID]adopt.Rollout, error) {
	p := prediction{
		reading: newReading(r), cluster: cluster, controlPlane: controlPlane.DeepCopy(), now: metav1.Now(),
		infra: map[string]*unstructured.Unstructured{}, configs: map[string]*bootstrapv1.KubeadmConfig{},
		unread: map[string]adopt.RolloutReason{},
	}
	redact(&p.controlPlane.Spec.KubeadmConfigSpec)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, m := range machines {
		group.Go(func() error { return p.read(groupCtx, m) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := make(map[graph.ID]adopt.Rollout, len(machines))
	for _, m := range machines {
		verdict, err := p.judge(ctx, m)
		if err != nil {
			return nil, fmt.Errorf("asking whether %s is up to date: %w", machineID(m), err)
		}
		out[machineID(m)] = verdict
	}
	return out, nil
}

func machineID(m *clusterv1.Machine) graph.ID {
	return graph.ID{Group: graph.Machine.Group, Kind: graph.Machine.Kind, Namespace: m.Namespace, Name: m.Name}
}

type prediction struct {
	*reading
	cluster      *clusterv1.Cluster
	controlPlane *controlplanev1.KubeadmControlPlane
	now          metav1.Time

	mu      sync.Mutex
	infra   map[string]*unstructured.Unstructured
	configs map[string]*bootstrapv1.KubeadmConfig
	// unread is why upstream could not read an infrastructure machine that may exist.
	unread map[string]adopt.RolloutReason
}

// read does as upstream's getInfraMachines and getKubeadmConfigs: what is not
// there counts as a match.
func (p *prediction) read(ctx context.Context, m *clusterv1.Machine) error {
	if ref := m.Spec.Bootstrap.ConfigRef; ref.IsDefined() {
		config := &bootstrapv1.KubeadmConfig{}
		err := p.reading.Reader.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: ref.Name}, config)
		switch {
		case err == nil:
			redact(&config.Spec)
			p.mu.Lock()
			p.configs[m.Name] = config
			p.mu.Unlock()
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("reading KubeadmConfig %s/%s: %w", m.Namespace, ref.Name, err)
		}
	}
	infra, err := external.GetObjectFromContractVersionedRef(ctx, p, m.Spec.InfrastructureRef, m.Namespace)
	if failed := p.failure(); failed != nil {
		return failed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.infra[m.Name] = infra
	case !apierrors.IsNotFound(err):
		p.unread[m.Name] = adopt.RolloutReason{Field: "spec.infrastructureRef", Have: m.Spec.InfrastructureRef.Kind + "/" + m.Spec.InfrastructureRef.Name,
			Message: fmt.Sprintf("its infrastructure machine cannot be read, and the control plane's reconcile fails: %v", err)}
	}
	return nil
}

// judge asks upstream about one Machine.
func (p *prediction) judge(ctx context.Context, m *clusterv1.Machine) (adopt.Rollout, error) {
	out := adopt.Rollout{Version: ClusterAPIVersion}
	m = p.settled(m)
	upToDate, result, err := p.ask(ctx, m, p.infra)
	if err != nil {
		// A template that upstream cannot do without hides all other reasons: they are
		// asked for as if there were no infrastructure machine, which is a match.
		var without error
		if _, result, without = p.ask(ctx, m, nil); without != nil {
			out.Reasons = []adopt.RolloutReason{{Message: fmt.Sprintf("the control plane's reconcile fails: %v", without)}}
		} else {
			out.Reasons = []adopt.RolloutReason{p.withoutTemplate(err)}
		}
	}
	if failed := p.failure(); failed != nil {
		return out, failed
	}
	if result != nil {
		reasons, diff := p.reasons(m, result)
		out.Reasons, out.Diff = append(reasons, out.Reasons...), diff
	}
	if why, ok := p.unread[m.Name]; ok {
		out.Reasons = append(out.Reasons, why)
	}
	out.UpToDate = upToDate && len(out.Reasons) == 0
	return out, nil
}

func (p *prediction) ask(ctx context.Context, m *clusterv1.Machine, infra map[string]*unstructured.Unstructured) (bool, *kcp.UpToDateResult, error) {
	return kcp.UpToDate(ctx, p, p.cluster, m, p.controlPlane, &p.now, infra, p.configs)
}

// withoutTemplate is about the one object that upstream insists on.
func (p *prediction) withoutTemplate(err error) adopt.RolloutReason {
	ref := p.controlPlane.Spec.MachineTemplate.Spec.InfrastructureRef
	reason := adopt.RolloutReason{Field: fieldTemplate, Have: "none", Want: ref.Kind + "/" + ref.Name,
		Message: "its infrastructure template does not exist, and the control plane's reconcile fails without it"}
	if !apierrors.IsNotFound(err) {
		reason.Have = ""
		reason.Message = fmt.Sprintf("its infrastructure template cannot be used, and the control plane's reconcile fails: %v", err)
	}
	return reason
}

// settled gives a Machine the certificates' expiry that its status will have again:
// the Machine controller takes it from an annotation on the Machine, else on its
// KubeadmConfig (reconcileCertificateExpiry).
func (p *prediction) settled(m *clusterv1.Machine) *clusterv1.Machine {
	if !m.Status.CertificatesExpiryDate.IsZero() {
		return m
	}
	expiry, ok := m.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation]
	if config := p.configs[m.Name]; !ok && config != nil {
		expiry = config.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation]
	}
	at, err := time.Parse(time.RFC3339, expiry)
	if err != nil {
		return m
	}
	m = m.DeepCopy()
	m.Status.CertificatesExpiryDate = metav1.NewTime(at)
	return m
}

// reasons puts upstream's messages into fields and values. A message that is not
// known is passed on as it is.
func (p *prediction) reasons(m *clusterv1.Machine, result *kcp.UpToDateResult) (reasons []adopt.RolloutReason, diff string) {
	spec := p.controlPlane.Spec
	for _, message := range result.LogMessages {
		switch {
		case strings.Contains(message, "rolloutBefore expired"):
			reasons = append(reasons, adopt.RolloutReason{Field: fieldRolloutBefore, Message: "its certificates expire within the days that the control plane sets",
				Have: "certificates until " + m.Status.CertificatesExpiryDate.UTC().Format(time.RFC3339), Want: fmt.Sprintf("%d days more", spec.Rollout.Before.CertificatesExpiryDays)})
		case strings.Contains(message, "rolloutAfter expired"):
			reasons = append(reasons, adopt.RolloutReason{Field: fieldRolloutAfter, Message: "it is older than the control plane wants",
				Have: "created " + m.CreationTimestamp.UTC().Format(time.RFC3339), Want: "after " + spec.Rollout.After.UTC().Format(time.RFC3339)})
		case strings.HasPrefix(message, "Machine version "):
			reasons = append(reasons, adopt.RolloutReason{Field: fieldVersion, Have: m.Spec.Version, Want: spec.Version, Message: "its Kubernetes version is not the control plane's"})
		case strings.HasPrefix(message, "Infrastructure template on KCP rotated "):
			annotations := p.infra[m.Name].GetAnnotations()
			ref := spec.MachineTemplate.Spec.InfrastructureRef
			reasons = append(reasons, adopt.RolloutReason{Field: fieldTemplate, Message: "its infrastructure machine was cloned from another template",
				Have: annotations[clusterv1.TemplateClonedFromGroupKindAnnotation] + " " + annotations[clusterv1.TemplateClonedFromNameAnnotation],
				Want: ref.GroupKind().String() + " " + ref.Name})
		case strings.HasPrefix(message, outdated):
			diff = strings.TrimPrefix(message, outdated)
			fields := p.fields(m)
			if len(fields) == 0 {
				fields = []adopt.RolloutReason{{Field: fieldConfigSpec, Message: "the KubeadmConfig differs from the control plane's: " + diff}}
			}
			reasons = append(reasons, fields...)
		default:
			reasons = append(reasons, adopt.RolloutReason{Message: message})
		}
	}
	return reasons, diff
}

const outdated = "Machine KubeadmConfig is outdated: diff: "

// fields are the leaves of the difference that upstream printed: of a config for
// init the one with the init configuration, else that with join (matchesKubeadmConfig).
func (p *prediction) fields(m *clusterv1.Machine) []adopt.RolloutReason {
	current := p.configs[m.Name]
	join := current.Spec.JoinConfiguration.ControlPlane != nil || len(current.Spec.JoinConfiguration.NodeRegistration.KubeletExtraArgs) > 0
	desired, err := desiredstate.ComputeDesiredKubeadmConfig(p.controlPlane, p.cluster, join, m.Name, current)
	if err != nil {
		return nil
	}
	want, have := kcp.PrepareKubeadmConfigsForDiff(desired, current, join)
	return slices.Clip(differences(&have.Spec, &want.Spec))
}
