package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	kindexec "sigs.k8s.io/kind/pkg/exec"

	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

// management is a kind cluster, as scenarios need it.
type management struct {
	name       string
	dir        string
	clusterctl string
	provider   *cluster.Provider
	config     *rest.Config
	client     client.WithWatch
}

var _ scenario.Management = (*management)(nil)

func (m *management) Name() string             { return m.name }
func (m *management) RESTConfig() *rest.Config { return rest.CopyConfig(m.config) }
func (m *management) Client() client.WithWatch { return m.client }
func (m *management) Kubeconfig() string       { return filepath.Join(m.dir, m.name+".kubeconfig") }

// LogDir is where the logs are put when something has failed.
func (m *management) LogDir() string { return filepath.Join(m.dir, m.name) }

// RunClusterctl has the experimental parts on that the stack has on.
func (m *management) RunClusterctl(ctx context.Context, args ...string) (string, error) {
	return stack.RunClusterctl(ctx, m.clusterctl, []string{"CLUSTER_TOPOLOGY=true", "EXP_MACHINE_POOL=true"}, args...)
}

// cluster is its name among the machine's kind clusters.
func (m *management) cluster() string { return "move-hook-" + m.name }

// node is the container that all of the cluster is in.
func (m *management) node() string { return m.cluster() + "-control-plane" }

// startClusters starts source and target side by side.
func (s *suite) startClusters(ctx context.Context) error {
	provider := cluster.NewProvider(cluster.ProviderWithDocker())
	there, err := provider.List()
	if err != nil {
		return explained(err)
	}
	both := []*management{{name: "source"}, {name: "target"}}
	for _, m := range both {
		m.dir, m.clusterctl, m.provider = s.dir, s.clusterctl, provider
		if slices.Contains(there, m.cluster()) {
			// Another run may be using it.
			return fmt.Errorf("kind cluster %s is there already: remove it with `docker rm -f -v %s`", m.cluster(), m.node())
		}
	}
	s.source, s.target = both[0], both[1] // from here on they are ours to remove
	var group errgroup.Group
	for _, m := range both {
		group.Go(m.start)
	}
	if err := errors.Join(group.Wait(), ctx.Err()); err != nil {
		return err
	}
	return s.target.load(ctx, s.image)
}

func (m *management) start() (err error) {
	options := []cluster.CreateOption{
		cluster.CreateWithKubeconfigPath(m.Kubeconfig()),
		cluster.CreateWithRetain(true), // for its logs; clean removes it
	}
	if image := os.Getenv("KIND_NODE_IMAGE"); image != "" {
		options = append(options, cluster.CreateWithNodeImage(image))
	}
	if err := m.provider.Create(m.cluster(), options...); err != nil {
		return fmt.Errorf("creating kind cluster %s: %w", m.cluster(), explained(err))
	}
	m.config, m.client, err = stack.Connect(m.Kubeconfig())
	return err
}

// load puts an image of the engine on the node.
func (m *management) load(ctx context.Context, image string) error {
	path := filepath.Join(m.dir, "image.tar")
	if err := docker(ctx, nil, "save", "--output", path, image); err != nil {
		return err
	}
	nodes, err := m.provider.ListInternalNodes(m.cluster())
	if err != nil {
		return explained(err)
	}
	for _, node := range nodes {
		archive, err := os.Open(path)
		if err != nil {
			return err
		}
		err = nodeutils.LoadImageArchive(node, archive)
		if err := errors.Join(err, archive.Close()); err != nil {
			return fmt.Errorf("loading %s into %s: %w", image, node, explained(err))
		}
	}
	return os.Remove(path)
}

// clean removes what was started; where something failed it takes the logs first.
func (s *suite) clean(ok bool) error {
	if s.cloud != nil {
		s.cloud.Stop() // before the API servers that its controllers talk to
	}
	var errs []error
	for _, m := range []*management{s.source, s.target} {
		if m == nil {
			continue
		}
		if !ok {
			errs = append(errs, explained(m.provider.CollectLogs(m.cluster(), m.LogDir())))
		}
		errs = append(errs, explained(m.provider.Delete(m.cluster(), m.Kubeconfig())))
	}
	if ok || s.source == nil { // there is nothing to be read in it
		return errors.Join(append(errs, os.RemoveAll(s.dir))...)
	}
	fmt.Fprintf(s.Out, "\nlogs: %s\n", s.dir)
	return errors.Join(errs...)
}

// explained adds what the program said whose end kind reports.
func explained(err error) error {
	if run := kindexec.RunErrorForError(err); run != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(run.Output)))
	}
	return err
}

// docker runs docker, its output into out.
func docker(ctx context.Context, out *strings.Builder, args ...string) error {
	var errs strings.Builder
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Stderr = &errs
	if out != nil {
		cmd.Stdout = out
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return nil
}
