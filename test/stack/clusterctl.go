package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Move runs `clusterctl move` from one management cluster to the other, for
// every Cluster in the namespace, and returns what it printed.
func Move(ctx context.Context, source, target *Management, namespace string) (string, error) {
	return source.RunClusterctl(ctx, "move", "--kubeconfig", source.Kubeconfig(), "--to-kubeconfig", target.Kubeconfig(), "--namespace", namespace)
}

// RunClusterctl runs clusterctl and returns what it printed.
func (m *Management) RunClusterctl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, m.Clusterctl(), args...)
	cmd.Env = append(os.Environ(), ClusterctlEnv()...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("clusterctl %v: %w:\n%s", args, err, out)
	}
	return string(out), nil
}

// ClusterctlEnv keeps clusterctl from looking for a newer release of itself,
// which takes it some eight seconds where it cannot be found.
func ClusterctlEnv() []string { return []string{"CLUSTERCTL_DISABLE_VERSIONCHECK=true"} }
