package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"
)

// runLine runs one command line and returns stdout, stderr and the exit code.
func runLine(t *testing.T, s Streams, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, err bytes.Buffer
	s.In, s.Out, s.Err = strings.NewReader(""), &out, &err
	code = Run(t.Context(), s, args)
	return out.String(), err.String(), code
}

// TestScenarios runs the files in testdata: `run move-hook …` prints stdout,
// stderr and the exit code as a user sees them; `file NAME` writes its input
// beside the kubeconfigs; KUBECONFIG is empty and HOME too, so that nothing of
// this machine is read. -rewrite rewrites what is expected.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, file string) {
		dir := t.TempDir()
		t.Setenv("HOME", dir)
		t.Setenv("KUBECONFIG", "")
		t.Setenv("PATH", dir)
		t.Setenv("KUBERNETES_SERVICE_HOST", "")
		path, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Chdir(dir)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "file":
				name := d.CmdArgs[0].Key
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					d.Fatalf(t, "%v", err)
				}
				if err := os.WriteFile(name, []byte(d.Input+"\n"), 0o600); err != nil {
					d.Fatalf(t, "%v", err)
				}
				return ""
			case "run":
				return transcript(runLine(t, Streams{}, shellWords(t, d.Input)[1:]...))
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

func transcript(stdout, stderr string, code int) string {
	var b strings.Builder
	b.WriteString(stdout)
	for line := range strings.Lines(stderr) {
		b.WriteString("stderr: " + line)
	}
	fmt.Fprintf(&b, "exit code: %d\n", code)
	return b.String()
}

// TestHelp keeps the help text of every command in a file.
func TestHelp(t *testing.T) {
	names := []string{""}
	for _, cmd := range (&app{}).root().Commands() {
		names = append(names, cmd.Name())
	}
	for _, name := range append(names, "completion") {
		t.Run("move-hook "+name, func(t *testing.T) {
			stdout, stderr, code := runLine(t, Streams{}, append(strings.Fields(name), "--help")...)
			if stderr != "" || code != ExitDone {
				t.Errorf("exit code %d, stderr %q", code, stderr)
			}
			golden(t, filepath.Join("testdata", "help", strings.TrimSpace("move-hook "+name)+".txt"), stdout)
		})
	}
}

func golden(t *testing.T, file, have string) {
	t.Helper()
	if flag.Lookup("rewrite").Value.String() == "true" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(have), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != have {
		t.Errorf("%s differs (-rewrite rewrites it):\n%s", file, have)
	}
}

// TestHelp_EveryExampleParses reads each example line as the shell and the
// command would, up to the point where something is connected to.
func TestHelp_EveryExampleParses(t *testing.T) {
	var walk func(cmd *cobra.Command)
	examples := 0
	walk = func(cmd *cobra.Command) {
		for _, line := range exampleLines(cmd.Example) {
			examples++
			t.Run(line, func(t *testing.T) { parse(t, line) })
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk((&app{}).root())
	if examples < 12 {
		t.Errorf("only %d examples were found", examples)
	}
}

// parse runs the line against commands that stop after their own checks.
func parse(t *testing.T, line string) {
	words := shellWords(t, line)
	if words[0] != "move-hook" {
		t.Fatalf("an example calls %q", words[0])
	}
	var out bytes.Buffer
	root := (&app{Streams: Streams{Out: &out, Err: &out}}).root()
	for _, cmd := range root.Commands() {
		cmd.RunE = func(*cobra.Command, []string) error { return nil }
	}
	root.SetArgs(words[1:])
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Errorf("%s: %v", line, err)
	}
}

func exampleLines(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// shellWords splits at blanks; quotes group.
func shellWords(t *testing.T, line string) []string {
	t.Helper()
	var words []string
	for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1) {
		words = append(words, strings.Trim(word, "'"))
	}
	if len(words) == 0 {
		t.Fatal("an empty command line")
	}
	return words
}

// TestExitCodes_AllDocumented: every command's help explains its exit codes, and
// the list has each once, in order.
func TestExitCodes_AllDocumented(t *testing.T) {
	for i, c := range ExitCodes() {
		if c.Code != i {
			t.Errorf("exit code %d stands at place %d", c.Code, i)
		}
	}
	for _, cmd := range (&app{}).root().Commands() {
		if cmd.Name() == "version" {
			continue
		}
		for _, part := range []string{"Exit codes:\n  0  done"} {
			if !strings.Contains(cmd.Long, part) {
				t.Errorf("%s: the help does not explain its exit codes", cmd.Name())
			}
		}
	}
}

func TestReference_HasEveryCommandAndFlag(t *testing.T) {
	text := Reference()
	for _, cmd := range (&app{}).root().Commands() {
		if !strings.Contains(text, "## move-hook "+cmd.Name()+"\n") {
			t.Errorf("%s is missing", cmd.Name())
		}
	}
	for _, flag := range []string{"`--settle duration` | `5s`", "`-n, --namespace namespace`", "`-A, --all-namespaces`", "`--max-version-skew minors` | `0`"} {
		if !strings.Contains(text, flag) {
			t.Errorf("the flag %s is missing", flag)
		}
	}
	if text != Reference() {
		t.Error("the reference is not the same twice")
	}
}

func TestVersion_TheFlagAndTheCommandAgree(t *testing.T) {
	flag, _, code := runLine(t, Streams{}, "--version")
	command, _, _ := runLine(t, Streams{}, "version")
	if code != ExitDone || flag != command || !strings.HasPrefix(flag, "move-hook ") {
		t.Errorf("exit code %d: --version says %q, version %q", code, flag, command)
	}
}

func TestCompletion_EveryShell(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		stdout, stderr, code := runLine(t, Streams{}, "completion", shell)
		if code != ExitDone || stderr != "" || !strings.Contains(stdout, "move-hook") {
			t.Errorf("%s: exit code %d, stderr %q, %d bytes", shell, code, stderr, len(stdout))
		}
	}
	stdout, _, _ := runLine(t, Streams{}, "__complete", "graph", "-o", "")
	if !slices.Contains(strings.Split(stdout, "\n"), "table") {
		t.Errorf("-o does not complete: %q", stdout)
	}
}
