package job

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/move-hook/move-hook/internal/management"
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

func waits(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// The server tries again and again, and each try has words of its own.
func TestTell_WhatKeepsAPodOnce(t *testing.T) {
	unschedulable := func(why string) corev1.Pod {
		p := pod("a", time.Time{}, corev1.ContainerState{})
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: why}}
		return p
	}
	evicted := pod("a", time.Time{}, corev1.ContainerState{})
	evicted.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}
	one := func(state corev1.ContainerState) corev1.Pod { return pod("a", time.Time{}, state) }
	for name, c := range map[string]struct {
		pods []corev1.Pod
		says []string
	}{
		"no node": {[]corev1.Pod{unschedulable("0/1 nodes are available"), unschedulable("0/2 nodes are available")},
			[]string{"Pod a waits for a node: 0/1 nodes are available"}},
		"no image": {[]corev1.Pod{one(waits("ErrImagePull", "read udp 10.0.0.1:1: timeout")), one(waits("ImagePullBackOff", "back-off 10s")), one(waits("ErrImagePull", "read udp 10.0.0.1:2: timeout"))},
			[]string{"Pod a waits, ErrImagePull: read udp 10.0.0.1:1: timeout", "Pod a waits, ImagePullBackOff: back-off 10s"}},
		"soon":       {[]corev1.Pod{one(waits("ContainerCreating", ""))}, nil},
		"it runs":    {[]corev1.Pod{one(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})}, []string{"Pod a runs"}},
		"several":    {[]corev1.Pod{one(exited(3, "1 Cluster: 1 deferred\nCluster a/b waits")), pod("b", time.Time{}, exited(3, "so"))}, []string{"Pod a ended with exit code 3: 1 Cluster: 1 deferred; Cluster a/b waits", "Pod b ended with exit code 3: so"}},
		"no words":   {[]corev1.Pod{one(exited(137, ""))}, []string{"Pod a ended with exit code 137: Error"}},
		"thrown out": {[]corev1.Pod{evicted}, []string{"Pod a failed: The node was low on resource: memory."}},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			w := waiting{Job: &Job{Progress: func(u flow.Update) { said = append(said, u.Message) }}, told: map[string]bool{}}
			for range 2 {
				for _, p := range c.pods {
					w.tell([]corev1.Pod{p})
				}
			}
			if !slices.Equal(said, c.says) {
				t.Errorf("it said %q", said)
			}
		})
	}
}

// A server refuses with other words each time.
func TestRun_SaysOnceThatTheJobCannotBeLookedAt(t *testing.T) {
	t.Parallel()
	tries := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/pods") {
			tries++
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "try %d"}`, tries)
			return
		}
		fmt.Fprint(w, `{"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "j", "uid": "u"}}`)
	}))
	defer server.Close()
	cluster, err := management.OpenConfig(&rest.Config{Host: server.URL}, "target")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*poll+poll/2)
	defer cancel()
	var said []string
	w := waiting{Job: &Job{Cluster: cluster, Progress: func(u flow.Update) { said = append(said, u.Message) }}, uid: "u", result: Result{Name: "j"}, told: map[string]bool{}}
	_, err = w.run(ctx)
	if !apierrors.IsForbidden(err) || tries < 2 || len(said) != 1 || !strings.Contains(said[0], "try 1") {
		t.Errorf("after %d tries it said %q and ends with %v", tries, said, err)
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
