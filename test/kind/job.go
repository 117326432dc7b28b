package main

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The Job of config/job.
const (
	jobNamespace = "move-hook-system"
	jobName      = "move-hook-post"
)

// runJob applies the Job on the target and waits until it is done.
func (s *suite) runJob(ctx context.Context) error {
	apply := exec.CommandContext(ctx, s.kubectl, "--kubeconfig", s.target.Kubeconfig(), "apply", "-k", s.job)
	apply.Stdout, apply.Stderr = s.Out, s.Out
	if err := apply.Run(); err != nil {
		return fmt.Errorf("kubectl apply -k %s: %w", s.job, err)
	}
	job := &batchv1.Job{}
	ended := batchv1.JobConditionType("")
	err := wait.PollUntilContextTimeout(ctx, time.Second, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := s.target.client.Get(ctx, client.ObjectKey{Namespace: jobNamespace, Name: jobName}, job)
		ended = endOf(job)
		return ended != "", err
	})
	words, wordsErr := s.lastWords(ctx)
	for _, said := range words {
		fmt.Fprintf(s.Out, "   %s\n", said)
	}
	switch {
	case err != nil:
		return fmt.Errorf("Job %s/%s has not ended (%d active, %d failed): %w", jobNamespace, jobName, job.Status.Active, job.Status.Failed, err)
	case ended != batchv1.JobComplete:
		return fmt.Errorf("Job %s/%s ended as %s after %d failed Pods", jobNamespace, jobName, ended, job.Status.Failed)
	}
	return wordsErr
}

// endOf is Complete or Failed, or empty while the Job goes on.
func endOf(job *batchv1.Job) batchv1.JobConditionType {
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c.Type
		}
	}
	return ""
}

// lastWords are the termination messages of the Job's Pods.
func (s *suite) lastWords(ctx context.Context) ([]string, error) {
	var pods corev1.PodList
	err := s.target.client.List(ctx, &pods, client.InNamespace(jobNamespace), client.MatchingLabels{batchv1.JobNameLabel: jobName})
	var words []string
	for _, pod := range pods.Items {
		for _, container := range pod.Status.ContainerStatuses {
			if end := container.State.Terminated; end != nil {
				words = append(words, fmt.Sprintf("%s: exit code %d: %s", pod.Name, end.ExitCode, end.Message))
			}
		}
	}
	return words, err
}
