package clusterctl

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"
)

// script writes an executable that plays clusterctl.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clusterctl")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFind_GivenPathThenPATHThenLinked(t *testing.T) {
	onPath := script(t, "echo v1.9.3")
	t.Setenv("PATH", filepath.Dir(onPath)+":/usr/bin:/bin")

	t.Run("given path wins", func(t *testing.T) {
		given := script(t, "echo v1.14.0")
		got, err := Find(given)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Binary{Path: given, Version: "v1.14.0"}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("given path that is not there", func(t *testing.T) {
		_, err := Find("/nowhere/clusterctl")
		if err == nil || err.Error() != `clusterctl "/nowhere/clusterctl" cannot be run: no such file or directory` {
			t.Errorf("got %v", err)
		}
	})
	t.Run("PATH", func(t *testing.T) {
		got, err := Find("")
		if err != nil {
			t.Fatal(err)
		}
		if want := "clusterctl v1.9.3 (" + onPath + ")"; got.String() != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("linked", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		got, err := Find("")
		if err != nil {
			t.Fatal(err)
		}
		if !got.Linked() || !strings.HasSuffix(got.String(), "(linked into move-hook)") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("a build that does not know its version", func(t *testing.T) {
		got, err := Find(script(t, "echo"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(got.String(), "clusterctl of unknown version") {
			t.Errorf("got %s", got)
		}
	})
}

func options(stdout, stderr *bytes.Buffer) MoveOptions {
	return MoveOptions{
		From:      Kubeconfig{Path: "/tmp/source config"},
		To:        Kubeconfig{Path: "/tmp/target", Context: "admin@target"},
		Namespace: "fleet",
		Extra:     []string{"-v", "5"},
		Stdout:    stdout,
		Stderr:    stderr,
	}
}

func TestMove_PassesArgumentsAndOutputThrough(t *testing.T) {
	var stdout, stderr bytes.Buffer
	b := Binary{Path: script(t, `for a in "$@"; do echo "$a"; done
echo Moving >&2
printf half >&2`)}
	if err := b.Move(t.Context(), options(&stdout, &stderr)); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{"move", "--namespace", "fleet", "--kubeconfig", "/tmp/source config", "--to-kubeconfig", "/tmp/target", "--to-kubeconfig-context", "admin@target", "-v", "5", ""}, "\n")
	if diff := cmp.Diff(want, stdout.String()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("Moving\nhalf\n", stderr.String()); diff != "" {
		t.Error(diff)
	}
}

func TestMove_VersionCheckIsOffUnlessTheUserSays(t *testing.T) {
	b := Binary{Path: script(t, "echo $CLUSTERCTL_DISABLE_VERSIONCHECK")}
	for _, user := range []string{"", "false"} {
		want := "true\n"
		if user != "" {
			t.Setenv(disableVersionCheck, user)
			want = user + "\n"
		}
		var stdout, stderr bytes.Buffer
		if err := b.Move(t.Context(), options(&stdout, &stderr)); err != nil {
			t.Fatal(err)
		}
		if stdout.String() != want {
			t.Errorf("user says %q: got %q, want %q", user, stdout.String(), want)
		}
	}
}

func TestMove_FailureIsARunErrorThatCanBePasted(t *testing.T) {
	var stdout, stderr bytes.Buffer
	b := Binary{Path: script(t, `i=0
while [ $i -lt 20 ]; do echo "line $i" >&2; i=$((i+1)); done
echo "Error: cannot start operation while the following Clusters are paused: fleet/c1" >&2
exit 3`)}
	err := b.Move(t.Context(), options(&stdout, &stderr))
	var failed *RunError
	if !errors.As(err, &failed) {
		t.Fatalf("got %T: %v", err, err)
	}
	if failed.ExitCode != 3 || failed.Interrupted || len(failed.LastLines) != keptLines {
		t.Errorf("got %+v", failed)
	}
	want := "clusterctl move exited with code 3: cannot start operation while the following Clusters are paused: fleet/c1; the command was " +
		b.Path + " move --namespace fleet --kubeconfig '/tmp/source config' --to-kubeconfig /tmp/target --to-kubeconfig-context admin@target -v 5"
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

func TestMove_CancelInterruptsAndSaysWhatToDo(t *testing.T) {
	for name, body := range map[string]string{
		"clusterctl obeys SIGINT":   "trap 'exit 130' INT\necho started\nwhile :; do :; done",
		"clusterctl must be killed": "trap '' INT\necho started\nwhile :; do :; done",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o := MoveOptions{Namespace: "fleet", Grace: 100 * time.Millisecond, Stdout: writerFunc(func([]byte) { cancel() })}
			err := Binary{Path: script(t, body)}.Move(ctx, o)
			var failed *RunError
			if !errors.As(err, &failed) || !failed.Interrupted || !strings.Contains(err.Error(), "run `move-hook status`") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestMove_KilledBySomebodyElseIsInterruptedToo(t *testing.T) {
	err := Binary{Path: script(t, "kill -TERM $$")}.Move(t.Context(), MoveOptions{Namespace: "fleet"})
	var failed *RunError
	if !errors.As(err, &failed) || !failed.Interrupted {
		t.Errorf("got %v", err)
	}
}

func TestCheckExtra(t *testing.T) {
	mine, linkedIn := Binary{Path: "/usr/bin/clusterctl"}, Binary{}
	for _, c := range []struct {
		extra  []string
		binary Binary
		want   string
	}{
		{nil, linkedIn, ""},
		{[]string{"-v", "5"}, linkedIn, ""},
		{[]string{"-v=5", "--hide-api-warnings=none", "--config=/tmp/c.yaml"}, linkedIn, ""},
		{[]string{"--future-flag"}, mine, ""},
		{[]string{"--future-flag"}, linkedIn, "the linked clusterctl knows -v, --config and --hide-api-warnings"},
		{[]string{"--hide-api-warnings=some"}, linkedIn, `"some" is unknown`},
		{[]string{"now"}, linkedIn, "takes flags only"},
		{[]string{"--namespace=other"}, mine, "flag --namespace cannot be handed to clusterctl: give it to move-hook, before --"},
		{[]string{"-nother"}, mine, "before --"},
		{[]string{"--dry-run"}, mine, "before --"},
		{[]string{"--to-directory", "/tmp/x"}, mine, "one by one"},
	} {
		err := c.binary.CheckExtra(c.extra)
		if c.want == "" {
			if err != nil {
				t.Errorf("%v: got %v", c.extra, err)
			}
			continue
		}
		var flag *FlagError
		if !errors.As(err, &flag) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.extra, err, c.want)
		}
	}
}

func TestCommandLine_IsQuotedForAShell(t *testing.T) {
	got := Binary{}.CommandLine(MoveOptions{From: Kubeconfig{Path: "/home/o'brien/k c"}, Namespace: "fleet", DryRun: true})
	if want := `clusterctl move --namespace fleet --kubeconfig '/home/o'\''brien/k c' --dry-run`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSink_PrintsAsClusterctlDoes(t *testing.T) {
	var out bytes.Buffer
	log := klog.New(&sink{to: &out, mu: new(sync.Mutex), threshold: 1}).WithName("move").WithValues("Side", "source")
	log.Info("Moving Cluster API objects", "Clusters", 2)
	log.V(1).Info("Pausing the source cluster")
	log.V(5).Info("Too much")
	log.Error(errors.New("no route"), "Failed to connect", "Value", make(chan int))
	want := `[move] Moving Cluster API objects Side="source" Clusters=2
[move] Pausing the source cluster Side="source"
[move] Failed to connect: no route Side="source" Value=`
	if !strings.HasPrefix(out.String(), want) {
		t.Error(cmp.Diff(want, out.String()))
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }
