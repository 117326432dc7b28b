package scenario_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/interrupt"
	"github.com/move-hook/move-hook/test/stack"
)

// together is how many trials run at a time: they mostly wait.
const together = 4

// tryTogether has parallel tests run so many at a time, unless the user says
// otherwise. It is called before the tests run.
func tryTogether() {
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		_ = flag.Set("test.parallel", fmt.Sprint(together))
	}
}

func toBeKilled(name string) *stack.ClusterBuilder {
	return named(name).ControlPlane(3).Workers("md-0", 1)
}

// kill is where a move is killed, and what comes then.
type kill struct {
	phase string
	at    interrupt.Point
	then  string // resume or rollback
}

// kills are spread over what a move does, and over both sides. clusterctl creates 30
// objects and patches each, then deletes them: patch 31 on the target is its last
// write, and with delete 31 on the source move-hook cleans up. Only what guards both
// sides is written or not, as other trials run or do not.
func kills() []kill {
	var all []kill
	add := func(then, phase string, side interrupt.Side, verb string, numbers ...int) {
		for _, n := range numbers {
			all = append(all, kill{phase, interrupt.Point{Side: side, N: n, Verb: verb, When: stack.After}, then})
		}
	}
	add("resume", "pre", interrupt.OnSource, "", 1, 4, 6, 9)
	add("resume", "create", interrupt.OnTarget, "create", 2, 11, 21, 30)
	add("resume", "delete", interrupt.OnSource, "delete", 1, 12, 24, 30)
	add("resume", "post", interrupt.OnTarget, "patch", 31, 34, 37, 39)
	add("resume", "post", interrupt.OnSource, "delete", 31)
	add("rollback", "pre", interrupt.OnSource, "", 2, 8)
	add("rollback", "create", interrupt.OnTarget, "create", 6, 26)
	add("rollback", "delete", interrupt.OnSource, "delete", 6, 18, 29)
	add("rollback", "post", interrupt.OnTarget, "patch", 31, 32, 36)
	return all
}

// TestP1P4P5_KilledWhileControllersRun kills `move-hook move` while the controllers
// of both sides run, leaves them alone for a while, and then resumes or rolls back.
func TestP1P4P5_KilledWhileControllersRun(t *testing.T) {
	chosen := kills()
	if !soak() {
		random := interrupt.Seeded(t)
		random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		chosen = chosen[:2]
	}
	seen := bothSides{stack.Must(stack.Watch(t.Context(), world.source))(t), stack.Must(stack.Watch(t.Context(), world.target))(t)}
	defer seen.source.Stop()
	defer seen.target.Stop()
	members := make([]*member, len(chosen))
	for i := range members {
		name := fmt.Sprintf("killed-%d", i)
		if members[i] = fleet[name]; members[i] == nil {
			members[i] = &member{build: toBeKilled(name)}
		}
	}
	points := make([]interrupt.Point, len(chosen))
	for i, k := range chosen {
		points[i] = k.at
	}
	interrupt.Table(t, interrupt.Each(t, points, func(t *testing.T, i int) interrupt.Row {
		if next := i + together; next < len(members) { // most of the time until it is ready is spent waiting
			go members[next].create(context.WithoutCancel(t.Context()))
		}
		return chosen[i].try(t, members[i].ready(t), seen)
	}))
}

type bothSides struct{ source, target *stack.Watcher }

// trial is one Cluster whose move is killed.
type trial struct {
	*interrupt.Trial
	key      client.ObjectKey
	seen     bothSides
	begun    time.Time
	before   interrupt.State
	workload map[string]string
}

func (k kill) try(t *testing.T, key client.ObjectKey, seen bothSides) interrupt.Row {
	t.Helper()
	atRest(t, world.source, key.Namespace)
	tr := &trial{
		Trial: interrupt.Begin(t, world.env.MoveHook, world.source, world.target, key.Namespace), key: key, seen: seen, begun: time.Now(),
		before:   stack.Must(interrupt.StateOf(t.Context(), world.source, key.Namespace))(t),
		workload: workload(t, world.source, key),
	}
	if code := tr.Run(t, &k.at, tr.args("move")...); code != -1 {
		t.Fatalf("move was not killed, it ended with exit code %d", code)
	}
	row := interrupt.Row{Point: fmt.Sprintf("%s of move (%s: %s), then %s", k.at, k.phase, tr.CutAt, k.then)}
	wait(t, 5*time.Second) // in which controllers could do harm
	if row.Result = tr.goOn(t, k.then); t.Failed() {
		row.Result = "not recovered: " + row.Result
	}
	return row
}

func (tr *trial) args(verb string) []string {
	return tr.Args(verb, "--watch-after", "3s", "--timeout", "3m")
}

// goOn runs the program again and judges the end. A rollback may be refused because
// the target has adopted the Cluster: then resume has to work.
func (tr *trial) goOn(t *testing.T, verb string) string {
	t.Helper()
	code := tr.Run(t, nil, tr.args(verb)...)
	if verb == "rollback" && code == 4 && strings.Contains(tr.Said(), "AdoptionFinished") {
		return "refused: AdoptionFinished, then " + tr.goOn(t, "resume")
	}
	if code != 0 {
		t.Errorf("%s ends with exit code %d", verb, code)
		return fmt.Sprintf("exit code %d of %s", code, verb)
	}
	home, other := world.target, world.source
	if verb == "rollback" {
		home, other = other, home
	}
	if err := errors.Join(tr.settles(t, home, other), tr.unharmed(t, home)); err != nil {
		t.Error(err)
		return "the end is another"
	}
	return "recovered"
}

// settles waits until the Cluster is ready at home, and is there what it was on the
// source; the other side has nothing. Controllers write back in their own time what
// a move does not carry.
func (tr *trial) settles(t *testing.T, home, other *stack.Management) error {
	t.Helper()
	if err := stack.WaitReady(t.Context(), home, tr.key); err != nil {
		return err
	}
	wait(t, 5*time.Second) // and see that it stays so
	var err error
	for range 30 {
		unready, e := stack.Unready(t.Context(), home, tr.key)
		if err = e; err == nil && len(unready) > 0 {
			err = fmt.Errorf("%s is no longer ready: %s", tr.key, strings.Join(unready, "; "))
		}
		err = errors.Join(err, interrupt.Same("it is not what it was", tr.before, stack.Must(interrupt.StateOf(t.Context(), home, tr.Namespace))(t)),
			interrupt.Same("something is left on the "+other.Name(), interrupt.State{}, stack.Must(interrupt.StateOf(t.Context(), other, tr.Namespace))(t)))
		if err == nil {
			return nil
		}
		wait(t, time.Second)
	}
	return err
}

// unharmed: nobody but move-hook and its clusterctl made or deleted anything, never
// were both copies unpaused, and the nodes and etcd members are those that were.
func (tr *trial) unharmed(t *testing.T, home *stack.Management) error {
	t.Helper()
	err := errors.Join(tr.seen.source.Err(), tr.seen.target.Err(),
		tr.onlyMoved(tr.seen.source, tr.Source, "source"), tr.onlyMoved(tr.seen.target, tr.Target, "target"))
	for _, both := range stack.BothUnpaused(tr.seen.source, tr.seen.target, 100*time.Millisecond) {
		if strings.HasPrefix(both, tr.key.String()+":") {
			err = errors.Join(err, errors.New("unpaused on both sides: "+both))
		}
	}
	if diff := cmp.Diff(tr.workload, workload(t, home, tr.key)); diff != "" {
		err = errors.Join(err, fmt.Errorf("nodes and etcd members (-before +after):\n%s", diff))
	}
	return err
}

// onlyMoved: what was created or deleted since the trial began was so through the
// proxy, and what was deleted had been marked for the move.
func (tr *trial) onlyMoved(w *stack.Watcher, proxy *stack.APIProxy, side string) (err error) {
	ours := map[string]bool{}
	for _, r := range proxy.Mutating() {
		ours[r.String()] = true
	}
	for _, e := range w.Events() {
		if e.Key.Namespace != tr.Namespace || e.Time.Before(tr.begun) || e.Type != stack.Created && e.Type != stack.Deleted {
			continue
		}
		request := stack.Request{Verb: strings.TrimSuffix(string(e.Type), "d"), Resource: strings.ToLower(e.Kind) + "s", Namespace: e.Key.Namespace, Name: e.Key.Name}
		if !ours[request.String()] || e.Type == stack.Deleted && !e.ForMove {
			err = errors.Join(err, fmt.Errorf("not for the move, on the %s: %s", side, e))
		}
	}
	return err
}

// workload is what the workload cluster has that would be others if Machines were
// replaced: its nodes, and its etcd members by the ID that each has.
func workload(t *testing.T, m *stack.Management, key client.ObjectKey) map[string]string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := m.Client().Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: key.Name + "-kubeconfig"}, secret); err != nil {
		t.Fatal(err)
	}
	config := stack.Must(clientcmd.RESTConfigFromKubeConfig(secret.Data["value"]))(t)
	c := stack.Must(client.New(config, client.Options{Scheme: m.Client().Scheme()}))(t)
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	if err := errors.Join(c.List(t.Context(), nodes), c.List(t.Context(), pods, client.InNamespace("kube-system"))); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, n := range nodes.Items {
		out["Node "+n.Name] = n.CreationTimestamp.String()
	}
	for _, p := range pods.Items {
		out["Pod "+p.Name] = p.CreationTimestamp.String() + " " + p.Annotations["etcd.inmemory.infrastructure.cluster.x-k8s.io/member-id"]
		if _, removed := p.Annotations["etcd.inmemory.infrastructure.cluster.x-k8s.io/member-removed"]; removed {
			out["Pod "+p.Name] += " removed"
		}
	}
	if len(nodes.Items) != 4 || len(out) < 8 {
		t.Fatalf("the workload cluster of %s has not what a 3+1 cluster has: %v", key, out)
	}
	return out
}
