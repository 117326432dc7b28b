package scale_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/move-hook/move-hook/test/stack"
)

// usage is what a program took.
type usage struct {
	wall   time.Duration
	memory int64 // at its peak, in bytes
}

// result is how a program that succeeded ended.
type result struct {
	usage
	stdout, stderr []byte
}

// run runs a program and measures it. It writes to files, so that nothing of what
// is measured is this process reading.
func run(t *testing.T, program string, args ...string) result {
	t.Helper()
	dir := t.TempDir()
	var files [2]*os.File
	for i, name := range []string{"stdout", "stderr"} {
		files[i] = stack.Must(os.Create(filepath.Join(dir, name)))(t)
		defer files[i].Close()
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr = files[0], files[1]
	cmd.Env = append(os.Environ(), stack.ClusterctlEnv()...)
	start := time.Now()
	err := cmd.Run()
	r := result{usage: usage{wall: time.Since(start)}}
	r.stdout = stack.Must(os.ReadFile(files[0].Name()))(t)
	r.stderr = stack.Must(os.ReadFile(files[1].Name()))(t)
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", filepath.Base(program), args, err, r.stderr)
	}
	r.memory = int64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	if runtime.GOOS != "darwin" {
		r.memory <<= 10 // Everywhere else it is counted in KiB.
	}
	return r
}

// document is what is read of the output of move-hook graph.
type document struct {
	Objects []struct {
		Kind, Name string
		Moves      bool
	}
	Unseen []struct{ Kind, Name string }
	Counts struct{ Objects int }
}

func decode(t *testing.T, text []byte) (d document) {
	t.Helper()
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// moving are the "Kind/name" of what moves, sorted.
func (d document) moving() []string {
	set := map[string]bool{}
	for _, o := range d.Objects {
		if o.Moves {
			set[o.Kind+"/"+o.Name] = true
		}
	}
	return sorted(set)
}

// creating is a line of clusterctl's log, with -v 1.
var creating = regexp.MustCompile(`(?m)^Creating (\w+)="([^"]+)"`)

// created are the "Kind/name" of what clusterctl would create, sorted.
func created(t *testing.T, r result) []string {
	t.Helper()
	set := map[string]bool{}
	for _, match := range creating.FindAllSubmatch(append(r.stdout, r.stderr...), -1) {
		set[string(match[1])+"/"+string(match[2])] = true
	}
	if len(set) == 0 {
		t.Fatalf("clusterctl names nothing that it would create:\n%s", r.stderr)
	}
	return sorted(set)
}
