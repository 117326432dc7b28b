package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/report"
	"github.com/move-hook/move-hook/pkg/graph"
)

type graphOptions struct {
	sides
	scope
	output
	dir     string
	cluster string
}

func (a *app) graph() *cobra.Command {
	var o graphOptions
	cmd := &cobra.Command{
		Use:   "graph [DIRECTORY]",
		Short: "Show who owns whom, and what clusterctl would move",
		Long: long(`Graph shows the ownership of Cluster API objects, in a management cluster or in
a directory that clusterctl move --to-directory wrote: the hierarchy of every
Cluster, stale and dangling owner references, and what would stay behind in a
move, with the reason. It only reads, and never the data of Secrets.`,
			ExitDone, ExitUsage, ExitAPI),
		Example: `  # The Clusters of namespace fleet, as trees.
  move-hook graph -n fleet

  # One Cluster of a backup, one line an object.
  move-hook graph backup/ --cluster c1 -o table

  # Everything, for a program.
  move-hook graph --kubeconfig source.yaml -A -o json`,
	}
	fs := cmd.Flags()
	o.addSource(fs, "the management cluster")
	o.scope.add(fs)
	fs.StringVar(&o.dir, "dir", "", "`directory` to read instead of a management cluster")
	fs.StringVar(&o.cluster, "cluster", "", "only this Cluster, `NAME` or NAMESPACE/NAME")
	o.output.add(cmd, report.Tree, report.Table, report.JSON, report.YAML)
	a.run(cmd, o.validate, func(ctx context.Context, args []string) (flow.Outcome, error) {
		return a.runGraph(ctx, o, strings.Join(args, ""))
	})
	return cmd
}

func (o *graphOptions) validate(args []string) error {
	fromDir := o.dir != "" || len(args) > 0
	switch {
	case len(args) > 1:
		return fmt.Errorf("%s: give one directory", strings.Join(args, " and "))
	case o.dir != "" && len(args) > 0:
		return fmt.Errorf("%s and %s: give one directory", o.dir, args[0])
	case fromDir && o.source.given():
		return fmt.Errorf("a directory and a kubeconfig contradict each other: give one of them")
	}
	return firstError(o.scope.validate(), o.output.validate())
}

func (a *app) runGraph(ctx context.Context, o graphOptions, arg string) (flow.Outcome, error) {
	g, only, where, err := a.readGraph(ctx, o, cmp.Or(o.dir, arg))
	if err != nil {
		return "", err
	}
	doc := report.NewGraphDocument(g, only)
	if doc.Counts.Objects == 0 {
		fmt.Fprintf(a.Err, "Nothing in %s; -n gives another namespace, -A looks at all\n", where)
	}
	return flow.Done, a.print(o.format(), doc, func(w io.Writer, st report.Style) error {
		if o.format() == report.Table {
			return report.GraphTable(w, st, doc)
		}
		return report.GraphTree(w, st, doc)
	})
}

// readGraph reads what the flags name, and says which of it is to be shown (nil:
// all) and in words where it is from.
func (a *app) readGraph(ctx context.Context, o graphOptions, dir string) (g *graph.Graph, only []graph.ID, where string, err error) {
	var warnings []management.Warning
	namespace := o.namespace
	if dir != "" {
		if err := readable("directory", dir); err != nil {
			return nil, nil, "", err
		}
		where = "directory " + dir
		if g, warnings, err = management.ReadDir(dir); err != nil {
			return nil, nil, "", usageError{err}
		}
	} else {
		c, err := a.connect(o.source)
		if err != nil {
			return nil, nil, "", err
		}
		namespace, where = o.in(c), c.Name()
		if namespace != "" {
			where = "namespace " + namespace + " of " + where
		}
		if g, warnings, err = c.Read(ctx, management.Scope{Namespace: namespace}); err != nil {
			return nil, nil, "", err
		}
	}
	for _, w := range warnings {
		fmt.Fprintf(a.Err, "warning: %s\n", w)
	}
	switch {
	case o.cluster != "":
		only, err = belonging(g, o.cluster, namespace, where)
	case dir != "" && namespace != "":
		only = inNamespace(g, namespace)
	}
	return g, only, where, err
}

// belonging is what belongs to the Cluster of this name. Without a namespace the
// name must be clear.
func belonging(g *graph.Graph, name, namespace, where string) ([]graph.ID, error) {
	if ns, rest, qualified := strings.Cut(name, "/"); qualified {
		namespace, name = ns, rest
	}
	var found, all []string
	var id graph.ID
	for _, o := range g.OfKind(graph.Cluster) {
		all = append(all, o.Namespace+"/"+o.Name)
		if o.Name == name && (namespace == "" || o.Namespace == namespace) {
			found = append(found, o.Namespace+"/"+o.Name)
			id = o.ID
		}
	}
	switch len(found) {
	case 1:
		return g.Belongs(id), nil
	case 0:
		there := "no Clusters"
		if len(all) > 0 {
			there = strings.Join(all, ", ")
		}
		return nil, usagef("--cluster %s: there is no such Cluster in %s, which has %s", name, where, there)
	}
	return nil, usagef("--cluster %s: there are %s; give one as NAMESPACE/NAME", name, strings.Join(found, " and "))
}

func inNamespace(g *graph.Graph, namespace string) []graph.ID {
	only := []graph.ID{}
	for o := range g.All() {
		if o.Namespace == namespace || o.Namespace == "" {
			only = append(only, o.ID)
		}
	}
	return only
}
