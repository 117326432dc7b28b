// Package rollout asks upstream whether a KubeadmControlPlane would replace its
// Machines: the verdict is KCP's own UpToDate (controlplane/kubeadm/pkg), compiled
// in at the version that ClusterAPIVersion names. It is the only importer of that
// package. It reads and never writes, and reads no Secret.
//
// What upstream judges by an annotation or a status that a move loses is looked up
// where upstream's controllers will take it from again, so that the verdict is the
// one of a control plane that has settled.
package rollout
