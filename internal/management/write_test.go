package management

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

const machinePath = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/m"

// machine is the Machine default/m as a decision saw it, on a server that has it.
func machine(t *testing.T, annotations map[string]any) (*apiServer, *Cluster, adopt.Target) {
	t.Helper()
	s, c := newServer(t, standard(), object(graph.Machine, "default", "m", map[string]any{
		"ownerReferences": owner(graph.KubeadmControlPlane, "v1beta2", "stale"), "annotations": annotations}))
	o, err := c.Get(context.Background(), id(graph.Machine, "default", "m"), false)
	if err != nil || o == nil {
		t.Fatal(err)
	}
	return s, c, adopt.Target{ID: o.ID, UID: o.UID, ResourceVersion: o.ResourceVersion, APIVersion: o.APIVersion}
}

func setOwners(on adopt.Target) adopt.SetOwners {
	ref := metav1.OwnerReference{APIVersion: "controlplane.cluster.x-k8s.io/v1beta2", Kind: "KubeadmControlPlane", Name: "stale", UID: "uid-stale"}
	after := ref
	after.UID = "live"
	return adopt.SetOwners{On: on, Before: []metav1.OwnerReference{ref}, After: []metav1.OwnerReference{after}}
}

// meddle changes the stored Machine as somebody else would.
func (s *apiServer) meddle(change func(meta map[string]any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	meta := mergePatch(s.objects[machinePath]["metadata"].(map[string]any), nil)
	change(meta)
	s.version++
	meta["resourceVersion"] = "meddled-" + time.Duration(s.version).String()
	s.objects[machinePath]["metadata"] = meta
}

func (s *apiServer) meta() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[machinePath]["metadata"].(map[string]any)
}

func TestApply_OutcomeFollowsTheServersAnswer(t *testing.T) {
	answer := func(code int, reason string, causes ...map[string]any) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { refuse(w, code, reason, "the server's words", causes...) }
	}
	for name, test := range map[string]struct {
		answer  func(http.ResponseWriter)
		outcome adopt.Outcome
		// fails: an error is expected; unknown: it says that the write may have happened.
		fails, unknown bool
	}{
		"404 gone":                   {answer: answer(http.StatusNotFound, "NotFound"), outcome: adopt.Moved},
		"422 another copy":           {answer: answer(http.StatusUnprocessableEntity, "Invalid", map[string]any{"field": "metadata.uid", "message": "field is immutable"}), outcome: adopt.Moved},
		"422 two controllers":        {answer: answer(http.StatusUnprocessableEntity, "Invalid", map[string]any{"field": "metadata.ownerReferences"}), fails: true},
		"403 a policy refuses":       {answer: answer(http.StatusForbidden, "Forbidden"), fails: true},
		"401 wrong credentials":      {answer: answer(http.StatusUnauthorized, "Unauthorized"), fails: true},
		"400 nonsense":               {answer: answer(http.StatusBadRequest, "BadRequest"), fails: true},
		"429 overloaded":             {answer: answer(http.StatusTooManyRequests, "TooManyRequests"), fails: true, unknown: true},
		"500 a webhook is down":      {answer: answer(http.StatusInternalServerError, "InternalError"), fails: true, unknown: true},
		"503 away":                   {answer: answer(http.StatusServiceUnavailable, "ServiceUnavailable"), fails: true, unknown: true},
		"504 too late":               {answer: answer(http.StatusGatewayTimeout, "Timeout"), fails: true, unknown: true},
		"connection lost":            {answer: func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, fails: true, unknown: true},
		"200 but no Kubernetes JSON": {answer: func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) }, fails: true, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, c, on := machine(t, nil)
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPatch {
					return false
				}
				test.answer(w)
				return true
			}
			outcome, err := c.Apply(soon(t), setOwners(on), false)
			if !test.fails {
				if err != nil || outcome != test.outcome {
					t.Fatalf("outcome %d, error %v; want outcome %d", outcome, err, test.outcome)
				}
				return
			}
			var we *WriteError
			if !errors.As(err, &we) || we.Unknown != test.unknown || we.Object != on.ID {
				t.Fatalf("want a WriteError about the Machine with unknown %v, got %#v", test.unknown, err)
			}
			if !strings.Contains(err.Error(), "Machine default/m") {
				t.Errorf("the error does not name the object: %v", err)
			}
			if n := len(s.asked("PATCH")); n > 1 && !test.unknown {
				t.Errorf("%d patches were sent after a refusal", n)
			}
		})
	}
}

func TestApply_AppliedThenAlreadyThere(t *testing.T) {
	s, c, on := machine(t, nil)
	for i, want := range []adopt.Outcome{adopt.Applied, adopt.AlreadyThere} {
		on.ResourceVersion, _ = s.meta()["resourceVersion"].(string)
		got, err := c.Apply(context.Background(), setOwners(on), false)
		if err != nil || got != want {
			t.Errorf("time %d: outcome %d, error %v; want %d", i+1, got, err, want)
		}
	}
}

func TestApply_DryRunStoresNothing(t *testing.T) {
	s, c, on := machine(t, nil)
	before := s.meta()["resourceVersion"]
	got, err := c.Apply(context.Background(), setOwners(on), true)
	if err != nil || got != adopt.Applied {
		t.Errorf("outcome %d, error %v; want applied", got, err)
	}
	if s.meta()["resourceVersion"] != before || len(s.asked("dryRun=All")) != 1 {
		t.Errorf("it was stored, or not asked as a dry run: %v", s.asked("PATCH"))
	}
}

func TestApply_ConflictIsLookedAtBeforeAnythingIsWrittenAgain(t *testing.T) {
	hold := labels.Change{SetAnnotations: map[string]string{labels.Paused: "", labels.Held: "me"}}
	release := labels.Change{DropAnnotations: []string{labels.Paused, labels.Held}, DropLabels: []string{labels.Adoption}}
	held := map[string]any{labels.Paused: "", labels.Held: "me"}
	annotate := func(key string, v any) func(map[string]any) {
		return func(m map[string]any) {
			m["annotations"] = mergePatch(mergePatch(m, nil)["annotations"].(map[string]any), map[string]any{key: v})
		}
	}
	for name, test := range map[string]struct {
		annotations map[string]any
		action      func(adopt.Target) adopt.Action
		meddle      func(meta map[string]any)
		want        adopt.Outcome
	}{
		"status was written": {action: func(on adopt.Target) adopt.Action { return setOwners(on) },
			meddle: func(map[string]any) {}, want: adopt.Applied},
		"owners changed": {action: func(on adopt.Target) adopt.Action { return setOwners(on) },
			meddle: func(m map[string]any) { m["ownerReferences"] = owner(graph.Cluster, "v1beta2", "c1") }, want: adopt.Moved},
		"another copy": {action: func(on adopt.Target) adopt.Action { return setOwners(on) },
			meddle: func(m map[string]any) { m["uid"] = "another" }, want: adopt.Moved},
		"being deleted": {action: func(on adopt.Target) adopt.Action { return setOwners(on) },
			meddle: func(m map[string]any) { m["deletionTimestamp"] = "2026-01-02T03:04:05Z" }, want: adopt.Moved},
		"hold, status was written": {action: func(on adopt.Target) adopt.Action { return adopt.ChangeMeta{On: on, Change: hold} },
			meddle: func(map[string]any) {}, want: adopt.Applied},
		"hold, its user paused it": {action: func(on adopt.Target) adopt.Action { return adopt.ChangeMeta{On: on, Change: hold} },
			annotations: map[string]any{"a": "b"}, meddle: annotate(labels.Paused, ""), want: adopt.Moved},
		"release, status was written": {action: func(on adopt.Target) adopt.Action {
			return adopt.ChangeMeta{On: on, Change: labels.Change{DropAnnotations: release.DropAnnotations}}
		}, annotations: held, meddle: func(map[string]any) {}, want: adopt.Applied},
		"release, its user paused it": {action: func(on adopt.Target) adopt.Action {
			return adopt.ChangeMeta{On: on, Change: labels.Change{DropAnnotations: release.DropAnnotations}}
		}, annotations: held, meddle: annotate(labels.Paused, "mine"), want: adopt.Moved},
		"release, somebody released it": {action: func(on adopt.Target) adopt.Action {
			return adopt.ChangeMeta{On: on, Change: release}
		}, annotations: held, meddle: annotate(labels.Held, nil), want: adopt.Moved},
		"closing a record that was written": {action: func(on adopt.Target) adopt.Action {
			return adopt.CloseRecord{On: on}
		}, meddle: func(map[string]any) {}, want: adopt.Moved},
	} {
		t.Run(name, func(t *testing.T) {
			s, c, on := machine(t, test.annotations)
			s.meddle(test.meddle)
			got, err := c.Apply(context.Background(), test.action(on), false)
			if err != nil || got != test.want {
				t.Errorf("outcome %d, error %v; want %d", got, err, test.want)
			}
			if got == adopt.Moved && len(s.asked("PATCH")) != 1 {
				t.Errorf("patches: %v", s.asked("PATCH"))
			}
		})
	}
}

func TestApply_ObjectThatIsNeverStillIsGivenUp(t *testing.T) {
	s, c, on := machine(t, nil)
	s.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch {
			s.meddle(func(map[string]any) {})
		}
		return false
	}
	got, err := c.Apply(context.Background(), setOwners(on), false)
	if err != nil || got != adopt.Moved {
		t.Errorf("outcome %d, error %v; want moved", got, err)
	}
	if n := len(s.asked("PATCH")); n != conflictTries+1 {
		t.Errorf("%d patches, want the first and %d more", n, conflictTries)
	}
}

func TestP6_ApplyChangesNothingElse(t *testing.T) {
	_, c, on := machine(t, map[string]any{labels.Held: "me", labels.Paused: "", "theirs": "x"})
	change := labels.Change{SetLabels: map[string]string{labels.Adoption: labels.Pending}, DropAnnotations: []string{labels.Held, labels.Paused}}
	if got, err := c.Apply(context.Background(), adopt.ChangeMeta{On: on, Change: change}, false); err != nil || got != adopt.Applied {
		t.Fatalf("outcome %d, error %v", got, err)
	}
	o, err := c.Get(context.Background(), on.ID, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Annotations) != 1 || o.Annotations["theirs"] != "x" || o.Labels[labels.Adoption] != labels.Pending || len(o.Owners) != 1 {
		t.Errorf("got %+v", o)
	}
}

func TestApply_CloseRecord(t *testing.T) {
	s, c := newServer(t, standard(), object(graph.ConfigMap, "default", "record", nil))
	o, err := c.Get(context.Background(), id(graph.ConfigMap, "default", "record"), false)
	if err != nil || o == nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 4, 4, 5, 0, time.FixedZone("x", 3600))
	on := adopt.Target{ID: o.ID, UID: o.UID, ResourceVersion: o.ResourceVersion}
	if got, err := c.Apply(context.Background(), adopt.CloseRecord{On: on, At: at}, false); err != nil || got != adopt.Applied {
		t.Fatalf("outcome %d, error %v", got, err)
	}
	meta := s.objects["/api/v1/namespaces/default/configmaps/record"]["metadata"].(map[string]any)
	if v := meta["annotations"].(map[string]any)[graph.AdoptedAnnotation]; v != "2026-01-02T03:04:05Z" {
		t.Errorf("closed at %v", v)
	}
}

func TestConfirm_SameCopyAndNotBeingDeleted(t *testing.T) {
	s, c, on := machine(t, nil)
	ctx := context.Background()
	confirm := func(want bool, targets ...adopt.Target) {
		t.Helper()
		if ok, err := c.Confirm(ctx, targets); err != nil || ok != want {
			t.Errorf("%v, %v; want %v", ok, err, want)
		}
	}
	other, gone := on, on
	other.UID, gone.Name = types.UID("other"), "gone"
	confirm(true)
	confirm(true, on)
	confirm(false, on, other)
	confirm(false, gone)
	s.meddle(func(m map[string]any) { m["deletionTimestamp"] = "2026-01-02T03:04:05Z" })
	confirm(false, on)
	s.Close()
	if _, err := c.Confirm(soon(t), []adopt.Target{on}); err == nil {
		t.Error("a server that is away confirms nothing")
	}
}

func TestTell_OncePerChange(t *testing.T) {
	s, c, on := machine(t, nil)
	say := func(reason, message string) {
		t.Helper()
		if err := c.Tell(context.Background(), adopt.Event{On: on, Reason: reason, Message: message}); err != nil {
			t.Fatal(err)
		}
	}
	for _, message := range []string{"a", "a", "b", "a"} {
		say("AdoptionDeferred", message)
	}
	say("AdoptionBlocked", strings.Repeat("ö", 900))
	if err := c.Tell(context.Background(), adopt.Event{Reason: "AdoptionDeferred", Message: "about nobody"}); err != nil {
		t.Error(err)
	}
	if n := len(s.asked("POST /api/v1/namespaces/default/events")); n != 4 {
		t.Errorf("%d Events, want a, b, a and the long one", n)
	}
}

func TestWorld_PassRepairsAnOwner(t *testing.T) {
	_, c := newServer(t, append(standard(),
		served{graph.MachineSet, "v1beta2", "machinesets", false, clusterctlInstalled},
		served{graph.MachineDeployment, "v1beta2", "machinedeployments", false, clusterctlInstalled}),
		object(graph.Cluster, "default", "c1", map[string]any{"spec": map[string]any{"paused": true}}),
		object(graph.MachineDeployment, "default", "md", map[string]any{
			"labels": map[string]any{graph.ClusterNameLabel: "c1"}, "spec": map[string]any{"clusterName": "c1", "replicas": 0},
			"annotations": map[string]any{labels.Paused: "", labels.Held: "me 2026-01-02T03:04:05Z"},
		}))
	w := c.World(WorldOptions{})
	cluster := id(graph.Cluster, "default", "c1")
	plan, err := adopt.Pass(context.Background(), w, cluster)
	if err != nil || plan.Phase != adopt.Adopting {
		t.Fatalf("%s (%v)", plan, err)
	}
	o, err := c.Get(context.Background(), id(graph.MachineDeployment, "default", "md"), false)
	if err != nil || len(o.Owners) != 1 || o.Owners[0].UID != "uid-c1" {
		t.Errorf("owners %v (%v)", o.Owners, err)
	}
	if plan, err = adopt.Pass(context.Background(), w, cluster); err != nil || plan.Phase != adopt.AwaitingStatus {
		t.Errorf("then %s (%v)", plan, err)
	}
}
