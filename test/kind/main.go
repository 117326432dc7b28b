// Command kind performs the pivot of the demo on two kind clusters: kubelets and Pods,
// the providers' own images, installed by clusterctl, and post as the Job of
// config/default. It needs Docker, and the network for the images. It exits 1 if
// anything does not hold.
//
// What no container can give is where the workload cluster's machines live: the Dev
// provider keeps them in the memory of its Pod, and after a move the target's Pod
// would know of none. So they live in the stack's cloud, a process outside of both
// management clusters, and the provider's Pods serve their webhooks only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

func main() {
	hook := flag.String("move-hook", "", "path of the move-hook binary")
	image := flag.String("image", "", "image of the Job, which the engine must have; see job/kustomization.yaml")
	job := flag.String("job", "kind/job", "kustomization of the Job")
	after := flag.Duration("watch", time.Minute, "how long Machines are watched after everything is done")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := suite{Teller: scenario.NewTeller(os.Stdout), image: *image, job: *job}
	ok, err := s.run(ctx, *hook, *after)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// suite is one run.
type suite struct {
	*scenario.Teller
	image, job          string
	clusterctl, kubectl string
	dir                 string // kubeconfigs and logs; stays when something fails
	source, target      *management
	cloud               *stack.Cloud
}

func (s *suite) run(ctx context.Context, hook string, after time.Duration) (ok bool, err error) {
	if hook, err = filepath.Abs(hook); err != nil {
		return false, err
	}
	if s.clusterctl, s.kubectl, err = stack.Clients(ctx, os.Stderr); err != nil {
		return false, err
	}
	if s.dir, err = os.MkdirTemp("", "move-hook-kind-"); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.clean(ok)) }()

	s.Title("Two kind clusters")
	if err := s.startClusters(ctx); err != nil {
		return false, err
	}
	s.Title("Cluster API on both, by clusterctl init; one cloud")
	if err := s.install(ctx); err != nil {
		return false, err
	}
	s.Title("A workload cluster on the source: 3 control-plane Machines, 2 workers")
	key, err := stack.Cluster("c1").InNamespace("fleet").ControlPlane(3).Workers("md-0", 2).HealthCheck().Create(ctx, s.source)
	if err != nil {
		return false, err
	}
	if err := stack.WaitReady(ctx, s.source, key); err != nil {
		return false, err
	}
	s.Title("The pivot: pre, clusterctl move, post as a Job, verify")
	env := scenario.Env{Source: s.source, Target: s.target, MoveHook: hook, Clusterctl: s.clusterctl}
	proof, err := scenario.Pivot(ctx, env, key, after, func(ctx context.Context) error { return s.pivot(ctx, env, key) })
	if err != nil {
		return false, err
	}
	return s.Proof(proof, after)
}

// pivot is what an operator does who leaves the adoption to the Job.
func (s *suite) pivot(ctx context.Context, env scenario.Env, key client.ObjectKey) error {
	err := s.Hook(ctx, env, "pre", "--kubeconfig", s.source.Kubeconfig(), "--to-kubeconfig", s.target.Kubeconfig(), "-n", key.Namespace)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "   $ clusterctl move -n %s\n", key.Namespace)
	out, err := stack.Move(ctx, s.source, s.target, key.Namespace)
	if err != nil {
		return err
	}
	fmt.Fprint(s.Out, out)
	fmt.Fprintf(s.Out, "   $ kubectl apply -k %s\n", s.job)
	return s.runJob(ctx)
}
