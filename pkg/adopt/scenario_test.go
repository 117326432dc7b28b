package adopt

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// TestScenarios runs testdata/*.txt. A file is one story on one target, told in
// commands; after each of them the invariants of every plan are checked.
//
//	sample [cp=3] [md-1=2,…] […]   what stands on the source; prints nothing
//	record [file] [stateless]      the sample's record is made; as a ConfigMap it arrives with "arrive record";
//	                               stateless: from manifests without status
//	arrive [owners=none|stale|live|held] [held] [pending] [status] [only=KIND/NAME,…] [except=…]
//	                               objects of the sample; with YAML below, that instead; "arrive record"
//	change KIND/NAME               merges the YAML below into an object, null deletes
//	delete KIND/NAME [finalizer]   with a finalizer it is only being deleted
//	tick 5s                        time passes
//	providers down|up              move-hook has scaled the controllers to zero, or back
//	policy, named, other, unlisted, rollout, partial: what else a State knows
//	upstream [provider=v1]         why upstream cannot be asked (the input), and what is installed
//	asks                           prints the Machines that upstream has to be asked about
//	explain                        prints every check with what was compared
//	decide                         prints the plan of now
//	run                            passes until nothing is written; killed after every write, with the same end
//	controllers                    upstream's controllers act once; prints what they did
//	show KIND/NAME                 prints owners, our labels and annotations
//	verify [rules]                 prints the findings
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		s := &story{memory: newMemory()}
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			out := s.command(t, d)
			invariants(t, s.memory)
			return s.plainUIDs(out)
		})
	})
}

type story struct {
	*memory
	sample []content
}

func (s *story) command(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "sample":
		s.sample = drawSample(t, d).objects()
		return fmt.Sprintf("%d objects", len(s.sample))
	case "record":
		objects := s.sample
		if d.HasArg("stateless") {
			objects = nil
			for _, o := range s.sample {
				o = clone(o)
				delete(o, "status")
				objects = append(objects, o)
			}
		}
		s.record = snapshotOf(s.cluster, objects)
		s.fromFile = d.HasArg("file")
		return fmt.Sprintf("%d nodes", len(s.record.Nodes))
	case "arrive":
		return s.arrive(t, d)
	case "change":
		s.change(t, find(t, s.memory, d.CmdArgs[0].Key), d.Input)
	case "delete":
		id := find(t, s.memory, d.CmdArgs[0].Key)
		if d.HasArg("finalizer") {
			o := clone(s.objects[id])
			metaOf(o)["deletionTimestamp"] = s.now.Format(time.RFC3339)
			s.store(id, o)
		} else {
			s.remove(id)
		}
	case "tick":
		s.tick(duration(t, d.CmdArgs[0].Key))
	case "policy":
		s.setPolicy(t, d)
	case "named":
		s.named = true
	case "providers":
		s.down = d.HasArg("down")
	case "other":
		s.other = OtherSide(d.CmdArgs[0].Key)
	case "unlisted":
		s.unlisted = map[graph.GroupKind]bool{}
		for _, a := range d.CmdArgs {
			s.unlisted[kindNamed(t, a.Key).GroupKind] = true
		}
	case "partial":
		s.partial = nil
		if d.Input != "" {
			s.partial = []Missing{{Object: graph.ID{Kind: "ConfigMap", Namespace: "default", Name: "move-hook-record-c1-2"}, What: strings.TrimSpace(d.Input), Maker: byPre}}
		}
	case "rollout":
		id := find(t, s.memory, d.CmdArgs[0].Key)
		s.rollout[id] = rolloutOf(d.Input)
	case "upstream":
		s.rolloutUnknown, s.providerVersion = strings.TrimSpace(d.Input), ""
		if d.HasArg("provider") {
			s.providerVersion = d.CmdArgs[0].Vals[0]
		}
	case "asks":
		var lines []string
		for _, id := range AsksRollout(s.state()) {
			lines = append(lines, id.String())
		}
		return cmpOr(strings.Join(lines, "\n"), "nothing")
	case "explain":
		return explained(Explain(s.state()))
	case "decide":
		return Decide(s.state()).String()
	case "run":
		return s.run(t)
	case "controllers":
		return cmpOr(strings.Join(s.controllers(), "\n"), "nothing")
	case "show":
		return s.show(find(t, s.memory, d.CmdArgs[0].Key))
	case "events":
		var lines []string
		for _, e := range s.events {
			lines = append(lines, fmt.Sprintf("%s on %s: %s", e.Reason, e.On.ID, e.Message))
		}
		s.events = nil
		return cmpOr(strings.Join(slices.Compact(lines), "\n"), "none")
	case "verify":
		return s.verify(d.HasArg("rules"))
	case "table":
		return table(t)
	case "reset":
		*s = story{memory: newMemory(), sample: s.sample}
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	return "ok"
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func drawSample(t *testing.T, d *datadriven.TestData) sample {
	t.Helper()
	s := sample{name: "c1"}
	for _, a := range d.CmdArgs {
		number := func(i int) int {
			n, err := strconv.Atoi(a.Vals[i])
			if err != nil {
				d.Fatalf(t, "%s: %v", a.Key, err)
			}
			return n
		}
		switch a.Key {
		case "cp":
			s.controlPlane = number(0)
		case "stand-alone":
			s.standAlone = number(0)
		case "mhc":
			s.healthCheck = true
		case "topology":
			s.topology = true
		case "user-paused":
			s.userPaused = a.Vals[0]
		case "external-etcd":
			s.externalEtcd = true
		case "own-certificates":
			s.ownCertificates = true
		case "overlapping", "unnamed":
			for i := range s.workers {
				s.workers[i].selector = map[string]string{graph.ClusterNameLabel: "c1"}
				s.workers[i].unnamed = a.Key == "unnamed"
			}
		default:
			s.workers = append(s.workers, workers{name: a.Key, replicas: number(0)})
		}
	}
	return s
}

// each reads the YAML documents of a command.
func each(t *testing.T, input string) []content {
	t.Helper()
	var out []content
	for doc := range strings.SplitSeq(input, "\n---\n") {
		var o content
		if err := yaml.UnmarshalStrict([]byte(doc), &o); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		out = append(out, o)
	}
	return out
}

func (s *story) arrive(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if d.Input != "" {
		for _, o := range each(t, d.Input) {
			s.create(o)
		}
		return "ok"
	}
	if d.HasArg("record") {
		s.create(recordMap("c1"))
		return "ok"
	}
	a := arrival{owners: "live", held: d.HasArg("held"), pending: d.HasArg("pending"), status: d.HasArg("status")}
	var only, except []string
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "owners":
			a.owners = arg.Vals[0]
		case "only":
			only = arg.Vals
		case "except":
			except = arg.Vals
		}
	}
	n := 0
	for _, o := range s.sample {
		name := fmt.Sprintf("%s/%s", o["kind"], metaOf(o)["name"])
		if (len(only) > 0 && !matches(t, only, name)) || matches(t, except, name) {
			continue
		}
		s.create(a.carried(o))
		n++
	}
	return fmt.Sprintf("%d objects", n)
}

func matches(t *testing.T, patterns []string, name string) bool {
	t.Helper()
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	})
}

func find(t *testing.T, w *memory, name string) graph.ID {
	t.Helper()
	for _, id := range w.ids() {
		if id.Kind+"/"+id.Name == name {
			return id
		}
	}
	t.Fatalf("there is no %s", name)
	return graph.ID{}
}

func kindNamed(t *testing.T, kind string) graph.KindInfo {
	t.Helper()
	for _, k := range allKinds() {
		if k.Kind == kind {
			return k
		}
	}
	t.Fatalf("there is no kind %s", kind)
	return graph.KindInfo{}
}

func (s *story) change(t *testing.T, id graph.ID, input string) {
	t.Helper()
	o := clone(s.objects[id])
	for _, patch := range each(t, input) {
		merge(o, patch)
	}
	s.store(id, clone(o))
}

// merge is a JSON merge patch.
func merge(o, patch content) {
	for k, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(o, k)
		case content:
			inner, ok := o[k].(content)
			if !ok {
				inner = content{}
				o[k] = inner
			}
			merge(inner, v)
		default:
			o[k] = v
		}
	}
}

func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (s *story) setPolicy(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	s.policy = newMemory().policy
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "allow-scale":
			s.policy.AllowScale = true
		case "allow-rollout":
			s.policy.AllowRollout = true
		case "prune-dangling":
			s.policy.PruneDangling = true
		case "max-version-skew":
			s.policy.MaxVersionSkew, _ = strconv.Atoi(a.Vals[0])
		case "settle":
			s.policy.Settle = duration(t, a.Vals[0])
		case "watch-after":
			s.policy.WatchAfter = duration(t, a.Vals[0])
		}
	}
}

// run settles, and checks that a process killed after any of the writes, and
// started again, comes to the same end.
func (s *story) run(t *testing.T) string {
	t.Helper()
	start := s.clone()
	s.writes = nil
	p, err := s.settle()
	if err != nil {
		return "error: " + err.Error()
	}
	n := len(s.writes)
	for k := range n {
		w := start.clone()
		w.killAt = k + 1
		if _, err := w.settle(); err != nil {
			t.Errorf("killed after write %d: %v", k+1, err)
		}
		if diff := cmp.Diff(s.image(), w.image()); diff != "" {
			t.Errorf("killed after write %d of %v, another end (-whole +killed):\n%s", k+1, s.writes, diff)
		}
	}
	return fmt.Sprintf("%d writes, %d kill points agree\n%s", n, n, p)
}

func (s *story) show(id graph.ID) string {
	o, ok := s.graph().Object(id)
	if !ok {
		return "not visible"
	}
	lines := []string{"owners: " + ownersString(o.Owners)}
	for _, r := range o.Owners {
		if k := kindNamedOr(r.Kind); k != r.APIVersion {
			lines = append(lines, fmt.Sprintf("  %s/%s by %s", r.Kind, r.Name, r.APIVersion))
		}
	}
	for _, m := range []map[string]string{o.Labels, o.Annotations} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if strings.HasPrefix(k, "pivot.") || k == graph.PausedAnnotation {
				lines = append(lines, fmt.Sprintf("%s: %q", k, m[k]))
			}
		}
	}
	return strings.Join(lines, "\n")
}

func kindNamedOr(kind string) string { return apiVersionOf(kind) }

func (s *story) verify(rules bool) string {
	var fs []finding.Finding
	if rules || s.record == nil {
		fs = VerifyByRules(s.cluster, s.graph(), VerifyOptions{Other: s.other})
	} else {
		fs = Verify(*s.record, s.graph(), VerifyOptions{Other: s.other})
	}
	var lines []string
	for _, f := range fs {
		lines = append(lines, fmt.Sprintf("%s %s", f.Severity, f))
	}
	return cmpOr(strings.Join(lines, "\n"), "no findings")
}

// plainUIDs prints the UIDs of this copy as "new", and of the source's as "old".
func (s *story) plainUIDs(out string) string {
	for _, side := range []string{"new", "old"} {
		parts := strings.Split(out, side+":")
		for i := 1; i < len(parts); i++ {
			parts[i] = side + strings.TrimLeftFunc(parts[i], func(r rune) bool { return !strings.ContainsRune(" ,);\n", r) })
		}
		out = strings.Join(parts, "")
	}
	return out
}

// rolloutOf reads a verdict: one reason a line, "field have want message".
func rolloutOf(input string) Rollout {
	r := Rollout{Version: "v1.14.2"}
	for line := range strings.Lines(input) {
		if f := strings.SplitN(strings.TrimSpace(line), " ", 4); len(f) == 4 {
			r.Reasons = append(r.Reasons, RolloutReason{Field: f[0], Have: f[1], Want: f[2], Message: f[3]})
		}
	}
	r.UpToDate = len(r.Reasons) == 0
	return r
}

func explained(checks []Check) string {
	var b strings.Builder
	for _, c := range checks {
		fmt.Fprintf(&b, "%s: %s\n", c.Verdict, c.Name)
		for _, line := range c.Compared {
			fmt.Fprintf(&b, "  %s\n", line)
		}
		for _, f := range c.Findings {
			fmt.Fprintf(&b, "  ! %s\n", f.ID)
		}
	}
	return cmpOr(strings.TrimSuffix(b.String(), "\n"), "nothing to ask yet")
}
