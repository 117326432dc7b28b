package job

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"

	"github.com/move-hook/move-hook/config"
)

// manifests gives the objects of a folder of config/, in the order of its kustomization.
func manifests(folder string) ([]*unstructured.Unstructured, error) {
	var kustomization struct {
		Resources []string `json:"resources"`
	}
	text, err := config.Files.ReadFile(path.Join(folder, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(text, &kustomization); err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, name := range kustomization.Resources {
		text, err := config.Files.ReadFile(path.Join(folder, name))
		if err != nil {
			return nil, err
		}
		documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
		for {
			u := &unstructured.Unstructured{}
			err := documents.Decode(u)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s/%s: %w", folder, name, err)
			}
			if len(u.Object) > 0 { // a document of comments alone
				all = append(all, u)
			}
		}
	}
	return all, nil
}

// manifest is the Job of config/job, for the Clusters of one namespace.
func (j *Job) manifest() (*batchv1.Job, error) {
	all, err := manifests("job")
	if err != nil {
		return nil, err
	}
	job := &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all[0].Object, job); err != nil {
		return nil, err
	}
	job.Name = nameFor(j.Namespace)
	container := &job.Spec.Template.Spec.Containers[0]
	container.Image = j.Image
	container.Args = append([]string{"post", "--namespace=" + j.Namespace, "--timeout=" + j.Timeout.String(), "--logging-format=json"}, j.Args...)
	// The Job lasts at least as long as one pod may.
	limit := time.Duration(ptr.Deref(job.Spec.ActiveDeadlineSeconds, 0)) * time.Second
	switch {
	case j.Timeout == 0:
		job.Spec.ActiveDeadlineSeconds = nil
	case j.Timeout > limit:
		job.Spec.ActiveDeadlineSeconds = ptr.To(int64(j.Timeout / time.Second))
	}
	return job, nil
}
