package stack_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/move-hook/move-hook/test/stack"
)

// victim is set in the environment of a copy of this test binary that starts a
// stack in order to be killed.
const victim = "MOVE_HOOK_STACK_VICTIM"

func TestMain(m *testing.M) {
	if os.Getenv(victim) != "" {
		beVictim()
	}
	os.Exit(stack.Main(m))
}

func beVictim() {
	ctx := context.Background()
	cloud, err := stack.StartCloud(ctx, stack.CloudOptions{})
	if err != nil {
		panic(err)
	}
	m, err := stack.Start(ctx, stack.Options{Name: "victim", Bare: true, GarbageCollector: true, Cloud: cloud})
	if err != nil {
		panic(err)
	}
	for _, p := range m.Processes() {
		fmt.Println(p.PID)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestKilled_TakesEveryProcessAlong(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	// Its folders cannot be removed by a process that is killed; the test's are.
	cmd.Env = append(os.Environ(), victim+"=1", "TMPDIR="+t.TempDir())
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close() // it only has to stay open until here
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(stdout); lines.Scan() && lines.Text() != "ready"; {
		var pid int
		if _, err := fmt.Sscan(lines.Text(), &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if len(pids) != 4 {
		t.Fatalf("want etcd, API server, controller manager and cloud, got processes %v", pids)
	}
	waitGone(t, pids)
}

func TestStop_LeavesNoProcessAndNoFile(t *testing.T) {
	ctx := t.Context()
	t.Setenv("TMPDIR", t.TempDir())
	m, err := stack.Start(ctx, stack.Options{Name: "short", Bare: true, GarbageCollector: true})
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, p := range m.Processes() {
		pids = append(pids, p.PID)
	}
	m.Stop()
	waitGone(t, pids)
	m.Stop() // a second time does nothing

	left, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		if strings.HasPrefix(entry.Name(), "move-hook-stack-") {
			t.Errorf("left behind: %s", entry.Name())
		}
	}
}

func waitGone(t *testing.T, pids []int) {
	t.Helper()
	var left []int
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		left = nil
		for _, pid := range pids {
			if alive(pid) {
				left = append(left, pid)
			}
		}
		return len(left) == 0, nil
	})
	if err != nil {
		t.Fatalf("processes %v still run", left)
	}
}

// alive takes a zombie, which somebody else has yet to bury, for dead.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err != nil || !strings.Contains(string(status), "State:\tZ")
}
