package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlugin_IsCalledAsItsUserTypesIt(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		"/usr/bin/kubectl-move_hook": "kubectl move-hook post [CLUSTER...]",
		"clusterctl-move_hook.exe":   "clusterctl move-hook post [CLUSTER...]",
		"/usr/local/bin/move-hook":   "move-hook post [CLUSTER...]",
		"/home/me/other-move_hook":   "move-hook post [CLUSTER...]",
		"":                           "move-hook post [CLUSTER...]",
	} {
		stdout, _, _ := runLine(t, Streams{Program: program}, "post", "--help")
		if !strings.Contains(stdout, "\n  "+want+" ") {
			t.Errorf("%q: the usage is not %q:\n%s", program, want, stdout)
		}
	}
}

// A log collector reads each line by itself.
func TestLoggingFormat_JSONIsOneObjectALine(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	stdout, stderr, code := runLine(t, Streams{}, "post", "-n", "fleet", "--logging-format", "json", "-v", "9")
	if code != ExitUsage || stdout != "" || stderr == "" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	for line := range strings.Lines(stderr) {
		var object struct{ Level, Msg string }
		if err := json.Unmarshal([]byte(line), &object); err != nil || object.Msg == "" || object.Level == "" {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestTermination_IsLeftWhereKubeletLooksForIt(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "termination-log")
	if err := (termination{file}).leave("x"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a file was made that nobody reads")
	}
	if err := os.WriteFile(file, []byte("what the last one left"), 0o600); err != nil {
		t.Fatal(err)
	}
	for message, want := range map[string]string{
		"adopted":                                   "adopted",
		strings.Repeat("é", terminationLimit):       strings.Repeat("é", terminationLimit/2),
		"a" + strings.Repeat("é", terminationLimit): "a" + strings.Repeat("é", terminationLimit/2-1),
	} {
		if err := (termination{file}).leave(message); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%d bytes were left, %v; want %d", len(got), err, len(want))
		}
	}
}
