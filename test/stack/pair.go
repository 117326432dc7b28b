package stack

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Pair starts two management clusters, side by side, over one cloud: what a
// pivot needs. The options hold for both; the names are "source" and "target".
//
//	source, target, stop, err := stack.Pair(ctx, stack.Options{})
//	if err != nil { … }
//	defer stop()
func Pair(ctx context.Context, o Options) (source, target *Management, stop func(), err error) {
	if _, err := build(ctx, o.Progress); err != nil {
		return nil, nil, nil, err
	}
	var cloud *Cloud
	if o.Cloud == nil && !o.Bare {
		if cloud, err = StartCloud(ctx, CloudOptions{LogDir: o.LogDir}); err != nil {
			return nil, nil, nil, err
		}
		o.Cloud = cloud
	}
	start := func(into **Management, name string) func() error {
		o := o
		o.Name = name
		if o.LogDir != "" {
			o.LogDir += "/" + name
		}
		return func() (err error) {
			*into, err = Start(ctx, o)
			return err
		}
	}
	stop = func() {
		source.Stop()
		target.Stop()
		if cloud != nil {
			cloud.Stop()
		}
	}
	var group errgroup.Group
	group.Go(start(&source, "source"))
	group.Go(start(&target, "target"))
	if err := group.Wait(); err != nil {
		stop()
		return nil, nil, nil, err
	}
	return source, target, stop, nil
}
