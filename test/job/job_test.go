package job_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apply is what the README tells an operator to do; dry runs are the server's.
func apply(t *testing.T, name string, args ...string) {
	t.Helper()
	args = append([]string{"--kubeconfig", world.Kubeconfig(), "apply", "--server-side", "-k", filepath.Join("..", "..", "config", name)}, args...)
	if out, err := exec.CommandContext(t.Context(), world.Kubectl(), args...).CombinedOutput(); err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
}

// becomes waits until something is so.
func becomes(t *testing.T, what string, so func(ctx context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, so); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// running are the pods of a Job that have not ended.
func running(ctx context.Context, job string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := world.Client().List(ctx, list, client.InNamespace(systemNamespace), client.MatchingLabels{batchv1.JobNameLabel: job})
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
	}), err
}

// only waits for the only pod of a Job.
func only(t *testing.T, job string) *corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	becomes(t, job+" to have a pod", func(ctx context.Context) (_ bool, err error) {
		pods, err = running(ctx, job)
		return len(pods) == 1, err
	})
	return &pods[0]
}

// ends plays kubelet: the container of a pod has ended so.
func ends(t *testing.T, p *corev1.Pod, code int, message string) {
	t.Helper()
	now, before := metav1.Now(), p.DeepCopy()
	p.Status.Phase = corev1.PodFailed
	if code == 0 {
		p.Status.Phase = corev1.PodSucceeded
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(code), Message: message, StartedAt: now, FinishedAt: now}}}}
	if err := world.Client().Status().Patch(t.Context(), p, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func job(ctx context.Context) (*batchv1.Job, error) {
	j := &batchv1.Job{}
	return j, world.Client().Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: "move-hook-post"}, j)
}

// failed is why the Job was given up, empty while it was not.
func failed(j *batchv1.Job) string {
	for _, c := range j.Status.Conditions {
		if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}

// TestJob_IsAdmittedAndItsExitCodesMeanWhatTheyMean has the real Job controller make
// the pods, in a namespace with Pod Security `restricted`.
func TestJob_IsAdmittedAndItsExitCodesMeanWhatTheyMean(t *testing.T) {
	apply(t, "default")
	for _, code := range []int{3, 5} {
		ends(t, only(t, "move-hook-post"), code, "")
	}
	// That there is another is what the codes before mean.
	ends(t, only(t, "move-hook-post"), 4, "")
	becomes(t, "the Job to be given up after exit code 4", func(ctx context.Context) (bool, error) {
		j, err := job(ctx)
		return failed(j) != "", err
	})
	j, err := job(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if failed(j) != batchv1.JobReasonPodFailurePolicy || j.Status.Failed != 3 {
		t.Errorf("the Job failed for %s after %d pods", failed(j), j.Status.Failed)
	}

	// What the ServiceAccount may do is what the parts of its ClusterRole say.
	want := rights(t, "default")
	becomes(t, "the ClusterRole to be put together", func(ctx context.Context) (bool, error) {
		role := &rbacv1.ClusterRole{}
		err := world.Client().Get(ctx, client.ObjectKey{Name: "move-hook-post"}, role)
		return len(role.Rules) == len(want) && !slices.ContainsFunc(want, func(r rbacv1.PolicyRule) bool {
			return !slices.ContainsFunc(role.Rules, func(have rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(have, r) })
		}), err
	})
}

// TestConfig_IsTakenByTheServer offers every kustomization, and what its pods would be.
func TestConfig_IsTakenByTheServer(t *testing.T) {
	apply(t, "rbac") // the namespace, with its Pod Security
	for _, name := range []string{"default", "fleet", "watch", "owner-enforcement", "scaled-down"} {
		t.Run(name, func(t *testing.T) {
			apply(t, name, "--dry-run=server", "--force-conflicts")
			for _, o := range rendered(t, name) {
				var template corev1.PodTemplateSpec
				switch o.GetKind() {
				case "Job":
					template = as[batchv1.Job](t, o).Spec.Template
				case "Deployment":
					template = as[appsv1.Deployment](t, o).Spec.Template
				default:
					continue
				}
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "offered"}, Spec: template.Spec}
				if err := world.Client().Create(t.Context(), p, client.DryRunAll); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
