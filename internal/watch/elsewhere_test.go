package watch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

// sharing is a run of which no stream is read: the test says what comes.
type sharing struct{ *run }

func sharingRun(t *testing.T, o Options) sharing {
	t.Helper()
	c, err := management.OpenConfig(&rest.Config{Host: "http://127.0.0.1:1"}, "nobody")
	if err != nil {
		t.Fatal(err)
	}
	o.Cluster = c
	return sharing{newRun(o, &contact{}, nil)}
}

// comes and goes are what a feed does.
func (s sharing) comes(o graph.Object) {
	before, existed, generation := s.store.put(o)
	if existed {
		s.changed(before, generation)
	}
	s.changed(o, generation)
}

func (s sharing) goes(o graph.Object) {
	before, _, generation := s.store.remove(o)
	s.changed(before, generation)
}

func (s sharing) done() bool {
	done, _ := s.loop.finished()
	return done
}

func annotated(key, value string) func(*graph.Object) {
	return func(o *graph.Object) { o.Annotations = map[string]string{key: value} }
}

func labelled(key, value string) func(*graph.Object) {
	return func(o *graph.Object) {
		if o.Labels == nil {
			o.Labels = map[string]string{}
		}
		o.Labels[key] = value
	}
}

func version(v string) func(*graph.Object) {
	return func(o *graph.Object) { o.ResourceVersion = v }
}

func elsewhereIn(namespace string) func(*graph.Object) {
	return func(o *graph.Object) { o.Namespace = namespace }
}

// Of four shards of namespace fleet the first has c0, and c1 and c2 are of others
// (TestShard_StaysTheSameFromVersionToVersion).
func TestElsewhere_WhoHasNothingEndsWhenTheOthersHave(t *testing.T) {
	cluster := func(name string, change ...func(*graph.Object)) graph.Object {
		return object(graph.Cluster, name, change...)
	}
	set := func(of, v string, change ...func(*graph.Object)) graph.Object {
		return object(graph.MachineSet, of+"-ms", append(change, labelled(graph.ClusterNameLabel, of), version(v))...)
	}
	held, free := annotated(graph.HeldAnnotation, "test 2026-01-01T00:00:00Z"), func(*graph.Object) {}
	record := func(of, v string, change ...func(*graph.Object)) graph.Object {
		return object(graph.ConfigMap, "move-hook-record-"+of, append(change, labelled(graph.ClusterNameLabel, of), labelled(graph.RecordLabel, of), version(v))...)
	}
	closed := annotated(graph.AdoptedAnnotation, "2026-01-01T00:00:00Z")
	type step struct {
		what        string
		comes, goes graph.Object
		done        bool
	}
	for name, c := range map[string]struct {
		o     Options
		steps []step
	}{
		"by holds": {steps: []step{
			{what: "a Cluster of no pivot", comes: cluster("c1")},
			{what: "a hold", comes: set("c1", "1", held)},
			{what: "the release", comes: cluster("c1", version("2"), annotated(graph.ReleasedAnnotation, "2026-01-01T00:00:00Z"))},
			{what: "no hold", comes: set("c1", "2", free)},
			{what: "no time of release", comes: cluster("c1", version("3")), done: true},
			{what: "another Cluster's hold", comes: set("c2", "1", held)},
			{what: "it goes", goes: set("c2", "1"), done: true},
			{what: "an own Cluster", comes: cluster("c0")},
		}},
		"by the label": {steps: []step{
			{comes: cluster("c1")},
			{what: "the label", comes: object(graph.Machine, "c1-cp-0", labelled(graph.ClusterNameLabel, "c1"), labelled(graph.AdoptionLabel, graph.AdoptionPending))},
			{what: "no label", comes: object(graph.Machine, "c1-cp-0", labelled(graph.ClusterNameLabel, "c1"), version("2")), done: true},
		}},
		"by records": {steps: []step{
			{what: "one that was announced", comes: cluster("c1", annotated(graph.RecordAnnotation, "x"))},
			{what: "an open one", comes: record("c1", "1")},
			{what: "a closed one", comes: record("c1", "2", closed)},
			{what: "all is done", comes: cluster("c1", version("2")), done: true},
		}},
		"by records of which there is no Cluster": {steps: []step{
			{what: "a closed record", comes: record("c1", "1", closed)},
			{what: "its Cluster", comes: cluster("c1"), done: true},
			{what: "it goes", goes: cluster("c1")},
		}},
		"not while something of ours is on its way": {steps: []step{
			{comes: cluster("c1")},
			{what: "a closed record", comes: record("c1", "1", closed), done: true},
			{what: "a hold of our own", comes: set("c0", "1", held)},
		}},
		"not by what another namespace has": {o: Options{Namespace: "fleet"}, steps: []step{
			{comes: cluster("c1", elsewhereIn("other"))},
			{what: "its closed record", comes: record("c1", "1", closed, elsewhereIn("other"))},
			{comes: cluster("c1")},
			{what: "a closed record", comes: record("c1", "1", closed), done: true},
			{what: "the other's hold", comes: set("c1", "1", held, elsewhereIn("other")), done: true},
		}},
		"in a dry run nobody removes a mark": {o: Options{DryRun: true}, steps: []step{
			{comes: cluster("c1")},
			{what: "a hold", comes: set("c1", "1", held), done: true},
		}},
		"not with Clusters that the user named": {o: Options{Names: []types.NamespacedName{{Namespace: "fleet", Name: "c0"}}}, steps: []step{
			{comes: cluster("c1")},
			{what: "a closed record", comes: record("c1", "1", closed)},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Shard = Shard{Index: 0, Count: 4}
			s := sharingRun(t, c.o)
			if s.done() {
				t.Error("done with nothing")
			}
			for _, step := range c.steps {
				if step.goes.Name != "" {
					s.goes(step.goes)
				} else {
					s.comes(step.comes)
				}
				if got := s.done(); got != step.done {
					t.Errorf("%s: done is %t", step.what, got)
				}
			}
		})
	}
	t.Run("not for whom there are no shards", func(t *testing.T) {
		s := sharingRun(t, Options{Shard: Shard{Count: 1}})
		s.comes(record("c1", "1", closed))
		if s.elsewhere != nil || s.done() {
			t.Error("it looks elsewhere")
		}
	})
	t.Run("not while something cannot be seen", func(t *testing.T) {
		s := sharingRun(t, Options{Shard: Shard{Count: 4}})
		machines := place{kind: graph.Machine}
		s.store.expect(machines)
		s.comes(cluster("c1"))
		s.comes(record("c1", "1", closed))
		if s.done() {
			t.Error("done without having seen Machines")
		}
		s.store.setListed(machines, true)
		s.store.expect(machines)
		if !s.done() {
			t.Error("it goes on")
		}
	})
}

func TestElsewhere_WhatChangesThereWakesTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sharingRun(t, Options{Shard: Shard{Index: 0, Count: 4}})
		defer s.loop.queue.ShutDown()
		hold := annotated(graph.HeldAnnotation, "test")
		s.comes(object(graph.Cluster, "c1", hold))
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		time.AfterFunc(time.Minute, func() { s.comes(object(graph.Cluster, "c1", version("2"))) })
		if err := s.loop.wait(ctx, false); err != nil || time.Since(begin) != time.Minute {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
		result := s.result(nil)
		if want := "no Cluster of a pivot falls to shard 0 of 4: the others have adopted 1"; result.Message != want || len(result.Clusters) > 0 {
			t.Errorf("got %q, want %q", result.Message, want)
		}
	})
}

// Who has Clusters of its own ends by these, as ever.
func TestElsewhere_WhoHasSomethingDoesNotCare(t *testing.T) {
	s := sharingRun(t, Options{Shard: Shard{Index: 0, Count: 4}})
	s.comes(object(graph.Cluster, "c1", annotated(graph.HeldAnnotation, "test")))
	own := clusterID("fleet", "c0")
	s.loop.add(own)
	s.loop.note(own, in(adopt.Deferred), nil)
	if s.done() {
		t.Error("done with a Cluster that is deferred")
	}
	s.loop.note(own, in(adopt.Adopted), nil)
	if !s.done() {
		t.Error("it waits for others")
	}
	s.comes(object(graph.Cluster, "c1", version("2")))
	s.loop.note(own, in(adopt.AwaitingStatus), nil)
	if s.done() {
		t.Error("done because others are")
	}
}
