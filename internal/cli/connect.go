package cli

import (
	"context"
	"sync"

	"github.com/move-hook/move-hook/internal/clusterctl"
	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot"
	"github.com/move-hook/move-hook/internal/record"
	"github.com/move-hook/move-hook/internal/report"
	"github.com/move-hook/move-hook/pkg/graph"
)

// connection is an open management cluster and the flags that named it.
type connection struct {
	*management.Cluster
	from kubeconfig
}

// connect opens a management cluster. It talks to no server yet, so whatever is
// wrong is the kubeconfig: a usage error.
func (a *app) connect(k kubeconfig) (connection, error) {
	c, err := management.Open(management.Options{Kubeconfig: k.path, Context: k.context,
		UserAgent: "move-hook/" + a.builtAs().Version, Wrap: logRequests})
	if err != nil {
		return connection{}, usageError{err}
	}
	return connection{c, k}, nil
}

// connectIfGiven opens a management cluster that a command can do without; nil where
// no flag names it.
func (a *app) connectIfGiven(k kubeconfig) (*management.Cluster, error) {
	if !k.given() {
		return nil, nil
	}
	c, err := a.connect(k)
	return c.Cluster, err
}

// side is what Move needs: clusterctl gets the kubeconfig that we got.
func (c connection) side() pivot.Side {
	return pivot.Side{Cluster: c.Cluster, Kubeconfig: clusterctl.Kubeconfig{Path: c.from.path, Context: c.from.context}}
}

// in is the namespace that a command works in, empty for all: as with clusterctl
// the one of the kubeconfig context where no flag says.
func (s scope) in(c connection) string {
	switch {
	case s.all:
		return ""
	case s.namespace != "":
		return s.namespace
	}
	return c.Namespace()
}

// readRecords reads --record FILE; a file that cannot be used is a usage error.
func readRecords(path string) ([]graph.Snapshot, error) {
	if path == "" {
		return nil, nil
	}
	snapshots, err := record.FromFile(path)
	if err != nil {
		return nil, usageError{err}
	}
	return snapshots, nil
}

// readExpected reads --expect DIR, which stands in for records as --record FILE does.
func readExpected(dir string) ([]graph.Snapshot, []management.Warning, error) {
	snapshots, warnings, err := pivot.ReadExpected(dir)
	if err != nil {
		return nil, nil, usageError{err}
	}
	return snapshots, warnings, nil
}

// progress starts the printer of a flow and sends every log through it. encoded:
// stdout is one document, so lines about single writes go to stderr.
func (a *app) progress(ctx context.Context, encoded bool) (context.Context, *progress) {
	o := report.ProgressOptions{Redraw: a.ErrIsTerminal && !a.dumb(), Width: a.Width, Style: a.errStyle()}
	if !encoded {
		o.Results = a.Out
	}
	if a.json() {
		o.Log = a.slog()
	}
	p := &progress{Progress: report.NewProgress(a.Err, o)}
	animation, stop := context.WithCancel(ctx)
	p.stop = stop
	p.animated.Go(func() { p.Animate(animation) })
	return a.logTo(ctx, p.Around(a.Err)), p
}

// progress is a printer that is running.
type progress struct {
	*report.Progress
	stop     func()
	animated sync.WaitGroup
}

// Close ends it; results are printed after that.
func (p *progress) Close() {
	p.stop()
	p.animated.Wait()
	p.Progress.Close()
}
