package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// ClusterctlUser is a management cluster that a matching clusterctl works with.
type ClusterctlUser interface {
	// Kubeconfig is the path of an administrator's kubeconfig.
	Kubeconfig() string
	// RunClusterctl runs clusterctl and returns what it printed.
	RunClusterctl(ctx context.Context, args ...string) (string, error)
}

// Move runs `clusterctl move` from one management cluster to the other, for
// every Cluster in the namespace, and returns what it printed.
func Move(ctx context.Context, source, target ClusterctlUser, namespace string) (string, error) {
	return source.RunClusterctl(ctx, "move", "--kubeconfig", source.Kubeconfig(), "--to-kubeconfig", target.Kubeconfig(), "--namespace", namespace)
}

// RunClusterctl runs clusterctl and returns what it printed.
func (m *Management) RunClusterctl(ctx context.Context, args ...string) (string, error) {
	return RunClusterctl(ctx, m.Clusterctl(), nil, args...)
}

// RunClusterctl runs the clusterctl at path, with env besides this process's, and
// returns what it printed.
func RunClusterctl(ctx context.Context, path string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(append(os.Environ(), ClusterctlEnv()...), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("clusterctl %v: %w:\n%s", args, err, out)
	}
	return string(out), nil
}

// ClusterctlEnv keeps clusterctl from looking for a newer release of itself,
// which takes it some eight seconds where it cannot be found.
func ClusterctlEnv() []string { return []string{"CLUSTERCTL_DISABLE_VERSIONCHECK=true"} }
