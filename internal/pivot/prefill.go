package pivot

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/prefill"
	"github.com/move-hook/move-hook/internal/preflight"
	"github.com/move-hook/move-hook/internal/rollout"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// PrefillOptions say which Cluster gets a control plane.
type PrefillOptions struct {
	On      *management.Cluster
	Cluster types.NamespacedName
	// ControlPlane is its name; empty for the one that the Cluster refers to, or
	// <cluster>-control-plane.
	ControlPlane string
	// Apply writes; otherwise only the result says what would be written.
	Apply bool
	// AllowRollout writes although Machines would be replaced.
	AllowRollout bool
	DryRun       bool
	// Holder is who holds, as people read it in the annotation; "move-hook" when empty.
	Holder   string
	Progress flow.Progress
}

// Prefill works out the KubeadmControlPlane and the template that adopt stand-alone
// control-plane Machines, and with Apply creates them, held and marked for adoption.
// It may be killed anywhere and run again; where everything is in place it writes
// nothing. What it leaves is for Post, which adopts.
func Prefill(ctx context.Context, o PrefillOptions) (PrefillResult, error) {
	begin := time.Now()
	writes := []flow.Write{}
	for range rereads {
		f := newFilling(o, begin)
		err := follow(ctx, o.Progress, f.steps())
		writes = append(writes, f.result.Writes...)
		if err != nil || !f.moved {
			f.result.Writes, f.result.Seconds = writes, time.Since(begin).Seconds()
			return f.result, err
		}
	}
	return PrefillResult{}, fmt.Errorf("%s keeps changing: somebody else writes the objects of Cluster %s, run the command again", o.On.Name(), o.Cluster)
}

// filling is one run of Prefill. Where the world is not as it was read, moved is set,
// and the next run begins by reading.
type filling struct {
	o        PrefillOptions
	on       filled
	guard    guarded
	by       labels.Holder
	in       prefill.Input
	read     readObjects
	proposal prefill.Proposal
	moved    bool
	result   PrefillResult
}

// filled is what Prefill needs of a management cluster.
type filled interface {
	Name() string
	Get(ctx context.Context, id graph.ID, whole bool) (*graph.Object, error)
	Raw(ctx context.Context, id graph.ID) (*unstructured.Unstructured, error)
	Raws(ctx context.Context, gk graph.GroupKind, namespace, selector string) ([]unstructured.Unstructured, error)
	Served(ctx context.Context, gk graph.GroupKind) (string, error)
	Create(ctx context.Context, u *unstructured.Unstructured, dryRun bool) (adopt.Outcome, error)
	Set(ctx context.Context, on adopt.Target, fields map[string]any, dryRun bool) (adopt.Outcome, error)
	Apply(ctx context.Context, a adopt.Action, dryRun bool) (adopt.Outcome, error)
}

func newFilling(o PrefillOptions, begin time.Time) *filling {
	return &filling{
		o: o, on: o.On, guard: guardOf(o.On, "", o.DryRun), by: labels.Holder{Who: cmp.Or(o.Holder, "move-hook"), Since: begin},
		result: PrefillResult{Outcome: flow.Done, DryRun: o.DryRun, Applied: o.Apply,
			Cluster: clusterID(o.Cluster)},
	}
}

func clusterID(name types.NamespacedName) graph.ID {
	return graph.ID{Group: graph.CoreGroup, Kind: graph.Cluster.Kind, Namespace: name.Namespace, Name: name.Name}
}

// steps are in an order in which no controller can act on half of anything: the
// control plane is held before it says anything, and the Cluster refers to it last.
func (f *filling) steps() []step {
	steps := []step{
		{"Reading " + f.on.Name(), f.look},
		{"Working out the control plane", f.compose},
		{"Asking whether it would replace a Machine", f.judge},
	}
	if !f.o.Apply {
		return append(steps, step{"", f.describe})
	}
	return append(steps,
		step{"Holding the control plane that is there", f.hold},
		step{"Creating the template", f.template},
		step{"Creating or filling the control plane", f.controlPlane},
		step{"Labelling the Machines", f.label},
		step{"Referring the Cluster to its control plane", f.refer},
		step{"Guarding what is labelled", f.install},
	)
}

// compose is pure, see internal/prefill.
func (f *filling) compose(context.Context) (end bool, err error) {
	f.proposal, err = prefill.Compose(f.in)
	if err != nil {
		return true, err
	}
	if optedOut := f.optedOut(); optedOut != nil {
		f.proposal.Findings = append([]finding.Finding{*optedOut}, f.proposal.Findings...)
	}
	return f.stopped(), nil
}

// optedOut: what the user never wants adopted is still worked out, and not written.
func (f *filling) optedOut() *finding.Finding {
	meta := labels.Meta{Annotations: f.in.Cluster.Annotations}
	if !labels.OptedOut(meta) {
		return nil
	}
	found := preflight.OptedOut(f.result.Cluster)
	if !f.o.Apply {
		found.Severity = finding.Notes
	}
	return &found
}

func (f *filling) stopped() bool {
	f.result.Findings = f.proposal.Findings
	finding.Sort(f.result.Findings)
	if !f.proposal.Clean() {
		f.result.Outcome = flow.Findings
	}
	return f.proposal.Stops()
}

func (f *filling) judge(ctx context.Context) (end bool, err error) {
	var machines []*clusterv1.Machine
	for _, m := range f.proposal.Members {
		machines = append(machines, m.Machine)
	}
	verdicts, err := rollout.PredictProposed(ctx, f.o.On, f.in.Cluster, f.proposal.ControlPlane, f.proposal.Template, machines)
	if err != nil {
		return true, err
	}
	f.proposal.Judge(verdicts)
	f.result.JudgedBy = rollout.ClusterAPIVersion
	end = f.stopped()
	f.result.Machines = len(f.proposal.Members)
	f.result.NoRollout = !f.proposal.RollsOut()
	if f.o.Apply && !end && !f.result.NoRollout && !f.o.AllowRollout {
		f.result.Message = "Nothing was written: resolve what is said above, or use --allow-rollout"
		return true, nil
	}
	return end, nil
}

// describe gives what the user may apply: complete, held and marked for adoption.
func (f *filling) describe(context.Context) (end bool, err error) {
	if f.proposal.Template != nil {
		f.result.Objects = append(f.result.Objects, f.proposal.Template)
	}
	kcp, err := f.wanted(labels.Holder{Who: f.by.Who})
	if err != nil {
		return true, err
	}
	f.result.Objects = append(f.result.Objects, kcp)
	f.result.Next = f.next()
	return true, nil
}

func (f *filling) next() []string {
	ns, name := f.o.Cluster.Namespace, f.o.Cluster.Name
	next := []string{"kubectl apply -f FILE"}
	if !f.in.Cluster.Spec.ControlPlaneRef.IsDefined() {
		next = append(next, fmt.Sprintf(`kubectl patch cluster.%s -n %s %s --type=merge -p '{"spec":{"controlPlaneRef":{"apiGroup":%q,"kind":%q,"name":%q}}}'`,
			graph.CoreGroup, ns, name, graph.ControlPlaneGroup, graph.KubeadmControlPlane.Kind, f.in.Name))
	}
	return append(next, fmt.Sprintf("move-hook post -n %s %s", ns, name))
}
