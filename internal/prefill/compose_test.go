package prefill

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

// TestScenarios runs the files in testdata. `given` sets the objects, `and` adds or
// replaces some, `without KIND NAME` takes one away, `compose` prints the proposal and
// `judge` what it comes to with upstream's verdicts: a line a Machine and reason.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var objects []*unstructured.Unstructured
		external := false
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "given":
				objects, external = nil, d.HasArg("external-etcd")
				objects = with(t, nil, d.Input)
				return ""
			case "and":
				objects = with(t, objects, d.Input)
				return ""
			case "without":
				objects = lacking(objects, d.CmdArgs[0].Key, d.CmdArgs[1].Key)
				return ""
			case "compose", "findings":
				return printed(compose(t, objects, external), d.Cmd == "findings")
			case "judge":
				p := compose(t, objects, external)
				p.Judge(verdicts(p, d.Input))
				return printed(p, true) + fmt.Sprintf("rolls out: %t\n", p.RollsOut())
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

func with(t *testing.T, objects []*unstructured.Unstructured, text string) []*unstructured.Unstructured {
	t.Helper()
	for doc := range strings.SplitSeq(text, "---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		u.SetNamespace("fleet")
		objects = append(lacking(objects, u.GetKind(), u.GetName()), u)
	}
	return objects
}

func lacking(objects []*unstructured.Unstructured, kind, name string) []*unstructured.Unstructured {
	var left []*unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() != kind || o.GetName() != name {
			left = append(left, o)
		}
	}
	return left
}

func compose(t *testing.T, objects []*unstructured.Unstructured, external bool) Proposal {
	t.Helper()
	in := Input{Name: "c1-control-plane", ExternalEtcd: external, TemplateAPIVersion: "infrastructure.cluster.x-k8s.io/v1"}
	find := func(kind, name string) *unstructured.Unstructured {
		for _, o := range objects {
			if o.GetKind() == kind && o.GetName() == name {
				return o
			}
		}
		return nil
	}
	for _, o := range objects {
		switch kind := o.GetKind(); {
		case kind == "Cluster":
			in.Cluster = read(t, o, &clusterv1.Cluster{})
		case kind == "KubeadmControlPlane":
			in.Existing = read(t, o, &controlplanev1.KubeadmControlPlane{})
			in.Name = o.GetName()
		case kind == "Machine":
			m := Member{Machine: read(t, o, &clusterv1.Machine{})}
			if c := find("KubeadmConfig", m.Machine.Spec.Bootstrap.ConfigRef.Name); c != nil {
				m.Config = read(t, c, &bootstrapv1.KubeadmConfig{})
			}
			m.Infra = find(m.Machine.Spec.InfrastructureRef.Kind, m.Machine.Spec.InfrastructureRef.Name)
			in.Members = append(in.Members, m)
		case strings.HasSuffix(kind, "Template"):
			in.Templates = append(in.Templates, *o)
		}
	}
	p, err := Compose(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func read[T any](t *testing.T, u *unstructured.Unstructured, into T) T {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, into, true); err != nil {
		t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
	}
	return into
}

// verdicts: "NAME ok" or "NAME reason", one a line.
func verdicts(p Proposal, input string) map[graph.ID]adopt.Rollout {
	out := map[graph.ID]adopt.Rollout{}
	for line := range strings.Lines(input) {
		name, why, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, m := range p.Members {
			if m.Machine.Name == name {
				out[m.id()] = verdict(why)
			}
		}
	}
	return out
}

func verdict(why string) adopt.Rollout {
	if why == "ok" {
		return adopt.Rollout{UpToDate: true}
	}
	return adopt.Rollout{Reasons: []adopt.RolloutReason{{Message: why}}}
}

func printed(p Proposal, findingsOnly bool) string {
	var b strings.Builder
	if !findingsOnly && p.ControlPlane != nil {
		text, _ := yaml.Marshal(p.ControlPlane.Spec)
		fmt.Fprintf(&b, "KubeadmControlPlane %s/%s\n%s", p.ControlPlane.Namespace, p.ControlPlane.Name, indent(text))
		if p.Existing {
			text, _ := yaml.Marshal(p.Additions)
			fmt.Fprintf(&b, "adds\n%s", indent(text))
		}
	}
	if !findingsOnly && p.Template != nil {
		text, _ := yaml.Marshal(p.Template.Object["spec"])
		fmt.Fprintf(&b, "%s %s/%s\n%s", p.Template.GetKind(), p.Template.GetNamespace(), p.Template.GetName(), indent(text))
	}
	for _, f := range p.Findings {
		fmt.Fprintf(&b, "%s  %s\n", f.Severity, f)
	}
	return b.String()
}

func indent(text []byte) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(string(text), "\n"), "\n", "\n  ") + "\n"
}
