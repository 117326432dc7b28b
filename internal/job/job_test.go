package job

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/internal/pivot/flow"
)

func pod(name string, at time.Time, state corev1.ContainerState) corev1.Pod {
	if state.Terminated != nil {
		state.Terminated.FinishedAt = metav1.NewTime(at)
	}
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: state}}}}
}

func exited(code int32, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message, Reason: "Error"}}
}

func TestJudge_TheLastPodSaysWhy(t *testing.T) {
	now := time.Now()
	pods := []corev1.Pod{
		pod("second", now.Add(time.Minute), exited(4, "blocked")),
		pod("first", now, exited(3, "deferred")),
	}
	for name, c := range map[string]struct {
		how     batchv1.JobCondition
		pods    []corev1.Pod
		outcome flow.Outcome
		says    string
	}{
		"complete":            {batchv1.JobCondition{Type: batchv1.JobComplete}, pods[1:], flow.Done, "deferred"},
		"given up":            {batchv1.JobCondition{Type: batchv1.JobFailed, Reason: batchv1.JobReasonPodFailurePolicy, Message: "policy"}, pods, flow.Blocked, "blocked"},
		"its pods are gone":   {batchv1.JobCondition{Type: batchv1.JobFailed, Reason: batchv1.JobReasonPodFailurePolicy, Message: "policy"}, nil, flow.Blocked, "policy"},
		"failed often":        {batchv1.JobCondition{Type: batchv1.JobFailed, Reason: batchv1.JobReasonBackoffLimitExceeded, Message: "too often"}, pods[1:], flow.Deferred, "deferred"},
		"its time was over":   {batchv1.JobCondition{Type: batchv1.JobFailed, Reason: batchv1.JobReasonDeadlineExceeded, Message: "too long"}, nil, flow.Deferred, "too long"},
		"a pod without words": {batchv1.JobCondition{Type: batchv1.JobFailed, Reason: batchv1.JobReasonBackoffLimitExceeded, Message: "too often"}, []corev1.Pod{pod("a", now, exited(137, ""))}, flow.Deferred, "too often"},
	} {
		t.Run(name, func(t *testing.T) {
			outcome, says := judge(&c.how, c.pods)
			if outcome != c.outcome || says != c.says {
				t.Errorf("%s: %q, want %s: %q", outcome, says, c.outcome, c.says)
			}
		})
	}
}

func TestAbout_WhatKeepsAPod(t *testing.T) {
	unschedulable := pod("a", time.Time{}, corev1.ContainerState{})
	unschedulable.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available"}}
	for want, p := range map[string]corev1.Pod{
		"waits for a node: 0/1 nodes are available":      unschedulable,
		"waits: ImagePullBackOff back-off pulling image": pod("a", time.Time{}, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "back-off pulling image"}}),
		"":     pod("a", time.Time{}, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}),
		"runs": pod("a", time.Time{}, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}),
		"ended with exit code 3: 1 Cluster: 1 deferred": pod("a", time.Time{}, exited(3, "1 Cluster: 1 deferred")),
		"ended with exit code 137: Error":               pod("a", time.Time{}, exited(137, "")),
	} {
		if got, _ := about(&p); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestManifest_IsThatOfConfig(t *testing.T) {
	j := Job{Namespace: "fleet", Image: "example.com/move-hook:v1", Args: []string{"--allow-scale=true"}, Timeout: time.Hour}
	made, err := j.manifest()
	if err != nil {
		t.Fatal(err)
	}
	spec := made.Spec.Template.Spec
	switch container := spec.Containers[0]; {
	case made.Namespace != system || made.Name != "move-hook-post-fleet":
		t.Errorf("it is %s/%s", made.Namespace, made.Name)
	case strings.Join(container.Args, " ") != "post --namespace=fleet --timeout=1h0m0s --logging-format=json --allow-scale=true" || container.Image != j.Image:
		t.Errorf("it runs %s %q", container.Image, container.Args)
	case made.Spec.PodFailurePolicy == nil || spec.ServiceAccountName != "move-hook-post" || !*container.SecurityContext.ReadOnlyRootFilesystem:
		t.Error("it is not the Job of config/job")
	}
	day := *made.Spec.ActiveDeadlineSeconds
	for timeout, want := range map[time.Duration]int64{time.Hour: day, 48 * time.Hour: 2 * day, 0: 0} {
		j.Timeout = timeout
		made, err := j.manifest()
		if err != nil {
			t.Fatal(err)
		}
		if have := made.Spec.ActiveDeadlineSeconds; (have == nil) != (want == 0) || have != nil && *have != want {
			t.Errorf("with a time-out of %s it may last %v seconds, want %d", timeout, have, want)
		}
	}
	for _, folder := range []string{"rbac", "job", "scaled-down"} {
		if all, err := manifests(folder); err != nil || len(all) == 0 {
			t.Errorf("%s: %d objects, %v", folder, len(all), err)
		}
	}
}

func TestNameFor_FitsALabelAndTellsNamespacesApart(t *testing.T) {
	long := strings.Repeat("a", 62)
	a, b := nameFor(long+"x"), nameFor(long+"y")
	if len(a) > 63 || len(b) > 63 || a == b {
		t.Errorf("%s and %s", a, b)
	}
}
