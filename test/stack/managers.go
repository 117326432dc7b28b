package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/stack/internal/cloudapi"
)

// StartManagers starts the providers' controllers and returns when they and
// their webhooks answer. Start has done so already; this is for after StopManagers.
func (m *Management) StartManagers(ctx context.Context) error {
	if m.options.Bare {
		return errors.New("a bare management cluster has no managers")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.managers) > 0 || m.inCloud {
		return errors.New("the managers run already")
	}
	if err := m.waitAggregated(ctx); err != nil {
		return err
	}
	var group errgroup.Group
	for _, p := range m.providers {
		kubeconfig, err := m.userKubeconfig(p.label(), serviceAccount(p.namespace, p.account))
		if err != nil {
			return err
		}
		if _, _, err := m.ca.writeServing(p.certDir); err != nil {
			return err
		}
		process, err := m.startManager(p, kubeconfig)
		if err != nil {
			return err
		}
		group.Go(func() error {
			return process.waitHealthy(ctx, m.http, "http://"+localAddress(p.healthPort)+"/readyz")
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	// Only now: a webhook that nobody serves would refuse the managers' own writes.
	return m.createWebhooks(ctx)
}

// startManager starts one provider, in a process of its own or in the cloud's.
func (m *Management) startManager(p installed, kubeconfig string) (*process, error) {
	if p.binary == "" {
		err := m.options.Cloud.do(cloudapi.Request{Start: &cloudapi.Start{
			Name: m.key(), Kubeconfig: kubeconfig, HealthAddr: localAddress(p.healthPort), CertDir: p.certDir, Port: p.webhookPort,
		}})
		m.inCloud = err == nil
		return m.options.Cloud.process, err
	}
	process, err := startProcess(command{
		name: p.binary, path: m.tools.path(p.binary), logDir: m.logs.dir,
		env: []string{"POD_NAMESPACE=" + p.namespace, "POD_NAME=" + p.binary, "POD_UID=" + p.binary},
		args: []string{
			"--diagnostics-address=0",
			"--feature-gates=ClusterTopology=true,MachinePool=true",
			"--health-addr=" + localAddress(p.healthPort),
			"--insecure-diagnostics",
			"--kubeconfig=" + kubeconfig,
			// The CRDs have just been installed: there is nothing to migrate.
			"--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields",
			"--webhook-cert-dir=" + p.certDir,
			"--webhook-port=" + strconv.Itoa(p.webhookPort),
		},
	})
	if err == nil {
		m.managers = append(m.managers, process)
	}
	return process, err
}

// key tells this cluster from others in the same cloud, also from one of the
// same name in another process.
func (m *Management) key() string { return fmt.Sprintf("%s-%d-%d", m.name, os.Getpid(), m.server.port) }

func (m *Management) leaveCloud() error {
	m.inCloud = false
	return m.options.Cloud.do(cloudapi.Request{Stop: m.key()})
}

// StopManagers stops the providers' controllers, and takes their webhooks away
// so that objects can be placed meanwhile. The API server, the garbage
// collector and the machines go on. Only the storage version of a kind can be
// read and written until StartManagers: conversion is the managers' work.
func (m *Management) StopManagers(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.deleteWebhooks(ctx); err != nil {
		return err
	}
	if m.inCloud {
		if err := m.leaveCloud(); err != nil {
			return err
		}
	}
	var group errgroup.Group
	for _, p := range m.managers {
		group.Go(func() error {
			p.stop(5 * time.Second)
			return nil
		})
	}
	m.managers = nil
	return group.Wait()
}

func (m *Management) createWebhooks(ctx context.Context) error {
	for _, p := range m.providers {
		if err := m.createAll(ctx, p.webhooks); err != nil {
			return err
		}
	}
	return nil
}

func (m *Management) deleteWebhooks(ctx context.Context) error {
	for _, p := range m.providers {
		for _, w := range p.webhooks {
			if err := m.client.Delete(ctx, w.DeepCopy(), client.GracePeriodSeconds(0)); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}
