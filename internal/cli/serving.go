package cli

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/move-hook/move-hook/internal/watch"
)

// serving are the flags of a post that stays.
type serving struct {
	watch   bool
	service watch.Service
	flags   *pflag.FlagSet
}

func (s *serving) add(fs *pflag.FlagSet) {
	s.flags = fs
	fs.BoolVar(&s.watch, "watch", false,
		"stay until interrupted: adopt new Clusters, and adopted ones that are pivoted again")
	fs.StringVar(&s.service.MetricsAddress, "metrics-bind-address", ":8080", "with --watch: `address` that serves /metrics; 0 for none")
	fs.StringVar(&s.service.HealthAddress, "health-probe-bind-address", ":8081", "with --watch: `address` that serves /healthz and /readyz; 0 for none")
	fs.BoolVar(&s.service.LeaderElect, "leader-elect", false,
		"with --watch: of several processes one works, the others stand by")
}

// validate refuses flags that would be without effect.
func (s *serving) validate() error {
	if s.watch {
		for _, name := range []string{"timeout", "dry-run"} {
			if s.flags.Changed(name) {
				return fmt.Errorf("--%s and --watch exclude each other: --watch stays until it is interrupted", name)
			}
		}
		return nil
	}
	for _, name := range []string{"metrics-bind-address", "health-probe-bind-address", "leader-elect"} {
		if s.flags.Changed(name) {
			return fmt.Errorf("--%s is for --watch", name)
		}
	}
	return nil
}

func (s *serving) run(ctx context.Context, o watch.Options) (watch.Result, error) {
	if s.watch {
		return watch.Serve(ctx, o, s.service)
	}
	return watch.Run(ctx, o)
}
