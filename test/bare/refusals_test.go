package bare_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/labels"
	"github.com/move-hook/move-hook/test/stack"
)

// refused demands an error with these words; unknown says whether the write may
// have taken effect.
func refused(t *testing.T, err error, unknown bool, words ...string) {
	t.Helper()
	var write *management.WriteError
	if !errors.As(err, &write) {
		t.Fatalf("want an error about a write, got %v", err)
	}
	if write.Unknown != unknown {
		t.Errorf("outcome unknown: %t, want %t: %v", write.Unknown, unknown, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %q: %v", word, err)
		}
	}
}

func TestAnswers_SecondControllerIsFoundByTheDryRun(t *testing.T) {
	s := machine(t, "answers-controller")
	two := s.setOwners(controllerOf("one", "c"), controllerOf("two", "d"))
	for _, dryRun := range []bool{true, false} {
		_, err := s.Apply(t.Context(), two, dryRun)
		refused(t, err, false, s.id.String(), "metadata.ownerReferences", "Only one reference can have Controller set to true")
		s.unchanged(t, s.before)
	}
}

func TestAnswers_DryRunStoresNothing(t *testing.T) {
	s := machine(t, "answers-dryrun")
	for _, action := range []func() adopt.Action{
		func() adopt.Action { return s.setOwners(controllerOf("uid", "c")) },
		func() adopt.Action { return s.change(held()) },
		func() adopt.Action { return s.change(labels.MarkPending(labels.Meta{})) },
	} {
		s.look(t)
		a := action()
		got, err := s.Apply(t.Context(), a, true)
		if err != nil || got != adopt.Applied {
			t.Errorf("%s: outcome %d, error %v", a, got, err)
		}
		s.unchanged(t, s.before)
		// The probe did not use up the version that the decision saw.
		s.apply(t, a, adopt.Applied, "PATCH 200")
	}
}

func TestAnswers_ForbiddenNamesObjectAndVerb(t *testing.T) {
	s := machine(t, "answers-forbidden")
	reader := open(t, user("bare-reader"))
	grant(t, "bare-reader", []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}},
		func(ctx context.Context) error {
			_, err := reader.Get(ctx, s.id, false)
			return err
		})
	for _, dryRun := range []bool{true, false} {
		_, err := reader.Apply(t.Context(), s.setOwners(controllerOf("uid", "c")), dryRun)
		refused(t, err, false, s.id.String(), `User "bare-reader" cannot patch resource "machines"`)
		s.unchanged(t, s.before)
	}
	// Who may not even read has nothing confirmed.
	nobody := open(t, user("bare-nobody"))
	if ok, err := nobody.Confirm(t.Context(), []adopt.Target{s.on}); ok || err == nil {
		t.Errorf("confirmed: %t, %v", ok, err)
	}
}

func TestAnswers_APIServerAway(t *testing.T) {
	s := machine(t, "answers-away")
	proxy := stack.Must(stack.Proxy(world.Management))(t)
	through := stack.Must(management.OpenConfig(proxy.RESTConfig(), "proxied"))(t)
	if ok, err := through.Confirm(t.Context(), []adopt.Target{s.on}); err != nil || !ok {
		t.Fatalf("confirmed: %t, %v", ok, err)
	}
	proxy.Close()
	for _, dryRun := range []bool{true, false} {
		_, err := through.Apply(soon(t), s.change(held()), dryRun)
		refused(t, err, true, s.id.String(), "outcome unknown")
	}
	if ok, err := through.Confirm(soon(t), []adopt.Target{s.on}); ok || err == nil {
		t.Errorf("confirmed: %t, %v", ok, err)
	}
	s.unchanged(t, s.before)
}

// soon ends before a request that nobody hears has been tried again for long.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestAnswers_AnswerLost(t *testing.T) {
	for name, when := range map[string]stack.Moment{"before": stack.Before, "after": stack.After} {
		t.Run(name, func(t *testing.T) {
			s := machine(t, "answers-lost-"+name)
			proxy := stack.Must(stack.Proxy(world.Management))(t)
			defer proxy.Close()
			through := stack.Must(management.OpenConfig(proxy.RESTConfig(), "proxied"))(t)
			if _, err := through.Discover(t.Context()); err != nil {
				t.Fatal(err)
			}
			proxy.CutAt(1, when)
			change := s.change(held())
			_, err := through.Apply(soon(t), change, false)
			refused(t, err, true, s.id.String())
			if err := proxy.Heal(); err != nil {
				t.Fatal(err)
			}
			// Whoever observes again sees which of the two it was.
			s.look(t)
			if took := labels.IsHeld(labels.MetaOf(&s.before)); took != (when == stack.After) {
				t.Fatalf("took effect: %t", took)
			}
			want := adopt.Applied
			if when == stack.After {
				want = adopt.AlreadyThere
			}
			if got, err := through.Apply(t.Context(), s.change(change.Change), false); err != nil || got != want {
				t.Errorf("then outcome %d, error %v; want %d", got, err, want)
			}
		})
	}
}

// race has n writers, all with the same target, begin at once, and says how often
// the object changed.
func (s *subject) race(t *testing.T, n int, action func(i int) adopt.Action) (outcomes []adopt.Outcome, writes int) {
	t.Helper()
	s.look(t)
	w, err := world.Client().Watch(t.Context(), &clusterv1.MachineList{}, client.InNamespace(s.key.Namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: s.on.ResourceVersion}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	outcomes = make([]adopt.Outcome, n)
	errs := make([]error, n)
	begin := make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-begin
			outcomes[i], errs[i] = s.Apply(t.Context(), action(i), false)
		})
	}
	close(begin)
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	s.somebody(t, func(m *clusterv1.Machine) { m.Labels["end"] = s.on.ResourceVersion })
	for e := range w.ResultChan() {
		if m, ok := e.Object.(*clusterv1.Machine); e.Type != watch.Modified || !ok {
			t.Fatalf("the watch says %s %v", e.Type, e.Object)
		} else if m.Labels["end"] == s.on.ResourceVersion {
			break
		}
		writes++
	}
	slices.Sort(outcomes)
	return outcomes, writes
}

var pending = map[string]string{labels.Adoption: labels.Pending}

func TestAnswers_TwoWritersAtOnce(t *testing.T) {
	s := machine(t, "answers-race")
	hold := held()
	for round := range 20 {
		for _, step := range []struct {
			change labels.Change
			second adopt.Outcome
			want   labels.Meta
		}{
			// The second finds the label there.
			{labels.MarkPending(labels.Meta{}), adopt.AlreadyThere, labels.Meta{Labels: pending}},
			// The second finds a pause that the decision did not see.
			{hold, adopt.Moved, labels.Meta{Labels: pending, Annotations: hold.SetAnnotations}},
			// What the second is to drop is not there any more.
			{labels.Release(hold.Apply(labels.Meta{})), adopt.Moved, labels.Meta{Labels: pending}},
			{labels.ClearPending(labels.Meta{Labels: pending}), adopt.Moved, labels.Meta{}},
		} {
			outcomes, writes := s.race(t, 2, func(int) adopt.Action { return s.change(step.change) })
			if !slices.Equal(outcomes, []adopt.Outcome{adopt.Applied, step.second}) || writes != 1 {
				t.Fatalf("round %d, %s: outcomes %v, %d writes", round, step.change, outcomes, writes)
			}
			o := get(t, s.Cluster, s.id)
			if !maps.Equal(o.Annotations, step.want.Annotations) || o.Labels[labels.Adoption] != step.want.Labels[labels.Adoption] {
				t.Fatalf("round %d, %s: labels %v, annotations %v", round, step.change, o.Labels, o.Annotations)
			}
		}
		// Owners: the second sees that they are not what was decided on.
		uid := types.UID(fmt.Sprint("uid-", round))
		outcomes, writes := s.race(t, 2, func(int) adopt.Action { return s.setOwners(controllerOf(uid, "c")) })
		if !slices.Equal(outcomes, []adopt.Outcome{adopt.Applied, adopt.Moved}) || writes != 1 {
			t.Fatalf("round %d, owners: outcomes %v, %d writes", round, outcomes, writes)
		}
		if o := get(t, s.Cluster, s.id); len(o.Owners) != 1 || o.Owners[0].UID != uid {
			t.Fatalf("round %d: owners %v", round, o.Owners)
		}
	}
	// Writers of different things all get through.
	const writers = 4
	outcomes, writes := s.race(t, writers, func(i int) adopt.Action {
		return s.change(labels.Change{SetAnnotations: map[string]string{fmt.Sprintf("writer-%d", i): "was here"}})
	})
	if slices.ContainsFunc(outcomes, func(o adopt.Outcome) bool { return o != adopt.Applied }) || writes != writers {
		t.Errorf("outcomes %v, %d writes", outcomes, writes)
	}
	if o := get(t, s.Cluster, s.id); len(o.Annotations) != writers {
		t.Errorf("annotations %v", o.Annotations)
	}
}
