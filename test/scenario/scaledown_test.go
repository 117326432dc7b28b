package scenario_test

import (
	"context"
	"strings"
	"testing"

	"github.com/move-hook/move-hook/test/stack"
)

// TestP1_ScaledDownRestore is TestP1_ArmedRestore without policies: arm stops the
// providers, and post starts them once all that came is complete and held.
func TestP1_ScaledDownRestore(t *testing.T) {
	b := plain(t, "restore")
	b.clear(t)
	stop := stack.Must(world.target.RunDeployments(context.WithoutCancel(t.Context())))(t)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
		// Whatever went wrong, the other tests need them; refused where they run.
		_ = world.target.StartManagers(context.WithoutCancel(t.Context()))
	})
	hook(t, 0, "arm", "--with=scale-down", "--to-kubeconfig", world.target.Kubeconfig())
	t.Cleanup(func() {
		r, err := world.env.Hook(context.WithoutCancel(t.Context()), "disarm", "--to-kubeconfig", world.target.Kubeconfig())
		if err != nil || r.Code != 0 {
			t.Error(err, r)
		}
	})
	for _, p := range world.target.Processes() {
		if strings.HasPrefix(p.Name, "capi-core") {
			t.Errorf("%s still runs", p.Name)
		}
	}
	b.survivesControlPlaneFirst(t)
}
