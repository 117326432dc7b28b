package scenario_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

// world is the pair of management clusters that all tests of this package share,
// each test with a namespace of its own.
var world struct {
	source, target *stack.Management
	env            scenario.Env
	dir            string // removed at the end
}

// fleet are the workload clusters that tests ask for by name. They are all begun
// at the start, because most of the time until they are ready is spent waiting.
var fleet = map[string]*member{
	"wrapped": {build: named("wrapped").ControlPlane(3).Workers("md-0", 2).HealthCheck().UserCertificates().ResourceSet("crs").Movable("extra")},
	"early":   {build: named("early").ControlPlane(1).Workers("md-0", 2)},
	"restore": {build: named("restore").ControlPlane(1).Workers("md-0", 2).HealthCheck()},
	"overlap": {build: named("overlap").ControlPlane(1).Workers("md-0", 1).Workers("md-1", 2).OverlappingSelectors()},
	"classy":  {build: named("classy").OfClass("classes", "quick").ControlPlane(1).Workers("md-0", 1)},
	"harmed":  {build: named("harmed").ControlPlane(1).Workers("md-0", 2)},
	"folder":  {build: named("folder").ControlPlane(1).Workers("md-0", 1)},
	"outside": {build: named("outside").ControlPlane(1).Workers("md-0", 1).HealthCheck().ExternalEtcd().ResourceSet("crs")},
	"twins":   {build: named("twins").ControlPlane(1).Workers("md-0", 1)},
	"late":    {build: named("late").InNamespace("twins").ControlPlane(1)},
	"lonely":  {build: named("lonely").StandAloneControlPlane(3)},
	"later":   {build: named("later").StandAloneControlPlane(1)},
	"alone":   {build: named("alone").StandAloneControlPlane(3)},
	// Those at which move-hook is killed; a soak has more.
	"killed-0": {build: toBeKilled("killed-0")},
	"killed-1": {build: toBeKilled("killed-1")},
}

func named(name string) *stack.ClusterBuilder { return stack.Cluster(name).InNamespace(name) }

type member struct {
	build *stack.ClusterBuilder
	once  sync.Once
	err   error
}

func (m *member) create(ctx context.Context) error {
	m.once.Do(func() { _, m.err = m.build.Create(ctx, world.source) })
	return m.err
}

// ready waits until a workload cluster of the fleet is.
func ready(t *testing.T, name string) client.ObjectKey {
	t.Helper()
	return fleet[name].ready(t)
}

func (m *member) ready(t *testing.T) client.ObjectKey {
	t.Helper()
	if err := m.create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := stack.WaitReady(t.Context(), world.source, m.build.Key()); err != nil {
		t.Fatal(err)
	}
	return m.build.Key()
}

func TestMain(m *testing.M) {
	flag.Parse()
	tryTogether()
	ctrl.SetLogger(logr.Discard()) // of the clusterctl library, which is asked for the owner graph
	os.Exit(scenario.WithMoveHook(context.Background(), func(hook string) (int, error) { return run(m, hook) }))
}

func run(m *testing.M, hook string) (int, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	source, target, stop, err := stack.Pair(ctx, stack.Options{Progress: os.Stderr})
	if err != nil {
		return 1, err
	}
	defer stop()
	world.source, world.target, world.dir = source, target, filepath.Dir(hook)
	world.env = scenario.Env{Source: source, Target: target, MoveHook: hook, Clusterctl: source.Clusterctl()}
	if err := source.Create(ctx, stack.Class("classes", "quick")...); err != nil {
		return 1, err
	}
	if flag.Lookup("test.run").Value.String() == "" {
		for _, m := range fleet {
			go m.create(ctx) // whoever asks for the cluster gets the error
		}
	}
	code := m.Run()
	if code != 0 {
		source.KeepLogs()
		target.KeepLogs()
		fmt.Fprintf(os.Stderr, "logs of the source: %s\nlogs of the target: %s\n", source.LogDir(), target.LogDir())
	}
	return code, nil
}

// soak says whether a long series is to run whole (make soak) or as a sample.
func soak() bool { return os.Getenv("MOVE_HOOK_SOAK") != "" }

// hook runs move-hook and demands an exit code.
func hook(t *testing.T, code int, args ...string) scenario.Run {
	t.Helper()
	r, err := world.env.Hook(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	if r.Code != code {
		t.Fatalf("want exit code %d\n%s", code, r)
	}
	return r
}
