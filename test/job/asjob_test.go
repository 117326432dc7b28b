package job_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

	// A pod that is blocked ends the Job, and the move with it.
	m := move(t, source, namespace, world.Kubeconfig())
	ends(t, only(t, name), 4, "2 Clusters: 2 blocked\nbecause of this test")
	r := m.wait(t)
	if r.code != 4 || r.Job == nil || r.Job.Outcome != "blocked" || !strings.Contains(r.Job.Message, "because of this test") || r.Verify != nil {
		t.Fatalf("a Job that is blocked ends the move with %d: %s", r.code, r.said)
	}

	// Nobody runs its pod: the time is over, and the Job stays.
	m = move(t, source, namespace, world.Kubeconfig(), "--timeout", "10s")
	if r = m.wait(t); r.code != 3 || r.Job == nil || !strings.Contains(r.Job.Message, "goes on by itself") {
		t.Fatalf("a Job that does not end lets the move end with %d: %s", r.code, r.said)
	}
	waiting := only(t, name)

	// The same command again waits for that very Job.
	m = move(t, source, namespace, world.Kubeconfig(), "--timeout", "10s")
	becomes(t, "the move to find its Job at work", func(context.Context) (bool, error) {
		return strings.Contains(m.said(t), "at work already"), nil
	})
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
	if r.code != 5 || !strings.Contains(r.said, "maximum memory usage per Container is 1Mi") || !strings.Contains(r.said, "nothing was moved") {
		t.Errorf("the move ends with %d: %s", r.code, r.said)
	}
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
