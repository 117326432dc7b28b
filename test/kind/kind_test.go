package main

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/move-hook/move-hook/test/stack"
)

// TestJob_IsTheOneOfConfig: the Job that is waited for, with an image that is on the
// node. `latest` would be pulled, and the image that was built never be run.
func TestJob_IsTheOneOfConfig(t *testing.T) {
	_, kubectl, err := stack.Clients(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), kubectl, "kustomize", "job").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	jobs := 0
	for _, document := range strings.Split(string(out), "\n---\n") {
		job := &batchv1.Job{}
		if err := yaml.Unmarshal([]byte(document), job); err != nil || job.Kind != "Job" {
			continue
		}
		jobs++
		if job.Namespace != jobNamespace || job.Name != jobName {
			t.Errorf("the Job is %s/%s, and %s/%s is waited for", job.Namespace, job.Name, jobNamespace, jobName)
		}
		container := job.Spec.Template.Spec.Containers[0]
		if !strings.HasSuffix(container.Image, ":kind") || container.ImagePullPolicy == corev1.PullAlways {
			t.Errorf("image %s with pull policy %q is not the one on the node", container.Image, container.ImagePullPolicy)
		}
		if !strings.Contains(string(makefile), "test-kind: override IMAGE = "+container.Image+"\n") {
			t.Errorf("make test-kind does not build %s", container.Image)
		}
	}
	if jobs != 1 {
		t.Errorf("want one Job, have %d in\n%s", jobs, out)
	}
}

func TestGateway_IsThisMachine(t *testing.T) {
	own := []net.Addr{&net.IPNet{IP: net.ParseIP("127.0.0.1"), Mask: net.CIDRMask(8, 32)}, &net.IPNet{IP: net.ParseIP("172.18.0.1"), Mask: net.CIDRMask(16, 32)}}
	if have, err := gatewayOf([]string{"10.0.0.1", "172.18.0.1"}, own); err != nil || have != "172.18.0.1" {
		t.Errorf("have %s, %v", have, err)
	}
	for _, gateways := range [][]string{nil, {"192.168.65.1"}} {
		if have, err := gatewayOf(gateways, own); err == nil {
			t.Errorf("of %v %s was chosen, and is no address of this machine", gateways, have)
		}
	}
}

func TestEndOf_Job(t *testing.T) {
	for _, c := range []struct {
		condition batchv1.JobConditionType
		status    corev1.ConditionStatus
		want      batchv1.JobConditionType
	}{
		{batchv1.JobComplete, corev1.ConditionTrue, batchv1.JobComplete},
		{batchv1.JobFailed, corev1.ConditionTrue, batchv1.JobFailed},
		{batchv1.JobFailed, corev1.ConditionFalse, ""},
		{batchv1.JobFailureTarget, corev1.ConditionTrue, ""},
	} {
		job := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: c.condition, Status: c.status}}}}
		if have := endOf(job); have != c.want {
			t.Errorf("%s=%s: have %q, want %q", c.condition, c.status, have, c.want)
		}
	}
}
