package policy

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/move-hook/move-hook/pkg/graph"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected policies")

var (
	since = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	terms = Terms{
		ControlPlanes: []Resource{kubeadm, {"controlplane.example.com", "talosplanes"}},
		Moved:         []Resource{{"", "configmaps"}, {"", "secrets"}, {graph.CoreGroup, "clusters"}, {graph.CoreGroup, "machines"}},
		Providers:     []string{"capi-kubeadm-control-plane-system", "capi-system"},
	}
)

// TestGolden keeps what is put on a management cluster in files, as kubectl would show it.
func TestGolden(t *testing.T) {
	binding := func(policy string, s Scope) any {
		b, err := Bind(policy, s, "move-hook on host", since, since.Add(24*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, o := range map[string]any{
		"arm-hold":             Hold(terms, since),
		"arm-label":            Pending(terms, since),
		"arm-owners":           Owners(terms, since),
		"arm-hold-all":         binding(HoldName, Scope{}),
		"arm-hold-ns-fleet":    binding(HoldName, Scope{Namespace: "fleet"}),
		"arm-owners-selector":  binding(OwnersName, Scope{Namespace: "fleet", Selector: "team in (a,b),!skip"}),
		"guard":                GuardPolicy(terms),
		"guard-binding":        GuardBinding(),
		"guard-without-others": GuardPolicy(Terms{ControlPlanes: []Resource{kubeadm}}),
	} {
		t.Run(name, func(t *testing.T) {
			have, err := yaml.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".yaml")
			if *rewrite {
				if err := os.WriteFile(file, have, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != string(have) {
				t.Errorf("%s differs (-rewrite rewrites it):\n%s", file, have)
			}
		})
	}
}

// TestMark: another policy leaves another mark, the same leaves the same.
func TestMark(t *testing.T) {
	seen := map[string]bool{}
	more := terms
	more.Providers = append([]string{"a"}, terms.Providers...)
	for _, p := range []*admissionv1.MutatingAdmissionPolicy{Hold(terms, since), Hold(terms, since.Add(time.Second)), Hold(more, since), Pending(terms, since), Owners(terms, since)} {
		key, mark := markOf(p)
		if key != probeMark+p.Name || len(mark) != 12 || seen[mark] {
			t.Errorf("%s: %s=%q", p.Name, key, mark)
		}
		seen[mark] = true
	}
	if _, again := markOf(Hold(terms, since)); !seen[again] {
		t.Errorf("the same policy leaves another mark: %q", again)
	}
}

func TestScope(t *testing.T) {
	for _, test := range []struct {
		Scope
		name, problem string
	}{
		{Scope{}, "all", ""},
		{Scope{Namespace: "fleet"}, "ns-fleet", ""},
		{Scope{Selector: "a=b"}, "sel-5c8788fd89e5", ""},
		{Scope{Selector: "a = b"}, "sel-5c8788fd89e5", ""},
		{Scope{Namespace: "fleet", Selector: "a=b"}, "ns-fleet-sel-5c8788fd89e5", ""},
		{Scope{Selector: "a in (x,y),a!=x,!b,c"}, "", ""},
		{Scope{Selector: "a=x,a=y"}, "", `--selector "a=x,a=y" selects nothing: its parts contradict each other`},
		{Scope{Selector: "a in"}, "", `--selector "a in" is no label selector: unable to parse requirement: found '' expected: '('`},
	} {
		problem := ""
		if err := test.Validate(); err != nil {
			problem = err.Error()
		}
		if problem != test.problem {
			t.Errorf("%s: %s; want %s", test.Scope, problem, test.problem)
		}
		if test.name != "" {
			if name, err := test.Name(); err != nil || name != test.name {
				t.Errorf("%s is called %s, %v; want %s", test.Scope, name, err, test.name)
			}
		}
	}
}

func TestControlPlaneKinds(t *testing.T) {
	for gk, want := range map[graph.GroupKind]bool{
		graph.KubeadmControlPlane: true,
		{Group: graph.ControlPlaneGroup, Kind: "KubeadmControlPlaneTemplate"}: false,
		{Group: graph.ControlPlaneGroup, Kind: "RKE2ControlPlane"}:            true,
		{Group: "controlplane.example.com", Kind: "Plane"}:                    true,
		{Group: "hosted.example.com", Kind: "HostedControlPlane"}:             true,
		graph.Machine: false,
	} {
		if isControlPlane(gk) != want {
			t.Errorf("%s: %t", gk, !want)
		}
	}
}

func TestNotes_NameUnknownProviders(t *testing.T) {
	if n := notes(terms); len(n) != 1 || n[0] != "talosplanes.controlplane.example.com: move-hook does not know its provider: check that it honours cluster.x-k8s.io/paused on the object itself" {
		t.Errorf("%q", n)
	}
}
