package job_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/test/stack"
)

const image = "registry.example.com/move-hook:test"

// moving is a `move --post-as-job` at work.
type moving struct {
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr string // a file, which can be read meanwhile
}

// moved is how it ended.
type moved struct {
	code    int
	Outcome string
	Message string
	Job     *struct{ Outcome, Namespace, Name, Image, Message string }
	Verify  *struct{ Outcome string }
	said    string
}

// TestPostAsJob has the Job controller of the target make the pod, and runs in it what
// the pod says, with the rights that the move has put there.
func TestPostAsJob(t *testing.T) {
	source := stack.Must(stack.Start(t.Context(), stack.Options{Name: "source", Bare: true}))(t)
	t.Cleanup(source.Stop)
	for name, test := range map[string]func(*testing.T, *stack.Management){
		"what the target refuses is known before": refusedBefore, "in one go": inOneGo, "goes on without the move": goesOn,
		"who may not give rights": mayNotGiveRights, "what somebody has changed": changed,
		"is not undone while it is at work": notUndone,
	} {
		t.Run(name, func(t *testing.T) { test(t, source) })
	}
}

// twoClusters are in a namespace of the source.
func twoClusters(t *testing.T, m *stack.Management, namespace string) {
	t.Helper()
	for _, name := range []string{"c1", "c2"} {
		if err := stack.Cluster(name).InNamespace(namespace).ControlPlane(1).Workers("md-0", 1).Synthesize(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if err := stack.Provisioned(t.Context(), m, namespace); err != nil {
		t.Fatal(err)
	}
}

func move(t *testing.T, source *stack.Management, namespace, target string, more ...string) *moving {
	t.Helper()
	args := []string{"move", "-n", namespace, "--kubeconfig", source.Kubeconfig(), "--to-kubeconfig", target,
		"--post-as-job", "--job-image", image, "--watch-after", "0s", "-o", "json"}
	m := &moving{cmd: exec.CommandContext(t.Context(), world.hook, append(args, more...)...), stderr: filepath.Join(t.TempDir(), "stderr")}
	stderr := stack.Must(os.Create(m.stderr))(t)
	defer func() { _ = stderr.Close() }() // the command has its own
	m.cmd.Stdout, m.cmd.Stderr = &m.stdout, stderr
	// Not the clusterctl that may be on PATH: the one that is linked in.
	m.cmd.Env = []string{"HOME=" + t.TempDir()}
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *moving) said(t *testing.T) string {
	t.Helper()
	return string(stack.Must(os.ReadFile(m.stderr))(t))
}

func (m *moving) wait(t *testing.T) moved {
	t.Helper()
	_ = m.cmd.Wait() // the exit code says it
	r := moved{code: m.cmd.ProcessState.ExitCode(), said: m.stdout.String() + m.said(t)}
	if m.stdout.Len() > 0 {
		if err := json.Unmarshal(m.stdout.Bytes(), &r); err != nil {
			t.Fatalf("%v\n%s", err, r.said)
		}
	}
	return r
}

// play is kubelet, and the controllers that rebuild the status of what has arrived: it
// runs what a pod is to run, and tells how it ended.
func play(t *testing.T, p *corev1.Pod, namespace string) {
	t.Helper()
	if have := p.Spec.Containers[0].Image; have != image {
		t.Errorf("the pod's image is %s", have)
	}
	if err := stack.Provisioned(t.Context(), world, namespace); err != nil {
		t.Fatal(err)
	}
	r := podOf(t, world.Management, p.Spec.ServiceAccountName).run(t, p.Spec.Containers[0].Args...)
	ends(t, p, r.code, r.termination)
	if r.code != 0 {
		t.Error(r)
	}
}

func goesOn(t *testing.T, source *stack.Management) {
	const namespace, name = "goes-on", "move-hook-post-goes-on"
	twoClusters(t, source, namespace)

	// A Job of that name does not go.
	left := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: name, Finalizers: []string{"example.com/kept"}},
		Spec: batchv1.JobSpec{Suspend: ptr.To(true), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "other", Image: image}}}}}}
	system(t, world.Management)
	if err := world.Client().Create(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	r := move(t, source, namespace, world.Kubeconfig(), "--timeout", "10s").wait(t)
	if r.code != 5 || strings.Count(r.said, "of an earlier move is replaced") != 1 || !strings.Contains(r.said, "see its finalizers") {
		t.Fatalf("a Job that does not go lets the move end with %d: %s", r.code, r.said)
	}
	if err := world.Client().Patch(t.Context(), left, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}

	// A pod that is blocked ends the Job, and the move with it.
	m := move(t, source, namespace, world.Kubeconfig())
	ends(t, only(t, name), 4, "2 Clusters: 2 blocked\nbecause of this test")
	if r = m.wait(t); r.code != 4 || r.Job == nil || r.Job.Outcome != "blocked" || !strings.Contains(r.Job.Message, "because of this test") || r.Verify != nil {
		t.Fatalf("a Job that is blocked ends the move with %d: %s", r.code, r.said)
	}

	// Nobody runs its pod: the time is over, and the Job stays.
	m = move(t, source, namespace, world.Kubeconfig(), "--timeout", "10s")
	if r = m.wait(t); r.code != 3 || r.Job == nil || !strings.Contains(r.Job.Message, "goes on by itself") {
		t.Fatalf("a Job that does not end lets the move end with %d: %s", r.code, r.said)
	}
	waiting := only(t, name)

	// The same command again waits for that very Job, which is all that a quota allows.
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "full"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
	if err := world.Client().Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = world.Client().Delete(context.Background(), quota) })
	quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	if err := world.Client().Status().Update(t.Context(), quota); err != nil { // its controller does not run here
		t.Fatal(err)
	}
	m = move(t, source, namespace, world.Kubeconfig(), "--timeout", "10s")
	atWork := func() {
		t.Helper()
		becomes(t, "the move to find its Job at work", func(context.Context) (bool, error) {
			return strings.Contains(m.said(t), "at work already"), nil
		})
	}
	atWork()
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if r = m.wait(t); r.code != 3 || r.Job == nil || !strings.Contains(r.Job.Message, "goes on by itself") || !strings.Contains(r.said, "interrupted: run the same command again") {
		t.Fatalf("interrupted, the move ends with %d: %s", r.code, r.said)
	}
	m = move(t, source, namespace, world.Kubeconfig(), "--timeout", "10s")
	atWork()
	play(t, waiting, namespace)
	r = m.wait(t)
	if r.code != 0 || r.Job == nil || r.Job.Message != "2 Clusters: 2 adopted" || r.Verify == nil || r.Verify.Outcome != "done" {
		t.Fatalf("the move ends with %d: %s", r.code, r.said)
	}
	adopted(t, namespace)
}

// notUndone: the move is killed, and its Job adopts. Whoever wants to undo the pivot has
// to wait for it.
func notUndone(t *testing.T, source *stack.Management) {
	const namespace, name = "not-undone", "move-hook-post-not-undone"
	twoClusters(t, source, namespace)
	m := move(t, source, namespace, world.Kubeconfig())
	p := only(t, name)
	if err := m.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	m.wait(t)
	// post has something to write, and no status to go on with.
	configs := &bootstrapv1.KubeadmConfigList{}
	if err := world.Client().List(t.Context(), configs, client.InNamespace(namespace)); err != nil || len(configs.Items) == 0 {
		t.Fatalf("%d KubeadmConfigs have arrived, %v", len(configs.Items), err)
	}
	for i := range configs.Items {
		if err := world.Client().Patch(t.Context(), &configs.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan result, 1)
	go func() {
		ended <- podOf(t, world.Management, p.Spec.ServiceAccountName).run(t, p.Spec.Containers[0].Args...)
	}()
	becomes(t, "post to have a Lease", func(ctx context.Context) (bool, error) {
		leases := &coordinationv1.LeaseList{}
		err := world.Client().List(ctx, leases, client.InNamespace(namespace))
		return len(leases.Items) > 0, err
	})
	undo := func() (int, string) {
		cmd := exec.CommandContext(t.Context(), world.hook, "rollback", "-n", namespace, "--timeout", "20s", "--kubeconfig", source.Kubeconfig(), "--to-kubeconfig", world.Kubeconfig())
		out, _ := cmd.CombinedOutput() // the exit code says it
		return cmd.ProcessState.ExitCode(), string(out)
	}
	if code, said := undo(); code != 3 || !strings.Contains(said, "is being adopted by move-hook@") {
		t.Errorf("rollback ends beside the Job with %d: %s", code, said)
	}
	if err := stack.Provisioned(t.Context(), world, namespace); err != nil {
		t.Fatal(err)
	}
	r := <-ended
	if r.code != 0 {
		t.Fatal(r)
	}
	if code, said := undo(); code != 4 || !strings.Contains(said, "AdoptionFinished") {
		t.Errorf("rollback ends after the Job with %d: %s", code, said)
	}
	ends(t, p, 0, r.termination)
	adopted(t, namespace)
}

// inOneGo has a policy's flags reach the pod.
func inOneGo(t *testing.T, source *stack.Management) {
	const namespace = "in-one-go"
	twoClusters(t, source, namespace)
	// A namespace alone: without a ServiceAccount, which a dry run does not store, it takes no pod.
	system(t, world.Management)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "move-hook-post"}}
	if err := client.IgnoreNotFound(world.Client().Delete(t.Context(), account)); err != nil {
		t.Fatal(err)
	}
	if r := move(t, source, namespace, world.Kubeconfig(), "--dry-run").wait(t); r.code != 0 || r.Job != nil {
		t.Errorf("a dry run ends with %d: %s", r.code, r.said)
	}
	m := move(t, source, namespace, world.Kubeconfig(), "--allow-scale", "--timeout", "0s")
	p := only(t, "move-hook-post-"+namespace)
	want := []string{"post", "--namespace=" + namespace, "--timeout=0s", "--logging-format=json", "--allow-scale=true", "--watch-after=0s"}
	if have := p.Spec.Containers[0].Args; fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("the pod's arguments are %q", have)
	}
	play(t, p, namespace)
	if r := m.wait(t); r.code != 0 {
		t.Fatalf("the move ends with %d: %s", r.code, r.said)
	}
	adopted(t, namespace)
}

// allow binds a user to rules, in one namespace or (empty) in all.
func allow(t *testing.T, user, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	name := "as-job-" + user
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	var objects []client.Object
	if namespace == "" {
		objects = []client.Object{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}}}
	} else {
		objects = []client.Object{&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: rules},
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}}
	}
	if err := world.Create(t.Context(), objects...); err != nil {
		t.Fatal(err)
	}
}

// mayNotGiveRights: a user of the target has what a move needs there. Without more it is
// refused before anything is touched; the rights that docs/pivot.md names are enough
// once an administrator has applied config/rbac.
func mayNotGiveRights(t *testing.T, source *stack.Management) {
	const namespace, user = "no-rights", "mover"
	twoClusters(t, source, namespace)
	out, err := exec.CommandContext(t.Context(), world.hook, "preflight", "--print-role", "target", "--kubeconfig", world.Kubeconfig()).Output()
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.Unmarshal(out, role); err != nil {
		t.Fatal(err)
	}
	allow(t, user, "", role.Rules)
	cfg := stack.Must(clientcmd.LoadFromFile(world.Kubeconfig()))(t)
	for _, u := range cfg.AuthInfos {
		u.Impersonate = user
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*cfg, kubeconfig); err != nil {
		t.Fatal(err)
	}
	refused := func(words ...string) {
		t.Helper()
		r := move(t, source, namespace, kubeconfig, "--timeout", "10s").wait(t)
		_, last, _ := strings.Cut(r.said, "error: ")
		for _, w := range words {
			if r.code != 5 || strings.Count(last, "\n") != 1 || !strings.Contains(last, w) {
				t.Errorf("the move ends with %d and does not say %q in one line: %s", r.code, w, r.said)
			}
		}
		untouched(t, source, namespace)
	}
	refused("this user may not create jobs, get jobs, delete jobs, create pods, list pods in namespace move-hook-system", "or leave out --post-as-job")

	apply(t, "rbac")
	allow(t, user, systemNamespace, []rbacv1.PolicyRule{
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create", "get", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "list"}},
	})
	time.Sleep(time.Second) // The API server learns of rights a moment after they are stored.
	m := move(t, source, namespace, kubeconfig)
	play(t, only(t, "move-hook-post-"+namespace), namespace)
	if r := m.wait(t); r.code != 0 || strings.Count(r.said, "This user may not see") != 1 {
		t.Errorf("with the rights that are documented the move ends with %d: %s", r.code, r.said)
	}
	adopted(t, namespace)
}

// changed: what an operator has made of config/rbac stays.
func changed(t *testing.T, source *stack.Management) {
	const namespace = "changed"
	twoClusters(t, source, namespace)
	apply(t, "rbac")
	t.Cleanup(func() {
		again := exec.Command(world.Kubectl(), "--kubeconfig", world.Kubeconfig(), "apply", "--server-side", "--force-conflicts", "-k", "../../config/rbac")
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	edit := func(kind, name, patch string) {
		t.Helper()
		args := []string{"--kubeconfig", world.Kubeconfig(), "-n", systemNamespace, "patch", kind, name, "--type=json", "-p", patch}
		if out, err := exec.CommandContext(t.Context(), world.Kubectl(), args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	edit("clusterrole", "move-hook-post-providers", `[{"op": "add", "path": "/rules/0/apiGroups/-", "value": "example.com"}]`)
	edit("namespace", systemNamespace, `[{"op": "replace", "path": "/metadata/labels/pod-security.kubernetes.io~1enforce", "value": "baseline"}]`)
	edit("serviceaccount", "move-hook-post", `[{"op": "add", "path": "/imagePullSecrets", "value": [{"name": "registry"}]}]`)
	m := move(t, source, namespace, world.Kubeconfig())
	play(t, only(t, "move-hook-post-"+namespace), namespace)
	if r := m.wait(t); r.code != 0 || strings.Count(r.said, "stays as somebody has changed it") != 2 {
		t.Errorf("the move ends with %d: %s", r.code, r.said)
	}
	role, space, account := &rbacv1.ClusterRole{}, &corev1.Namespace{}, &corev1.ServiceAccount{}
	for key, o := range map[client.ObjectKey]client.Object{
		{Name: "move-hook-post-providers"}: role, {Name: systemNamespace}: space, {Namespace: systemNamespace, Name: "move-hook-post"}: account} {
		if err := world.Client().Get(t.Context(), key, o); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Contains(role.Rules[0].APIGroups, "example.com") || space.Labels["pod-security.kubernetes.io/enforce"] != "baseline" || len(account.ImagePullSecrets) != 1 {
		t.Errorf("it is what it was before: %v, %v, %v", role.Rules, space.Labels, account.ImagePullSecrets)
	}
}

// refusedBefore: nothing has been touched when the target would not run the pod.
func refusedBefore(t *testing.T, source *stack.Management) {
	const namespace = "refused"
	twoClusters(t, source, namespace)
	system(t, world.Management)
	little := resource.MustParse("1Mi")
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "little"}, Spec: corev1.LimitRangeSpec{
		Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: little}}}}}
	if err := world.Client().Create(t.Context(), limits); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = world.Client().Delete(context.Background(), limits) })
	r := move(t, source, namespace, world.Kubeconfig(), "--timeout", "10s").wait(t)
	if r.code != 5 || !strings.Contains(r.said, "maximum memory usage per Container is 1Mi") || !strings.Contains(r.said, "nothing is moved") {
		t.Errorf("the move ends with %d: %s", r.code, r.said)
	}
	untouched(t, source, namespace)
}

// untouched fails if a Cluster of the source is prepared.
func untouched(t *testing.T, source *stack.Management, namespace string) {
	t.Helper()
	list := &clusterv1.ClusterList{}
	if err := source.Client().List(t.Context(), list, client.InNamespace(namespace), client.HasLabels{graph.AdoptionLabel}); err != nil || len(list.Items) > 0 {
		t.Errorf("%d Clusters of the source are prepared already, %v", len(list.Items), err)
	}
}

// adopted fails unless both Clusters are on the target and nothing is pending.
func adopted(t *testing.T, namespace string) {
	t.Helper()
	list := &clusterv1.ClusterList{}
	if err := world.Client().List(t.Context(), list, client.InNamespace(namespace)); err != nil || len(list.Items) != 2 {
		t.Errorf("there are %d Clusters, %v", len(list.Items), err)
	}
	for _, c := range list.Items {
		if _, pending := c.Labels[graph.AdoptionLabel]; pending {
			t.Errorf("%s is pending", c.Name)
		}
	}
}
