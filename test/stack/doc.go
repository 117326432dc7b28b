// Package stack starts real management clusters on one machine, without
// containers: etcd, kube-apiserver, kube-controller-manager with the garbage
// collector, the Cluster API managers, and the in-memory Dev provider, whose
// machines live in one cloud outside of every management cluster, as real ones do.
//
// Every program is built once from pinned Go modules and cached; every process
// ends with the one that started it, however that ends.
//
//	source, target, stop, err := stack.Pair(ctx, stack.Options{Progress: os.Stderr})
//	if err != nil { … }
//	defer stop()
//	key, err := stack.Cluster("c1").InNamespace("fleet").ControlPlane(3).Workers("md-0", 2).Create(ctx, source)
//	err = stack.WaitReady(ctx, source, key)
//
// In bare mode there are API servers and CRDs and no controllers.
package stack
