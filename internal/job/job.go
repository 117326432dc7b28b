package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/scaledown"
	"github.com/move-hook/move-hook/pkg/graph"
)

const (
	// system is the namespace of config/rbac.
	system = "move-hook-system"
	// poll is how often the Job is looked at.
	poll = 2 * time.Second
	// answer is how long one look may take.
	answer = 30 * time.Second
	// noPod is after how long it is said that there is no pod.
	noPod = 20 * time.Second
)

// Job runs post for the Clusters of one namespace.
type Job struct {
	Cluster *management.Cluster
	// Namespace of the Clusters; the Job has one of its own.
	Namespace string
	// Image has this move-hook, or one that understands the same flags.
	Image string
	// Args are flags of post beyond namespace and time-out.
	Args []string
	// Timeout of post, and of waiting for the Job; zero for ever.
	Timeout  time.Duration
	Progress flow.Progress
}

// Result is how the Job ended.
type Result struct {
	// Outcome is Done, Blocked (the Job was given up), or Deferred (it goes on).
	Outcome   flow.Outcome `json:"outcome"`
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"`
	Image     string       `json:"image"`
	// Message is the termination message of the last pod, or what became of the Job.
	Message string `json:"message,omitempty"`
}

// Install makes sure of everything that the Job needs, and offers the Job and its pod
// to the server in a dry run: what would keep it from running is an error now and not
// after the move. Nothing is stored when dryRun is set.
func (j *Job) Install(ctx context.Context, dryRun bool) error {
	if err := j.permitted(ctx); err != nil {
		return err
	}
	folders := []string{"rbac"}
	down, err := (scaledown.Providers{Cluster: j.Cluster}).State(ctx)
	switch {
	case apierrors.IsForbidden(err):
		// Who may not look at the providers has not scaled them down either.
	case err != nil:
		return err
	case down.Down:
		folders = append(folders, "scaled-down")
	}
	var unseen []string
	for _, folder := range folders {
		all, err := manifests(folder)
		if err != nil {
			return err
		}
		// Rights come first: who may not give them leaves nothing behind.
		slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { return cmp.Compare(isRight(b), isRight(a)) })
		for _, u := range all {
			seen, err := j.ensure(ctx, u, dryRun)
			switch {
			case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
				return fmt.Errorf("%w; run the command again when it has gone", err)
			case apierrors.IsForbidden(err):
				return fmt.Errorf("%w; an administrator of the target puts it there with `kubectl apply -k config/%s`, or leave out --post-as-job", err, folder)
			case err != nil:
				return err
			}
			if !seen {
				unseen = append(unseen, management.IDOf(u).String())
			}
		}
	}
	if len(unseen) > 0 {
		j.say("This user may not see whether the target has what an administrator puts there with `kubectl apply -k config/rbac`: "+strings.Join(unseen, ", "), true)
	}
	return j.offer(ctx, dryRun)
}

func isRight(u *unstructured.Unstructured) int {
	if management.IDOf(u).Group == rbacv1.GroupName {
		return 1
	}
	return 0
}

// permitted refuses who may not do with the Job what Run does.
func (j *Job) permitted(ctx context.Context) error {
	var all []management.Access
	for _, verb := range []string{"create", "get", "delete"} {
		all = append(all, management.Access{Verb: verb, Group: batchv1.GroupName, Resource: "jobs", Namespace: system})
	}
	for _, verb := range []string{"create", "list"} {
		all = append(all, management.Access{Verb: verb, Resource: "pods", Namespace: system})
	}
	denied, err := j.Cluster.Denied(ctx, all)
	if err != nil || len(denied) == 0 {
		return err
	}
	var words []string
	for _, a := range denied {
		words = append(words, a.Verb+" "+a.Resource)
	}
	return fmt.Errorf("this user may not %s in namespace %s of %s: an administrator of the target gives these rights, or leave out --post-as-job",
		strings.Join(words, ", "), system, j.Cluster.Name())
}

// ensure applies one object. Who may not is content with what an administrator has
// put there, and where somebody has changed it, it stays. False: nobody knows
// whether it is there.
func (j *Job) ensure(ctx context.Context, u *unstructured.Unstructured, dryRun bool) (seen bool, err error) {
	if dryRun && u.GetNamespace() != "" {
		// A namespace that is not there yet takes nothing, not even in a dry run.
		if exists, err := j.Cluster.NamespaceExists(ctx, u.GetNamespace()); err != nil || !exists {
			return err == nil, err
		}
	}
	err = j.Cluster.Ensure(ctx, u, dryRun)
	switch {
	case apierrors.IsConflict(err):
		j.say("It stays as somebody has changed it: "+err.Error(), true)
		return true, nil
	case apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		there, known, lookErr := j.there(ctx, management.IDOf(u))
		switch {
		case lookErr != nil:
			return false, lookErr
		case there:
			return known, nil
		}
	}
	return err == nil, err
}

// there looks whether an object exists. Who may not look has to take it for granted.
func (j *Job) there(ctx context.Context, id graph.ID) (there, known bool, err error) {
	have, err := j.Cluster.Raw(ctx, id)
	if apierrors.IsForbidden(err) {
		return true, false, nil
	}
	return have != nil, err == nil, err
}

// offer asks the server whether it would take the Job and run its pod.
func (j *Job) offer(ctx context.Context, dryRun bool) error {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	job, err := j.manifest()
	if err != nil {
		return err
	}
	account := graph.ID{Kind: rbacv1.ServiceAccountKind, Namespace: system, Name: job.Spec.Template.Spec.ServiceAccountName}
	if there, _, err := j.there(ctx, account); err != nil || !there && dryRun {
		return err // without it no pod is admitted, and a dry run has stored none
	}
	// One that is at work has been admitted, and may be all that a quota allows.
	have, err := j.Cluster.Clientset().BatchV1().Jobs(system).Get(ctx, job.Name, metav1.GetOptions{})
	if err == nil && atWork(have, job) {
		return nil
	}
	job.Name, job.GenerateName = "", job.Name+"-"
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: management.FieldManager}
	_, err = j.Cluster.Clientset().BatchV1().Jobs(system).Create(ctx, job, options)
	if err == nil {
		pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: job.Spec.Template.Spec}
		pod.GenerateName = job.GenerateName
		_, err = j.Cluster.Clientset().CoreV1().Pods(system).Create(ctx, pod, options)
	}
	if err != nil {
		return fmt.Errorf("post's Job would not run on %s, so nothing is moved: %w", j.Cluster.Name(), err)
	}
	return nil
}

// Run creates the Job and returns when it has ended, or when the time-out is over or
// ctx ends: then it goes on by itself. A Job that a move before this one has made and
// that is at work is waited for; one that has ended, or does something else, is
// replaced.
func (j *Job) Run(ctx context.Context) (Result, error) {
	if j.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, j.Timeout)
		defer cancel()
	}
	job, err := j.create(ctx)
	if err != nil {
		return Result{}, err
	}
	w := waiting{Job: j, uid: job.UID, began: time.Now(), told: map[string]bool{}}
	w.result = Result{Namespace: system, Name: job.Name, Image: job.Spec.Template.Spec.Containers[0].Image}
	return w.run(ctx)
}

func (j *Job) create(ctx context.Context) (*batchv1.Job, error) {
	want, err := j.manifest()
	if err != nil {
		return nil, err
	}
	api := j.Cluster.Clientset().BatchV1().Jobs(system)
	var replaced types.UID
	for {
		job, err := api.Create(ctx, want, metav1.CreateOptions{FieldManager: management.FieldManager})
		if err == nil {
			j.say(fmt.Sprintf("Job %s/%s created on the target, image %s; `kubectl -n %[1]s logs -f job/%[2]s` shows its log", system, want.Name, j.Image), false)
			return job, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("creating Job %s/%s on %s: %w", system, want.Name, j.Cluster.Name(), err)
		}
		have, err := api.Get(ctx, want.Name, metav1.GetOptions{})
		if err == nil {
			if atWork(have, want) {
				j.say(fmt.Sprintf("Job %s/%s is at work already", system, want.Name), false)
				return have, nil
			}
			if replaced != have.UID {
				replaced = have.UID
				j.say(fmt.Sprintf("Job %s/%s of an earlier move is replaced", system, want.Name), false)
			}
			// Its pods may go on for a moment: two posts keep off each other's Clusters.
			err = api.Delete(ctx, have.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
				Preconditions: metav1.NewUIDPreconditions(string(have.UID))})
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return nil, fmt.Errorf("replacing Job %s/%s on %s: %w", system, want.Name, j.Cluster.Name(), err)
		}
		if !flow.Pause(ctx, poll/4) {
			return nil, fmt.Errorf("replacing Job %s/%s on %s: it is deleted and does not go, see its finalizers: %w", system, want.Name, j.Cluster.Name(), context.Cause(ctx))
		}
	}
}

// atWork: a Job has not ended, and runs the same program to the same end.
func atWork(have, want *batchv1.Job) bool {
	x, y := have.Spec.Template.Spec.Containers[0], want.Spec.Template.Spec.Containers[0]
	return ended(have) == nil && have.DeletionTimestamp == nil && x.Image == y.Image && slices.Equal(x.Args, y.Args)
}

// waiting is one wait for a Job.
type waiting struct {
	*Job
	uid    types.UID
	began  time.Time
	told   map[string]bool
	result Result
}

func (w *waiting) run(ctx context.Context) (Result, error) {
	var unseen error
	for ctx.Err() == nil {
		over, err := w.look(ctx)
		if over {
			return w.result, nil
		}
		if ctx.Err() == nil {
			if err != nil && unseen == nil {
				w.say("The Job cannot be looked at, and is tried again: "+err.Error(), true)
			}
			unseen = err
		}
		flow.Pause(ctx, poll)
	}
	if unseen != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return w.result, fmt.Errorf("waiting for Job %s/%s on %s: %w", system, w.result.Name, w.Cluster.Name(), unseen)
	}
	w.result.Outcome = flow.Deferred
	w.result.Message = "has not ended and goes on by itself: run the same command again to wait for it"
	return w.result, nil
}

// look is true when the Job has ended; then the result says how.
func (w *waiting) look(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	job, err := w.Cluster.Clientset().BatchV1().Jobs(system).Get(ctx, w.result.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && job.UID != w.uid {
		w.result.Outcome, w.result.Message = flow.Deferred, "was deleted before it had ended: run the same command again"
		return true, nil
	}
	if err != nil {
		return false, err
	}
	list, err := w.Cluster.Clientset().CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: batchv1.ControllerUidLabel + "=" + string(job.UID)})
	if err != nil {
		return false, err
	}
	w.tell(list.Items)
	how := ended(job)
	if how == nil {
		return false, nil
	}
	w.result.Outcome, w.result.Message = judge(how, list.Items)
	return true, nil
}

// tell says of each pod what it waits for and how it ended, once: the reasons of the
// server change with every try.
func (w *waiting) tell(pods []corev1.Pod) {
	if len(pods) == 0 && time.Since(w.began) > noPod {
		w.once("", fmt.Sprintf("The Job has no pod yet: `kubectl -n %s describe job/%s` says why", system, w.result.Name), true)
	}
	for i := range pods {
		if is, why, warning := about(&pods[i]); is != "" {
			is = "Pod " + pods[i].Name + " " + is
			w.once(is, oneLine(is, why), warning)
		}
	}
}

func (w *waiting) once(key, message string, warning bool) {
	if !w.told[key] {
		w.told[key] = true
		w.say(message, warning)
	}
}

// oneLine adds why something is so, which may be several lines.
func oneLine(is, why string) string {
	if why = strings.TrimSpace(why); why == "" {
		return is
	}
	return is + ": " + strings.ReplaceAll(why, "\n", "; ")
}

func (j *Job) say(message string, warning bool) {
	j.Progress.Say(flow.Update{Time: time.Now(), Message: message, Warning: warning})
}

// about is how a pod stands, in words, and why.
func about(p *corev1.Pod) (is, why string, warning bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "waits for a node", cmp.Or(c.Message, c.Reason), true
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		switch s := c.State; {
		case s.Terminated != nil && s.Terminated.ExitCode != 0:
			return fmt.Sprintf("ended with exit code %d", s.Terminated.ExitCode), cmp.Or(s.Terminated.Message, p.Status.Message, s.Terminated.Reason), true
		case s.Running != nil:
			return "runs", "", false
		case s.Waiting != nil && s.Waiting.Reason != "ContainerCreating" && s.Waiting.Reason != "PodInitializing":
			return "waits, " + s.Waiting.Reason, s.Waiting.Message, true
		}
	}
	if p.Status.Phase == corev1.PodFailed { // a node would not have it, or has thrown it out
		return "failed", cmp.Or(p.Status.Message, p.Status.Reason), true
	}
	return "", "", false
}

// ended is the condition that says how a Job ended; nil while it has not.
func ended(job *batchv1.Job) *batchv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

// judge is what the end of a Job means, in the words of the pod that ended last. What
// the failure policy gave up would only fail again.
func judge(how *batchv1.JobCondition, pods []corev1.Pod) (flow.Outcome, string) {
	last := lastOf(pods)
	switch {
	case how.Type == batchv1.JobComplete:
		return flow.Done, last
	case how.Reason == batchv1.JobReasonPodFailurePolicy:
		return flow.Blocked, cmp.Or(last, how.Message)
	}
	return flow.Deferred, cmp.Or(last, how.Message)
}

// lastOf is the termination message of the pod that ended last.
func lastOf(pods []corev1.Pod) (message string) {
	var at time.Time
	for _, p := range pods {
		for _, c := range p.Status.ContainerStatuses {
			if t := c.State.Terminated; t != nil && !t.FinishedAt.Time.Before(at) {
				at, message = t.FinishedAt.Time, t.Message
			}
		}
	}
	return message
}

// nameFor names the Job after the namespace of its Clusters, within what a label holds.
func nameFor(namespace string) string {
	const limit = 63
	name := "move-hook-post-" + namespace
	if len(name) <= limit {
		return name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(namespace)) // it never fails
	return fmt.Sprintf("%s-%08x", name[:limit-9], h.Sum32())
}
