package pivot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/preflight"
	"github.com/move-hook/move-hook/internal/record"
	"github.com/move-hook/move-hook/internal/watch"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// RollbackOptions say which pivot to undo.
type RollbackOptions struct {
	Source, Target *management.Cluster
	// OtherSideGone: a target that cannot be read is gone for good, says the user.
	OtherSideGone bool
	// Namespace is rolled back whole, as clusterctl moves it. Required.
	Namespace string
	// RecordFile stands in for a record that is on neither side.
	RecordFile string
	DryRun     bool
	// Policy is for the adoption on the source, where objects had to be made again.
	Policy adopt.Policy
	// Timeout is how long that may take; zero for ever.
	Timeout  time.Duration
	Progress flow.Progress
}

// RollbackResult is how Rollback ended.
type RollbackResult struct {
	// Outcome is Done, Blocked (something cannot be given back, and nothing was
	// changed), Deferred or Findings (the source is not what the record says).
	Outcome   flow.Outcome `json:"outcome"`
	Namespace string       `json:"namespace,omitempty"`
	DryRun    bool         `json:"dryRun,omitempty"`
	// Clusters that were rolled back.
	Clusters []graph.ID        `json:"clusters"`
	Findings []finding.Finding `json:"findings,omitempty"`
	Writes   []flow.Write      `json:"writes"`
	// Post is the adoption on the source; nil where nothing had to be made again.
	Post    *watch.Result `json:"post,omitempty"`
	Message string        `json:"message,omitempty"`
	Seconds float64       `json:"seconds"`
}

// Rollback undoes a pivot whose adoption has not finished: the source gets back what
// is missing there from the target's copies, the target's copies go without what they
// stand for, and the source is reconciled as before. It may be killed anywhere and
// run again.
func Rollback(ctx context.Context, o RollbackOptions) (RollbackResult, error) {
	if o.Namespace == "" {
		return RollbackResult{}, flow.Usage(errors.New("a rollback is of one namespace, as the move was: name it with -n"))
	}
	if o.Target != nil && o.Source.Host() == o.Target.Host() {
		return RollbackResult{}, flow.Usage(fmt.Errorf("source and target are the same management cluster, %s", o.Source.Host()))
	}
	target, err := unlessGone(ctx, o.Target, o.OtherSideGone, o.Namespace, "rollback", o.Progress)
	if err != nil {
		return RollbackResult{}, err
	}
	if o.Target = target; target == nil && !o.OtherSideGone {
		return RollbackResult{}, flow.Usage(errors.New("the target is not given: name it with --to-kubeconfig, or say --other-side-is-gone"))
	}
	r := &rollback{o: o, sides: sidesOf(o.Source, o.Target)}
	err = r.run(ctx)
	return r.result, err
}

// rollback is one run of Rollback.
type rollback struct {
	o        RollbackOptions
	sides    pair
	undo     undo
	transfer *transfer
	result   RollbackResult
}

func (r *rollback) run(ctx context.Context) error {
	begin := time.Now()
	r.result = RollbackResult{Outcome: flow.Done, Namespace: r.o.Namespace, DryRun: r.o.DryRun, Clusters: []graph.ID{}, Writes: []flow.Write{}}
	defer func() { r.result.Seconds = time.Since(begin).Seconds() }()
	if !r.o.DryRun {
		locked, release, err := r.lock(ctx)
		var held *watch.HeldError
		if errors.As(err, &held) {
			r.result.Outcome, r.result.Message = flow.Deferred, held.Error()
			return nil
		}
		if err != nil {
			return err
		}
		defer release()
		ctx = locked
	}
	err := follow(ctx, r.o.Progress, []step{
		{"Looking at both sides", r.look},
		{"Checking that everything can be given back", r.check},
		{"Pausing the target", r.each((*transfer).pause)},
		{"Completing the source", r.each((*transfer).complete)},
		{"", r.each((*transfer).mark)},
		{"Removing the target's copies", r.each((*transfer).empty)},
		{"Unpausing the source", r.unpause},
		{"Adopting on the source what was made again", r.adopt},
		{"Releasing the source", r.release},
		{"Verifying the source", r.verify},
		{"Removing the record", r.forget},
	})
	if r.transfer != nil {
		r.result.Writes = append(r.transfer.writes, r.result.Writes...)
	}
	var refused refusal
	if errors.As(err, &refused) {
		r.result.Outcome, r.result.Message = flow.Blocked, refused.Error()
		err = nil
	}
	if err != nil || r.o.DryRun || r.result.Outcome != flow.Done {
		return err
	}
	return r.unguard(ctx)
}

// lock keeps off whoever moves the same namespace, and every post on the target,
// which may be a Job there: what it is adopting is not taken away under its hands.
func (r *rollback) lock(ctx context.Context) (context.Context, func(), error) {
	ctx, release, err := r.sides.lock(r.o.Namespace, r.o.Progress)(ctx)
	if err != nil || r.o.Target == nil {
		return ctx, release, err
	}
	clusters, err := r.o.Target.Clusters(ctx, r.o.Namespace)
	if err != nil {
		release()
		return nil, nil, err
	}
	ids := make([]graph.ID, len(clusters))
	for i := range clusters {
		ids[i] = clusters[i].ID
	}
	ctx, free, err := watch.LockClusters(ctx, r.o.Target.Clientset().CoordinationV1(), ids, r.o.Progress)
	if err != nil {
		release()
		return nil, nil, err
	}
	return ctx, func() { free(); release() }, nil
}

func (r *rollback) unguard(ctx context.Context) error {
	for _, e := range []*end{r.sides.source, r.sides.target} {
		if e == nil {
			continue
		}
		where := ""
		if e.side == "target" {
			where = " on the target"
		}
		wrote, _, err := guardOf(e.Cluster, where, false).lift(ctx, r.o.Progress)
		r.result.Writes = append(r.result.Writes, wrote...)
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *rollback) look(ctx context.Context) (end bool, err error) {
	s, err := Status(ctx, StatusOptions{Source: r.o.Source, Target: r.o.Target, RecordFile: r.o.RecordFile, Namespace: r.o.Namespace})
	if err != nil {
		return true, err
	}
	r.undo = planRollback(s.Clusters)
	r.result.Clusters = append(r.result.Clusters, slices.Concat(r.undo.release, r.undo.restore)...)
	slices.SortFunc(r.result.Clusters, graph.ID.Compare)
	switch {
	case len(r.undo.refused) > 0:
		r.result.Outcome, r.result.Findings = flow.Blocked, r.undo.refused
		r.result.Message = "nothing was rolled back"
		return true, nil
	case len(r.result.Clusters) == 0:
		r.result.Message = "there is nothing to roll back" + inNamespace(r.o.Namespace)
		return true, nil
	}
	return false, nil
}

// check refuses before the first write what cannot be given back whole.
func (r *rollback) check(ctx context.Context) (end bool, err error) {
	if len(r.undo.restore) == 0 {
		return false, nil
	}
	r.transfer = transferOf(r.sides.source, r.sides.target, r.o.Namespace, r.undo.restore, r.undo.records, r.o.Progress)
	r.transfer.borrowed = true
	if err := r.transfer.look(ctx); err != nil {
		return true, err
	}
	r.result.Findings = r.transfer.obstacles()
	if r.sides.target != nil {
		for _, id := range r.transfer.foreign() {
			r.result.Findings = append(r.result.Findings, finding.Finding{ID: "MachineOnlyOnTarget", Severity: finding.Stops, Object: id.String(),
				Message: "was made on the target after the move: it is real, and the source does not know it",
				Remedy:  "delete it on the target while its controllers run, or finish the pivot with move-hook resume"})
		}
	}
	if len(r.result.Findings) > 0 {
		r.result.Outcome, r.result.Message = flow.Blocked, "the source cannot be given back everything, nothing was rolled back"
		return true, nil
	}
	if r.o.DryRun {
		r.result.Writes = append(r.transfer.planned(), planned(r.undo.restore, "unpaused on the source")...)
	}
	return false, nil
}

// each is a step of the transfer, where there is one.
func (r *rollback) each(do func(*transfer, context.Context) error) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		if r.transfer == nil || r.o.DryRun {
			return false, nil
		}
		err := do(r.transfer, ctx)
		return err != nil, err
	}
}

func (r *rollback) unpause(ctx context.Context) (end bool, err error) {
	return r.each((*transfer).resume)(ctx)
}

// adopt waits, where objects had to be made again and so lost their status, until it
// is rebuilt: a control plane that is free before would take bootstrap Secrets for
// certificates. The record tells which objects are not the copies that it saw.
func (r *rollback) adopt(ctx context.Context) (end bool, err error) {
	if r.o.DryRun {
		return false, nil
	}
	again, err := r.madeAgain(ctx)
	if err != nil || len(again) == 0 {
		return err != nil, err
	}
	o := watch.Options{Cluster: r.o.Source, Namespace: r.o.Namespace, Names: namesOf(again), Policy: r.o.Policy,
		Records: r.snapshots(again), Timeout: r.o.Timeout, Progress: r.o.Progress}
	if r.o.Target != nil {
		o.Other = r.o.Target.OtherSide
	}
	post, err := watch.Run(ctx, o)
	r.result.Post = &post
	if err != nil || post.Outcome == flow.Done {
		return err != nil, err
	}
	r.result.Outcome = post.Outcome
	r.result.Message = "the source has everything again and the target nothing; its scalers are held until the status is rebuilt: " + post.Message
	return true, nil
}

// madeAgain are the Clusters with an open record that have other copies of their
// objects than the record saw.
func (r *rollback) madeAgain(ctx context.Context) ([]graph.ID, error) {
	s, err := Status(ctx, StatusOptions{Source: r.o.Source, RecordFile: r.o.RecordFile, Namespace: r.o.Namespace, Names: namesOf(r.result.Clusters)})
	if err != nil {
		return nil, err
	}
	var again []graph.ID
	for _, c := range s.Clusters {
		if c.Record.usable() && c.otherCopies > 0 && c.Source.marked() {
			again = append(again, c.Cluster)
		}
	}
	return again, nil
}

func (r *rollback) snapshots(clusters []graph.ID) []graph.Snapshot {
	var all []graph.Snapshot
	for _, c := range clusters {
		if s, ok := r.undo.records[c]; ok {
			all = append(all, s)
		}
	}
	return all
}

// preparation is what pre has for reading and writing the source.
func (r *rollback) preparation(ctx context.Context) (*preparation, error) {
	p := newPreparation(PreOptions{Source: r.o.Source, Namespace: r.o.Namespace, Names: namesOf(r.result.Clusters), DryRun: r.o.DryRun, Progress: r.o.Progress})
	return p, p.read(ctx)
}

// release takes our label and our holds off, inside out as post does it, and leaves
// what the user had paused.
func (r *rollback) release(ctx context.Context) (end bool, err error) {
	p, err := r.preparation(ctx)
	if err != nil {
		return true, err
	}
	end, err = p.converge(ctx, r.unmarks)
	r.result.Writes = append(r.result.Writes, p.result.Writes...)
	return end, err
}

func (r *rollback) unmarks(s *preflight.Scope) []adopt.Action {
	var actions []adopt.Action
	for _, o := range s.All() {
		m := labels.MetaOf(o)
		c := labels.Release(m)
		if n := r.recorded(o.ID); n != nil && n.PausedByUser {
			c.DropAnnotations = slices.DeleteFunc(c.DropAnnotations, func(k string) bool { return k == labels.Paused })
		}
		c.DropLabels = labels.ClearPending(m).DropLabels
		actions = change(actions, o, c, "rolled back")
	}
	return actions
}

func (r *rollback) recorded(id graph.ID) *graph.SnapshotNode {
	for _, s := range r.undo.records {
		if n, ok := s.Node(id); ok {
			return n
		}
	}
	return nil
}

// verify compares the source with the records before they go.
func (r *rollback) verify(ctx context.Context) (end bool, err error) {
	records := r.snapshots(r.undo.restore)
	if r.o.DryRun || len(records) == 0 {
		return false, nil
	}
	v, err := Verify(ctx, VerifyOptions{Target: r.o.Source, Namespace: r.o.Namespace, Names: namesOf(r.undo.restore), Progress: r.o.Progress, records: records})
	if err != nil || v.Outcome == flow.Done {
		return err != nil, err
	}
	r.result.Outcome, r.result.Findings = v.Outcome, v.Findings()
	r.result.Message = "the source has everything again, but it is not what the record says; the record stays"
	return true, nil
}

// forget removes the records, then their announcement.
func (r *rollback) forget(ctx context.Context) (end bool, err error) {
	for _, cluster := range r.result.Clusters {
		gone, err := record.Delete(ctx, r.o.Source.Clientset().CoreV1(), cluster, r.o.DryRun)
		for _, name := range gone {
			r.wrote(flow.Wrote(graph.ID{Kind: graph.ConfigMap.Kind, Namespace: cluster.Namespace, Name: name}, "deleted", r.o.DryRun))
		}
		if err != nil {
			return true, err
		}
	}
	p, err := r.preparation(ctx)
	if err != nil {
		return true, err
	}
	end, err = p.converge(ctx, func(s *preflight.Scope) []adopt.Action {
		var actions []adopt.Action
		for _, cluster := range s.Clusters {
			if o, ok := s.Graph.Object(cluster); ok {
				actions = change(actions, o, labels.DropAnnotations(labels.MetaOf(o), labels.Record, labels.Released), "rolled back")
			}
		}
		return actions
	})
	r.result.Writes = append(r.result.Writes, p.result.Writes...)
	if err == nil {
		r.result.Message = "rolled back: " + nouns(r.result.Clusters)
		if r.o.DryRun {
			r.result.Message = "dry run: nothing was changed"
		}
	}
	return end, err
}

func (r *rollback) wrote(w flow.Write) {
	r.result.Writes = append(r.result.Writes, w)
	r.o.Progress.Say(flow.Update{Time: time.Now(), Wrote: w})
}
