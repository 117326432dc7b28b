package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/stack"
)

// install brings Cluster API to both clusters, and the cloud to the Dev provider.
func (s *suite) install(ctx context.Context) error {
	version, err := s.source.RunClusterctl(ctx, "version", "-o", "short")
	if err != nil {
		return err
	}
	var group errgroup.Group
	for _, m := range []*management{s.source, s.target} {
		group.Go(func() error { return m.install(ctx, strings.TrimSpace(version)) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	host, err := gateway(ctx, s.source.node())
	if err != nil {
		return err
	}
	if s.cloud, err = stack.StartCloud(ctx, stack.CloudOptions{LogDir: filepath.Join(s.dir, "cloud"), Host: host, Progress: os.Stderr}); err != nil {
		return err
	}
	for _, m := range []*management{s.source, s.target} {
		if err := s.cloud.Serve(m.name, m.Kubeconfig()); err != nil {
			return err
		}
	}
	return nil
}

// install installs the providers of one release, as operators do.
func (m *management) install(ctx context.Context, version string) error {
	_, err := m.RunClusterctl(ctx, "init", "--kubeconfig", m.Kubeconfig(), "--wait-providers",
		"--core", "cluster-api:"+version, "--bootstrap", "kubeadm:"+version,
		"--control-plane", "kubeadm:"+version, "--infrastructure", "docker:"+version)
	if err != nil {
		return err
	}
	return m.webhooksOnly(ctx)
}

// elsewhere is a label value that no object has.
const elsewhere = "--watch-filter=the-cloud-of-the-test"

// webhooksOnly has the Dev provider's Pod reconcile nothing: the cloud does. It waits
// until no other Pod of the provider is left.
func (m *management) webhooksOnly(ctx context.Context) error {
	const namespace, name = "capd-system", "capd-controller-manager"
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := fmt.Sprintf(`[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":%q}]`, elsewhere)
	if err := m.client.Patch(ctx, deployment, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
		return fmt.Errorf("leaving the Dev provider of the %s its webhooks only: %w", m.name, err)
	}
	var pods corev1.PodList
	err := wait.PollUntilContextTimeout(ctx, time.Second, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := m.client.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return false, err
		}
		return len(pods.Items) == 1 && servesElsewhere(&pods.Items[0]), nil
	})
	if err != nil {
		return fmt.Errorf("%s/%s of the %s is not the only one and ready (%d Pods): %w", namespace, name, m.name, len(pods.Items), err)
	}
	return nil
}

func servesElsewhere(p *corev1.Pod) bool {
	return slices.Contains(p.Spec.Containers[0].Args, elsewhere) && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// gateway is the address by which Pods in both clusters reach a process on this machine.
func gateway(ctx context.Context, node string) (string, error) {
	var out strings.Builder
	if err := docker(ctx, &out, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.Gateway}}\n{{end}}", node); err != nil {
		return "", err
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	return gatewayOf(strings.Fields(out.String()), own)
}

// gatewayOf chooses the gateway that is this machine; it is not where the engine runs
// in a virtual machine or on another one.
func gatewayOf(gateways []string, own []net.Addr) (string, error) {
	for _, gateway := range gateways {
		if slices.ContainsFunc(own, func(a net.Addr) bool {
			network, ok := a.(*net.IPNet)
			return ok && network.IP.Equal(net.ParseIP(gateway))
		}) {
			return gateway, nil
		}
	}
	return "", fmt.Errorf("no gateway of the kind network (%s) is an address of this machine: the Docker engine must run on it, and not in a virtual machine (Docker Desktop) or elsewhere (DOCKER_HOST)",
		strings.Join(gateways, ", "))
}
