package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/report"
)

// Version is what this binary is made of.
type Version struct {
	// Version is move-hook's own, "(devel)" for a build from a work tree.
	Version string `json:"version"`
	// Commit is the revision it was built from, with "-dirty" where files had changed.
	Commit string `json:"commit,omitempty"`
	Go     string `json:"go"`
	// ClusterAPI is the version of Cluster API it was built against.
	ClusterAPI string `json:"clusterAPI"`
}

const clusterAPIModule = "sigs.k8s.io/cluster-api"

// versionOf reads what the Go linker wrote down. A release says its version itself:
// built from an archive or in a container, it has no repository to know it from.
func versionOf(release string, info *debug.BuildInfo) Version {
	v := Version{Version: cmp.Or(release, info.Main.Version, "(devel)"), Go: info.GoVersion, ClusterAPI: "unknown"}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value + v.Commit
		case "vcs.modified":
			if s.Value == "true" {
				v.Commit += "-dirty"
			}
		}
	}
	if strings.HasPrefix(v.Commit, "-") {
		v.Commit = ""
	}
	for _, dep := range info.Deps {
		if dep.Path == clusterAPIModule {
			if dep.Replace != nil {
				dep = dep.Replace
			}
			v.ClusterAPI = dep.Version
		}
	}
	return v
}

// String is the text of --version.
func (v Version) String() string {
	commit := ""
	if v.Commit != "" {
		commit = " (commit " + v.Commit + ")"
	}
	return fmt.Sprintf("move-hook %s%s\nbuilt with %s against Cluster API %s\n", v.Version, commit, v.Go, v.ClusterAPI)
}

func (a *app) builtAs() Version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(a.Version, info)
}

func (a *app) version() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of move-hook and of the Cluster API it was built against",
		Example: `  move-hook version
  move-hook version -o json`,
	}
	out.add(cmd, report.Text, report.JSON, report.YAML)
	a.run(cmd, func(args []string) error { return firstError(noArgs(args), out.validate()) },
		func(context.Context, []string) (flow.Outcome, error) {
			v := a.builtAs()
			return flow.Done, a.print(out.format(), v, func(w io.Writer, _ report.Style) error {
				_, err := io.WriteString(w, v.String())
				return err
			})
		})
	return cmd
}
