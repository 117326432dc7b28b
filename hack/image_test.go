package hack_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// docker stands in for the program: it writes its arguments down and answers with
// what the environment says. Everything that needs an engine is `make test-image`'s.
const docker = `#!/bin/sh
echo "$@" >>"$CALLS"
case "$1 $2" in
"version --format") [ -n "$ENGINE" ] && case "$3" in *Arch*) echo amd64 ;; *) echo 28.0.0 ;; esac ;;
"buildx version") [ -n "$BUILDX" ] ;;
"image inspect") echo "$RUNS_AS" ;;
"run "*) case "$*" in *--version*) echo "move-hook v0.1.0" ;; *) echo "--all-namespaces" ;; esac ;;
esac
`

// image runs the script over that docker and tells which calls it got.
func image(t *testing.T, env []string, args ...string) (code int, stdout, stderr string, calls []string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(docker), 0o755); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.Command("./image.sh", args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "CALLS="+filepath.Join(dir, "calls"),
		"IMAGE=hook:test", "VERSION=v0.1.0", "PLATFORMS=", "OUTPUT=", "ENGINE=", "BUILDX=", "RUNS_AS="), env...)
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String(), strings.Split(strings.TrimSpace(string(text)), "\n")
}

func TestImage_WithoutEngineOneLineAndNothingElse(t *testing.T) {
	for _, command := range []string{"engine", "build", "test"} {
		code, stdout, stderr, calls := image(t, nil, command)
		if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "no Docker engine answers: ") {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", command, code, stdout, stderr)
		}
		if len(calls) != 1 {
			t.Errorf("%s asked docker for more than its engine: %q", command, calls)
		}
	}
}

func TestImage_Builders(t *testing.T) {
	const several = "PLATFORMS=linux/amd64,linux/arm64"
	for _, c := range []struct {
		name string
		env  []string
		code int
		want []string // of the last call, or of stderr where it fails
	}{
		{"one platform goes into the engine", []string{"BUILDX=1", "PLATFORMS=linux/arm64"}, 0,
			[]string{"buildx build --tag hook:test --platform linux/arm64 --build-arg VERSION=v0.1.0 ", " --load ."}},
		{"several go into an archive", []string{"BUILDX=1", several}, 0, []string{"--platform linux/amd64,linux/arm64", "--output=type=oci,dest=bin/image.tar ."}},
		{"or where OUTPUT says", []string{"BUILDX=1", several, "OUTPUT=--push"}, 0, []string{"--push ."}},
		{"the classic builder is told the platforms", []string{"PLATFORMS=linux/arm64"}, 0,
			[]string{"build --tag hook:test ", "BUILDPLATFORM=linux/amd64", "TARGETOS=linux", "TARGETARCH=arm64"}},
		{"it has one platform", []string{several}, 1, []string{"needs docker buildx"}},
		{"it pushes nothing", []string{"OUTPUT=--push"}, 1, []string{"needs docker buildx"}},
	} {
		code, _, stderr, calls := image(t, append(c.env, "ENGINE=1"), "build")
		have := calls[len(calls)-1]
		if code != 0 {
			have = stderr
		}
		for _, want := range c.want {
			if code != c.code || !strings.Contains(have, want) {
				t.Errorf("%s: want exit code %d and %q, have %d and %q", c.name, c.code, want, code, have)
			}
		}
	}
}

func TestImage_IsTriedAsNobodyWithAReadOnlyRoot(t *testing.T) {
	code, stdout, stderr, calls := image(t, []string{"ENGINE=1", "BUILDX=1", "RUNS_AS=65532:65532"}, "test")
	if code != 0 || stdout != "hook:test runs as 65532:65532 with a read-only root\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	runs := 0
	for _, call := range calls {
		if strings.HasPrefix(call, "run ") {
			runs++
			if !strings.Contains(call, " --read-only ") || !strings.Contains(call, " --cap-drop ALL ") {
				t.Errorf("the image runs with more than a Job has: docker %s", call)
			}
		}
	}
	if runs != 2 {
		t.Errorf("want --version and post --help to run, have %q", calls)
	}
	for _, env := range [][]string{{"RUNS_AS=0"}, {"RUNS_AS=nonroot"}, {"RUNS_AS=65532", "VERSION=v0.2.0"}} {
		if code, _, stderr, _ := image(t, append(env, "ENGINE=1", "BUILDX=1"), "test"); code != 1 {
			t.Errorf("%v: want exit code 1, have %d: %s", env, code, stderr)
		}
	}
}
