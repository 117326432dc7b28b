package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/move-hook/move-hook/internal/clusterctl"
	"github.com/move-hook/move-hook/internal/pivot/flow"
)

func TestExitCodes_EveryOutcomeAndError(t *testing.T) {
	for _, c := range []struct {
		name    string
		outcome flow.Outcome
		err     error
		want    int
	}{
		{"done", flow.Done, nil, 0},
		{"findings", flow.Findings, nil, 1},
		{"deferred", flow.Deferred, nil, 3},
		{"blocked", flow.Blocked, nil, 4},
		{"an outcome nobody knows is not success", "perhaps", nil, 5},
		{"no outcome is not success", "", nil, 5},
		{"usage", "", usagef("no"), 2},
		{"usage found by a flow", "", fmt.Errorf("no: %w", flow.ErrUsage), 2},
		{"interrupted", "", fmt.Errorf("listing: %w", context.Canceled), 3},
		{"clusterctl interrupted", "", &clusterctl.RunError{Interrupted: true, Err: errors.New("killed")}, 3},
		{"clusterctl failed", "", &clusterctl.RunError{ExitCode: 1, Err: errors.New("failed")}, 5},
		{"the API failed", flow.Done, errors.New("connection refused"), 5},
		{"the API was too slow", "", context.DeadlineExceeded, 5},
	} {
		if have := codeOf(c.outcome, c.err); have != c.want {
			t.Errorf("%s: exit code %d, want %d", c.name, have, c.want)
		}
	}
}

func TestErrors_AreOneLine(t *testing.T) {
	if have := oneLine(errors.New("denied:\n  rule a\n\n  rule b\n")); have != "denied:; rule a; rule b" {
		t.Errorf("have %q", have)
	}
}

// unreachable writes a kubeconfig of a server that is not there.
func unreachable(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "away.yaml")
	text := `{apiVersion: v1, kind: Config, current-context: a,
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: a, user: {}}],
contexts: [{name: a, context: {cluster: a, user: a, namespace: fleet}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestInterrupt_IsDeferredAndSaysWhatToDo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, command := range []string{"graph", "pre", "verify", "status", "post", "arm", "disarm"} {
		var out, err bytes.Buffer
		kubeconfig := "--kubeconfig"
		if strings.HasSuffix(command, "arm") {
			kubeconfig = "--to-kubeconfig"
		}
		code := Run(ctx, Streams{Out: &out, Err: &err}, []string{command, kubeconfig, unreachable(t)})
		if code != ExitDeferred || !strings.Contains(err.String(), "interrupted: run the same command again") {
			t.Errorf("%s: exit code %d, stderr %q", command, code, err.String())
		}
	}
}

func TestStreams_NoColorWins(t *testing.T) {
	for _, c := range []struct {
		name     string
		terminal bool
		env      map[string]string
		want     bool
	}{
		{"a terminal", true, nil, true},
		{"a pipe", false, nil, false},
		{"NO_COLOR", true, map[string]string{"NO_COLOR": "1"}, false},
		{"an empty NO_COLOR does not count", true, map[string]string{"NO_COLOR": ""}, true},
		{"a dumb terminal", true, map[string]string{"TERM": "dumb"}, false},
	} {
		s := Streams{OutIsTerminal: c.terminal, Getenv: func(name string) string { return c.env[name] }}
		if have := s.outStyle().Color; have != c.want {
			t.Errorf("%s: colour %v, want %v", c.name, have, c.want)
		}
	}
}

func TestVersion_FromBuildInfo(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v0.1.0"},
		Deps:     []*debug.Module{{Path: clusterAPIModule, Version: "v1.14.2"}},
		Settings: []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, {Key: "vcs.revision", Value: "abc"}}}
	want := "move-hook v0.1.0 (commit abc-dirty)\nbuilt with go1.26.0 against Cluster API v1.14.2\n"
	if have := versionOf("", info).String(); have != want {
		t.Errorf("have %q, want %q", have, want)
	}
	if have := versionOf("", &debug.BuildInfo{}); have.Version != "(devel)" || have.ClusterAPI != "unknown" || have.Commit != "" {
		t.Errorf("an empty build says %+v", have)
	}
	if have := versionOf("v0.2.0", info).Version; have != "v0.2.0" {
		t.Errorf("the release v0.2.0 says that it is %s", have)
	}
}

func TestImageOf_IsWhatMakeImageTags(t *testing.T) {
	for version, tag := range map[string]string{"v0.1.0": "v0.1.0", "v0.1.0-3-gabc1234-dirty": "v0.1.0-3-gabc1234-dirty",
		"(devel)": "latest", "v0.1.1-0.20260101000000-abc+dirty": "latest"} {
		if have := imageOf(version); have != "ghcr.io/move-hook/move-hook:"+tag {
			t.Errorf("the image of %s is %s", version, have)
		}
	}
}

// TestLog_ShowsNoBodies: -v 1 logs writes and -v 2 reads, by method and path.
func TestLog_ShowsNoBodies(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer server.Close()
	for level, want := range []string{"", `"Request answered" method="PATCH" path="/machines/a"`, `"Request answered" method="GET" path="/machines/a"`} {
		var log bytes.Buffer
		ctx := klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(level), textlogger.Output(&log))))
		for _, method := range []string{http.MethodGet, http.MethodPatch} {
			r, err := http.NewRequestWithContext(ctx, method, server.URL+"/machines/a?token=secret", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			response, err := logRequests(http.DefaultTransport).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
		}
		if !strings.Contains(log.String(), want) || strings.Count(log.String(), "\n") != level || regexp.MustCompile("secret|body").MatchString(log.String()) {
			t.Errorf("-v %d logs %q, want %d lines with %q", level, log.String(), level, want)
		}
	}
}

// TestBinary_ExitsAndSaysItsVersion is the only test of the real executable: that
// main hands over arguments and exit code, and that the linker knows Cluster API.
func TestBinary_ExitsAndSaysItsVersion(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "move-hook")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/move-hook").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	for _, c := range []struct {
		args []string
		want int
		out  string
	}{
		{[]string{"--version"}, ExitDone, `^move-hook \S+.*\nbuilt with go\S+.* against Cluster API v1\.\d+\.\d+\n$`},
		{[]string{"post", "--sofa"}, ExitUsage, `^error: unknown flag: --sofa\nSee 'move-hook post --help'\n$`},
		{[]string{"status", "--kubeconfig", unreachable(t)}, ExitAPI, `^error: .*127\.0\.0\.1:1.*\n$`},
	} {
		cmd := exec.CommandContext(t.Context(), binary, c.args...)
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if have := cmd.ProcessState.ExitCode(); have != c.want || !regexp.MustCompile(c.out).Match(out) {
			t.Errorf("move-hook %s: exit code %d, want %d: %q", strings.Join(c.args, " "), have, c.want, out)
		}
	}
}
