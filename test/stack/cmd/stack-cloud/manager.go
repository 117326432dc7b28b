package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/controllers/remote"
	"sigs.k8s.io/cluster-api/test/infrastructure/container"
	devcontrollers "sigs.k8s.io/cluster-api/test/infrastructure/docker/controllers"
	devwebhooks "sigs.k8s.io/cluster-api/test/infrastructure/docker/webhooks"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/move-hook/move-hook/test/stack/internal/cloudapi"
)

const userAgent = "cluster-api-docker-controller-manager"

// newManager sets up what upstream's main.go of the provider
// (test/infrastructure/docker/main.go) sets up for the Dev kinds, but over the
// shared backend. The Docker kinds and CRD migration are left out.
func (c *cloud) newManager(ctx context.Context, r cloudapi.Start) (ctrl.Manager, error) {
	restConfig, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig)
	if err != nil {
		return nil, err
	}
	restConfig.QPS, restConfig.Burst = 100, 200
	restConfig.UserAgent = remote.DefaultClusterAPIUserAgent(userAgent)

	ofACluster, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	manager, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: c.scheme,
		Controller: config.Controller{
			// Several managers in one process have controllers of the same name.
			SkipNameValidation: ptr.To(true),
			UsePriorityQueue:   ptr.To(true),
		},
		HealthProbeBindAddress:  r.HealthAddr,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		GracefulShutdownTimeout: ptr.To(5 * time.Second),
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Label: labels.NewSelector().Add(*ofACluster)},
		}},
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor:   []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}},
			Unstructured: true,
		}},
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: r.Port, CertDir: r.CertDir}),
	})
	if err != nil {
		return nil, err
	}
	if err := c.addControllers(ctx, manager); err != nil {
		return nil, err
	}
	if r.CertDir == "" {
		return manager, nil
	}
	return manager, addWebhooks(manager)
}

func addWebhooks(manager ctrl.Manager) error {
	if err := manager.AddReadyzCheck("webhook", manager.GetWebhookServer().StartedChecker()); err != nil {
		return err
	}
	for _, w := range []interface{ SetupWebhookWithManager(ctrl.Manager) error }{
		&devwebhooks.DevMachine{}, &devwebhooks.DevMachineTemplate{}, &devwebhooks.DevCluster{}, &devwebhooks.DevClusterTemplate{},
		&devwebhooks.DockerMachine{}, &devwebhooks.DockerMachineTemplate{}, &devwebhooks.DockerCluster{}, &devwebhooks.DockerClusterTemplate{},
	} {
		if err := w.SetupWebhookWithManager(manager); err != nil {
			return err
		}
	}
	return nil
}

func (c *cloud) addControllers(ctx context.Context, manager ctrl.Manager) error {
	secrets, err := client.New(manager.GetConfig(), client.Options{
		HTTPClient: manager.GetHTTPClient(),
		Cache:      &client.CacheOptions{Reader: manager.GetCache()},
	})
	if err != nil {
		return err
	}
	clusters, err := clustercache.SetupWithManager(ctx, manager, clustercache.Options{
		SecretClient: secrets,
		Client: clustercache.ClientOptions{
			QPS: 20, Burst: 30,
			UserAgent: remote.DefaultClusterAPIUserAgent(userAgent),
			Cache:     clustercache.ClientCacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}}},
		},
	}, controller.Options{MaxConcurrentReconciles: 20})
	if err != nil {
		return err
	}
	// The reconcilers ask for a container runtime even where no container is made.
	docker := &container.FakeRuntime{}
	for _, reconciler := range []interface {
		SetupWithManager(context.Context, ctrl.Manager, controller.Options) error
	}{
		&devcontrollers.DevClusterReconciler{
			Client: manager.GetClient(), ContainerRuntime: docker, InMemoryManager: c.machines, APIServerMux: c.apiServers,
		},
		&devcontrollers.DevMachineReconciler{
			Client: manager.GetClient(), ContainerRuntime: docker, InMemoryManager: c.machines, APIServerMux: c.apiServers,
			ClusterCache: clusters,
		},
		&devcontrollers.DevMachineTemplateReconciler{Client: manager.GetClient(), ContainerRuntime: docker},
	} {
		if err := reconciler.SetupWithManager(ctx, manager, controller.Options{MaxConcurrentReconciles: 20}); err != nil {
			return err
		}
	}
	return nil
}
