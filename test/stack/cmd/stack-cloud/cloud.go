package main

import (
	"context"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1beta1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta1" //nolint:staticcheck // The CRDs serve it, so the webhooks must convert it.
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	cloudv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	inmemoryruntime "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime"
	inmemoryserver "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/move-hook/move-hook/test/stack/internal/cloudapi"
)

// cloud is the backend and the management clusters that use it.
type cloud struct {
	machines   inmemoryruntime.Manager
	apiServers *inmemoryserver.WorkloadClustersMux
	scheme     *runtime.Scheme // of the management clusters
	running    map[string]*controllers
}

// controllers of the Dev provider for one management cluster.
type controllers struct {
	stop context.CancelFunc
	done chan struct{}
}

func newCloud(ctx context.Context, host string, firstPort, lastPort int32) (*cloud, error) {
	backend, err := newScheme(cloudv1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme,
		storagev1.AddToScheme, apiextensionsv1.AddToScheme, policyv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	management, err := newScheme(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, infrav1beta1.AddToScheme,
		infrav1.AddToScheme, clusterv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	c := &cloud{machines: inmemoryruntime.NewManager(backend), scheme: management, running: map[string]*controllers{}}
	if err := c.machines.Start(ctx); err != nil {
		return nil, err
	}
	c.apiServers, err = inmemoryserver.NewWorkloadClustersMux(c.machines, host,
		inmemoryserver.CustomPorts{MinPort: firstPort, MaxPort: lastPort, DebugPort: firstPort - 1})
	return c, err
}

func newScheme(add ...func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, f := range add {
		if err := f(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

func (c *cloud) do(ctx context.Context, request cloudapi.Request) error {
	if request.Start != nil {
		return c.start(ctx, *request.Start)
	}
	return c.stop(request.Stop)
}

func (c *cloud) start(ctx context.Context, r cloudapi.Start) error {
	if _, ok := c.running[r.Name]; ok {
		return fmt.Errorf("the controllers for %s run already", r.Name)
	}
	ctx, cancel := context.WithCancel(ctx)
	manager, err := c.newManager(ctx, r)
	if err != nil {
		cancel()
		return err
	}
	run := &controllers{stop: cancel, done: make(chan struct{})}
	c.running[r.Name] = run
	go func() {
		defer close(run.done)
		err := manager.Start(ctx)
		if err != nil && ctx.Err() == nil {
			// Like a Pod: die loudly, and let the stack report the log.
			klog.ErrorS(err, "The controllers ended", "managementCluster", r.Name)
			os.Exit(1)
		}
	}()
	return nil
}

func (c *cloud) stop(name string) error {
	run, ok := c.running[name]
	if !ok {
		return fmt.Errorf("no controllers run for %s", name)
	}
	run.stop()
	<-run.done
	delete(c.running, name)
	return nil
}
