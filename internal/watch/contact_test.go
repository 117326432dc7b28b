package watch

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestContact_OnlySilenceCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c contact
		for name, answer := range map[string]error{
			"a result":  nil,
			"forbidden": apierrors.NewForbidden(leaseResource, "x", nil),
			"busy":      apierrors.NewTooManyRequests("later", 1),
		} {
			c.report(errors.New("connection refused"))
			<-time.After(patience)
			if c.lost() == nil {
				t.Errorf("before %s: a minute of silence was not noticed", name)
			}
			c.report(answer)
			if err := c.lost(); err != nil {
				t.Errorf("after %s: %v", name, err)
			}
		}
		c.report(apierrors.NewInternalError(errors.New("etcd is gone")))
		<-time.After(patience - time.Second)
		if err := c.lost(); err != nil {
			t.Errorf("too early: %v", err)
		}
	})
}
