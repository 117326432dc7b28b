package pivot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/internal/clusterctl"
	"github.com/move-hook/move-hook/internal/job"
	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/preflight"
	"github.com/move-hook/move-hook/internal/watch"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// Side is one side of a move: as move-hook reads it and as clusterctl opens it.
type Side struct {
	Cluster    *management.Cluster
	Kubeconfig clusterctl.Kubeconfig
}

// MoveOptions say what to move where.
type MoveOptions struct {
	Source, Target Side
	// OtherSideGone: a source that cannot be read is gone for good, says the user.
	OtherSideGone bool
	// Namespace to move, whole. Required: clusterctl moves one at a time.
	Namespace string
	// Names, if given, have to be all Clusters of the namespace.
	Names []types.NamespacedName
	// RecordFile is written by the preparation.
	RecordFile string
	// Ignore are IDs of findings of the preflight that the user accepts.
	Ignore []string
	// Offer offers everything to the target in a dry run before anything is written.
	Offer bool
	// Expect is a file with records, for Clusters of which neither side has one.
	Expect string
	// DryRun prepares and moves on paper only.
	DryRun bool
	// Clusterctl is the path of a clusterctl; empty for the one on PATH, else the linked one.
	Clusterctl string
	// Extra are flags for clusterctl.
	Extra []string
	// Stdout and Stderr take clusterctl's output.
	Stdout, Stderr io.Writer
	Policy         adopt.Policy
	// Job runs post on the target instead of here; nil for here.
	Job *JobOptions
	// Timeout is how long the adoption may take; zero for ever.
	Timeout  time.Duration
	Holder   string
	Progress flow.Progress
}

// JobOptions say how post runs as a Job on the target.
type JobOptions struct {
	// Image of move-hook.
	Image string
	// Args are the flags of post for the policy.
	Args []string
}

// jobber is what Move needs of job.Job.
type jobber interface {
	Install(ctx context.Context, dryRun bool) error
	Run(ctx context.Context) (job.Result, error)
}

// mover is what Move needs of clusterctl.
type mover interface {
	String() string
	CheckExtra(extra []string) error
	CommandLine(clusterctl.MoveOptions) string
	Move(context.Context, clusterctl.MoveOptions) error
}

// moving is one run of Move. Its parts are functions so that the order of things
// can be tried without management clusters.
type moving struct {
	o          MoveOptions
	clusterctl mover
	status     func(context.Context) (StatusResult, error)
	pre        func(context.Context) (PreResult, []graph.Snapshot, error)
	post       func(context.Context, []graph.ID, []graph.Snapshot) (watch.Result, error)
	// job runs post on the target; nil for post here.
	job    jobber
	verify func(context.Context, []graph.ID, []graph.Snapshot) (VerifyResult, error)
	// thaw and finish go on where an earlier run was interrupted.
	thaw, finish func(context.Context, todo) (transferred, error)
	// lock keeps other runs away until release is called; nil where there is nothing to lock.
	lock    func(context.Context) (locked context.Context, release func(), err error)
	guarded []guarded

	todo      todo
	snapshots []graph.Snapshot
	result    MoveResult
}

// Move runs a whole pivot: it prepares the source, lets clusterctl move, adopts on
// the target and verifies. Run again it goes on where an earlier run stopped, also
// where clusterctl itself was stopped half way; that is all that resuming is.
func Move(ctx context.Context, o MoveOptions) (MoveResult, error) {
	if o.Namespace == "" {
		return MoveResult{}, flow.Usage(errors.New("clusterctl moves one namespace at a time: name it with -n"))
	}
	if err := o.reach(ctx); err != nil {
		return MoveResult{}, err
	}
	binary, err := clusterctl.Find(o.Clusterctl)
	if err != nil {
		return MoveResult{}, flow.Usage(err)
	}
	m := newMoving(o, binary)
	err = m.run(ctx)
	return m.result, err
}

func newMoving(o MoveOptions, binary mover) *moving {
	m := &moving{o: o, clusterctl: binary}
	sides := sidesOf(o.Source.Cluster, o.Target.Cluster)
	if o.Source.Cluster != nil {
		m.guarded = append(m.guarded, guardOf(o.Source.Cluster, "", o.DryRun))
	}
	m.guarded = append(m.guarded, guardOf(o.Target.Cluster, " on the target", o.DryRun))
	if !o.DryRun {
		m.lock = sides.lock(o.Namespace, o.Progress)
	}
	m.status = func(ctx context.Context) (StatusResult, error) {
		return Status(ctx, StatusOptions{Source: o.Source.Cluster, Target: o.Target.Cluster, Namespace: o.Namespace, RecordFile: o.Expect})
	}
	m.thaw, m.finish = sides.thaw(o), sides.finish(o)
	m.pre = func(ctx context.Context) (PreResult, []graph.Snapshot, error) {
		p := newPreparation(PreOptions{Source: o.Source.Cluster, Target: o.Target.Cluster, Namespace: o.Namespace, RecordFile: o.RecordFile,
			DryRun: o.DryRun, Ignore: o.Ignore, Offer: o.Offer, Rights: true, Holder: o.Holder, Progress: o.Progress})
		err := p.run(ctx)
		return p.result, p.all(), err
	}
	m.post = func(ctx context.Context, clusters []graph.ID, records []graph.Snapshot) (watch.Result, error) {
		options := watch.Options{Cluster: o.Target.Cluster, Namespace: o.Namespace, Names: namesOf(clusters), Policy: o.Policy, Records: records,
			Timeout: o.Timeout, Progress: o.Progress}
		if o.Source.Cluster != nil {
			options.Other = o.Source.Cluster.OtherSide
		}
		return watch.Run(ctx, options)
	}
	if o.Job != nil {
		m.job = &job.Job{Cluster: o.Target.Cluster, Namespace: o.Namespace, Image: o.Job.Image, Args: o.Job.Args, Timeout: o.Timeout, Progress: o.Progress}
	}
	m.verify = func(ctx context.Context, clusters []graph.ID, records []graph.Snapshot) (VerifyResult, error) {
		return Verify(ctx, VerifyOptions{Target: o.Target.Cluster, Source: o.Source.Cluster, Namespace: o.Namespace, Names: namesOf(clusters),
			Progress: o.Progress, records: records})
	}
	return m
}

// reach finds out whether the source can be read, where the user says that it may be gone.
func (o *MoveOptions) reach(ctx context.Context) error {
	c := o.Source.Cluster
	if c != nil && c.Host() == o.Target.Cluster.Host() {
		return flow.Usage(fmt.Errorf("source and target are the same management cluster, %s", c.Host()))
	}
	var err error
	if o.Source.Cluster, err = unlessGone(ctx, c, o.OtherSideGone, o.Namespace, "resume", o.Progress); err != nil {
		return err
	}
	if o.Source.Cluster == nil && !o.OtherSideGone {
		return flow.Usage(errors.New("the source is not given: name it with --kubeconfig, or say --other-side-is-gone"))
	}
	return nil
}

func (m *moving) run(ctx context.Context) error {
	begin := time.Now()
	m.result = MoveResult{Outcome: flow.Done, Clusterctl: m.clusterctl.String()}
	defer func() { m.result.Seconds = time.Since(begin).Seconds() }()
	if err := m.clusterctl.CheckExtra(m.o.Extra); err != nil {
		return flow.Usage(err)
	}
	if m.lock != nil {
		locked, release, err := m.lock(ctx)
		if err != nil {
			return m.heldByAnother(err)
		}
		defer release()
		ctx = locked
	}
	err := follow(ctx, m.o.Progress, []step{
		{"Looking at both sides", m.look},
		{"", m.installJob},
		{"", m.goOn},
		{"Preparing the source", m.prepare},
		{"Moving with " + m.clusterctl.String(), m.move},
		{"Checking that everything has left and arrived", m.arrived},
		{"Adopting on the target", m.adopt},
		{"Verifying", m.judge},
	})
	if err != nil || m.o.DryRun || ctx.Err() != nil {
		return err // interrupted, there is a result to tell, and nobody to ask whether the guard may go
	}
	for _, g := range m.guarded {
		wrote, _, err := g.lift(ctx, m.o.Progress)
		m.result.Policies = append(m.result.Policies, wrote...)
		if err != nil {
			return err
		}
	}
	return nil
}

// look decides what there is to do, and refuses where a move was stopped half way.
func (m *moving) look(ctx context.Context) (end bool, err error) {
	s, err := m.status(ctx)
	if err != nil {
		return true, err
	}
	m.todo = plan(s.Clusters)
	if err := onlyNamed(m.todo.move, m.o.Names); err != nil {
		return true, err
	}
	switch {
	case len(m.todo.stuck) > 0:
		m.result.Outcome, m.result.Message = flow.Blocked, stuck(m.todo.stuck)
	case len(m.todo.move)+len(m.todo.adopt)+len(m.todo.finish) > 0:
		return false, nil
	case len(m.todo.done) > 0:
		m.result.AlreadyDone = true
		m.result.Message = fmt.Sprintf("there is nothing left to do: %s on the target, adopted, and not on the source", nouns(m.todo.done))
	default:
		m.result.Outcome = flow.Findings
		m.result.Findings = []finding.Finding{preflight.NoCluster("the source", m.o.Namespace)}
		m.result.Message = "no Cluster is in scope, nothing was moved"
	}
	return true, nil
}

// prepare runs pre. What was moved by an earlier run is not on the source any more.
func (m *moving) prepare(ctx context.Context) (end bool, err error) {
	if len(m.todo.move) == 0 {
		return false, nil
	}
	pre, snapshots, err := m.pre(ctx)
	m.result.Pre, m.snapshots = &pre, snapshots
	m.result.Findings = pre.Findings
	if err != nil || pre.Outcome == flow.Done {
		return err != nil, err
	}
	m.result.Outcome, m.result.Message = pre.Outcome, pre.Message
	if pre.Outcome == flow.Findings {
		m.result.Message = "the source is not ready to be moved, nothing was moved"
	}
	return true, nil
}

// move runs clusterctl. A dry run ends here: there is nothing to adopt.
func (m *moving) move(ctx context.Context) (end bool, err error) {
	if len(m.todo.move) == 0 {
		return false, nil
	}
	o := clusterctl.MoveOptions{From: m.o.Source.Kubeconfig, To: m.o.Target.Kubeconfig, Namespace: m.o.Namespace, DryRun: m.o.DryRun,
		Extra: m.o.Extra, Stdout: m.o.Stdout, Stderr: m.o.Stderr}
	m.result.CommandLine = m.clusterctl.CommandLine(o)
	m.o.Progress.Say(flow.Update{Time: time.Now(), Message: "Running " + m.result.CommandLine})
	err = m.clusterctl.Move(ctx, o)
	var failed *clusterctl.RunError
	if errors.As(err, &failed) && !m.o.DryRun {
		return true, m.failed(ctx, err)
	}
	if err == nil && m.o.DryRun {
		m.result.Message = "dry run: nothing was changed"
	}
	return err != nil || m.o.DryRun, err
}

// failed finds out whether clusterctl stopped before or in the middle of the move:
// before, its error is all there is; in the middle, there are two ways out.
func (m *moving) failed(ctx context.Context, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	s, err := m.status(ctx)
	if err != nil {
		return fmt.Errorf("%w; where it stands is unknown (%w): run `move-hook status`", why, err)
	}
	left := plan(s.Clusters)
	switch {
	case len(left.stuck) > 0:
		m.result.Outcome = flow.Blocked
		m.result.Message = why.Error() + "; " + stuck(left.stuck)
		return nil
	case len(left.thaw)+len(left.finish) > 0:
		return fmt.Errorf("%w; the move stopped half way: `move-hook resume -n %s` goes on, `move-hook rollback -n %s` undoes it", why, m.o.Namespace, m.o.Namespace)
	}
	return why
}

// arrived does not believe that clusterctl moved because it says so.
func (m *moving) arrived(ctx context.Context) (end bool, err error) {
	if len(m.todo.move) == 0 {
		return false, nil
	}
	s, err := m.status(ctx)
	if err != nil {
		return true, err
	}
	for _, c := range s.Clusters {
		if !slices.Contains(m.todo.move, c.Cluster) {
			continue
		}
		f := finding.Finding{ID: "NotMoved", Severity: finding.Stops, Object: c.Cluster.String(), Remedy: "see `move-hook status`"}
		switch {
		case !c.Target.any():
			f.Message = "is not on the target, although clusterctl ended without an error"
		case c.Source.any():
			f.Message = fmt.Sprintf("is still on the source with %d objects, although clusterctl ended without an error", c.Source.Objects)
		default:
			continue
		}
		m.result.Findings = append(m.result.Findings, f)
	}
	if !preflight.Stops(m.result.Findings) {
		return false, nil
	}
	m.result.Outcome, m.result.Message = flow.Findings, "clusterctl did not move everything"
	return true, nil
}

// installJob makes sure that the Job can run before anything is moved.
func (m *moving) installJob(ctx context.Context) (end bool, err error) {
	if m.job == nil {
		return false, nil
	}
	m.o.Progress.Say(flow.Update{Time: time.Now(), Step: "Installing what post's Job needs on the target"})
	err = m.job.Install(ctx, m.o.DryRun)
	return err != nil, err
}

func (m *moving) adopt(ctx context.Context) (end bool, err error) {
	if m.o.DryRun {
		m.result.Message = "dry run: the Clusters are on the target already and would be adopted"
		return true, nil
	}
	if m.job != nil {
		return m.adoptByJob(ctx)
	}
	post, err := m.post(ctx, m.clusters(), m.snapshots)
	m.result.Post = &post
	if err != nil || post.Outcome == flow.Done {
		return err != nil, err
	}
	m.notAdopted(post.Outcome, post.Message)
	return true, nil
}

func (m *moving) adoptByJob(ctx context.Context) (end bool, err error) {
	ran, err := m.job.Run(ctx)
	if err != nil {
		return true, err
	}
	m.result.Job = &ran
	if ran.Outcome == flow.Done {
		return false, nil
	}
	m.notAdopted(ran.Outcome, fmt.Sprintf("see what Job %s/%s says", ran.Namespace, ran.Name))
	return true, nil
}

func (m *moving) notAdopted(outcome flow.Outcome, why string) {
	m.result.Outcome, m.result.Message = outcome, "the Clusters are on the target and not all are adopted"
	if why != "" {
		m.result.Message += ": " + why
	}
}

func (m *moving) judge(ctx context.Context) (end bool, err error) {
	v, err := m.verify(ctx, m.clusters(), m.snapshots)
	m.result.Verify = &v
	m.result.Outcome = v.Outcome
	switch {
	case err != nil:
	case v.Outcome == flow.Done:
		m.result.Message = "moved, adopted and verified: " + nouns(m.clusters())
	default:
		m.result.Message = "moved and adopted, but the target is not what the source was"
	}
	return true, err
}

// clusters are those that this run is about.
func (m *moving) clusters() []graph.ID {
	all := slices.Concat(m.todo.move, m.todo.finish, m.todo.adopt)
	slices.SortFunc(all, graph.ID.Compare)
	return all
}
