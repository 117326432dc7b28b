package clusterctl

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	logf "sigs.k8s.io/cluster-api/cmd/clusterctl/log"
	"sigs.k8s.io/cluster-api/util/apiwarnings"
)

// linkedFlags are the flags of `clusterctl move` that the library has a way for.
type linkedFlags struct {
	verbosity   int
	config      string
	apiWarnings string
}

// parseLinked reads the flags after `--` as clusterctl would; the error is a *FlagError.
func parseLinked(extra []string) (linkedFlags, error) {
	var f linkedFlags
	set := pflag.NewFlagSet("clusterctl move", pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.IntVarP(&f.verbosity, "v", "v", 0, "")
	set.StringVar(&f.config, "config", "", "")
	set.StringVar(&f.apiWarnings, "hide-api-warnings", "default", "")
	if err := set.Parse(extra); err != nil {
		return f, &FlagError{Flag: strings.Join(extra, " "), Why: fmt.Sprintf("%s; the linked clusterctl knows -v, --config and --hide-api-warnings: name your own with --clusterctl PATH for others", err)}
	}
	if set.NArg() > 0 {
		return f, &FlagError{Flag: set.Arg(0), Why: "`clusterctl move` takes flags only"}
	}
	switch f.apiWarnings {
	case "all", "default", "none":
		return f, nil
	}
	return f, &FlagError{Flag: "--hide-api-warnings", Why: fmt.Sprintf("%q is unknown; choose default, all or none", f.apiWarnings)}
}

// linked guards the library's one global logger.
var linked sync.Mutex

// moveLinked does what clusterctl's cmd/move.go runMove does. The library stops
// at its next request when ctx ends, so there is no grace to wait for.
func (b Binary) moveLinked(ctx context.Context, o MoveOptions) error {
	flags, err := parseLinked(o.Extra)
	if err != nil {
		return err
	}
	stderr := &lines{mu: new(sync.Mutex), to: o.Stderr}
	defer stderr.Flush()

	linked.Lock()
	defer linked.Unlock()
	before := logf.Log
	logf.SetLogger(klog.New(&sink{to: stderr, mu: new(sync.Mutex), threshold: flags.verbosity}))
	defer logf.SetLogger(before)

	err = callLibrary(ctx, flags, o)
	if err == nil {
		return nil
	}
	stderr.Flush()
	return &RunError{
		CommandLine: b.CommandLine(o),
		ExitCode:    -1,
		LastLines:   append(stderr.last, err.Error()),
		Interrupted: ctx.Err() != nil,
		Err:         err,
	}
}

func callLibrary(ctx context.Context, flags linkedFlags, o MoveOptions) error {
	configuration, err := config.New(ctx, flags.config)
	if err != nil {
		return err
	}
	clusterctl, err := client.New(ctx, flags.config,
		client.InjectConfig(configuration),
		client.InjectClusterClientFactory(clusters(configuration, flags.apiWarnings)))
	if err != nil {
		return err
	}
	return clusterctl.Move(ctx, client.MoveOptions{
		FromKubeconfig: client.Kubeconfig{Path: o.From.Path, Context: o.From.Context},
		ToKubeconfig:   client.Kubeconfig{Path: o.To.Path, Context: o.To.Context},
		Namespace:      o.Namespace,
		DryRun:         o.DryRun,
	})
}

// clusters makes the library's cluster clients with the wanted warning handler,
// as clusterctl's cmd/move.go runMove does.
func clusters(configuration config.Client, warnings string) client.ClusterClientFactory {
	log := logf.Log.WithName("API Server Warning")
	return func(input client.ClusterClientFactoryInput) (cluster.Client, error) {
		handler := cluster.InjectWarningHandler(apiwarnings.DefaultHandler(log))
		switch warnings {
		case "all":
			handler = cluster.InjectWarningHandler(apiwarnings.DiscardAllHandler)
		case "none":
			handler = cluster.InjectWarningHandler(apiwarnings.LogAllHandler(log))
		}
		kubeconfig := cluster.Kubeconfig(input.Kubeconfig)
		return cluster.New(kubeconfig, configuration,
			cluster.InjectYamlProcessor(input.Processor),
			cluster.InjectProxy(cluster.NewProxy(kubeconfig, handler)),
		), nil
	}
}
