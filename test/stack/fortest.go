package stack

import (
	"context"
	"os"
	"sync"
	"testing"
)

// shared is the one pair of a test binary.
var shared struct {
	start          sync.Once
	source, target *Management
	stop           func()
	err            error
}

// Main is what TestMain calls where tests use ForTest: it runs them, and stops
// the pair that they shared.
//
//	func TestMain(m *testing.M) { os.Exit(stack.Main(m)) }
func Main(m *testing.M) int {
	code := m.Run()
	if shared.stop != nil {
		shared.stop()
	}
	return code
}

// ForTest gives a test the pair of management clusters that all tests of its
// binary share; the first to ask waits for the start. Tests keep apart by
// namespaces. When a test fails, the logs stay and it says where.
func ForTest(t testing.TB) (source, target *Management) {
	t.Helper()
	shared.start.Do(func() {
		// Not the test's context: the pair outlives the test.
		shared.source, shared.target, shared.stop, shared.err = Pair(context.Background(), Options{Progress: os.Stderr})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	LogsOnFailure(t, shared.source, shared.target)
	return shared.source, shared.target
}

// LogsOnFailure keeps the logs when the test fails, and says where they are.
func LogsOnFailure(t testing.TB, clusters ...*Management) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, m := range clusters {
			m.KeepLogs()
			t.Logf("logs of %s: %s", m.Name(), m.LogDir())
		}
		if cloud := clusters[0].options.Cloud; cloud != nil {
			t.Logf("logs of the cloud: %s", cloud.LogDir())
		}
	})
}

// Must takes the error away from a call that a test does not want to fail:
//
//	key := stack.Must(stack.Cluster("c1").Create(ctx, m))(t)
func Must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
