package stack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The programs of the stack, as they are named in the folder that Binaries returns.
const (
	etcd                  = "etcd"
	kubeAPIServer         = "kube-apiserver"
	kubeControllerManager = "kube-controller-manager"
	kubectl               = "kubectl"
	clusterctl            = "clusterctl"
	capiCore              = "capi-core"
	capiBootstrap         = "capi-bootstrap"
	capiControlPlane      = "capi-controlplane"
	stackCloud            = "stack-cloud"
)

const (
	kubernetesModule  = "k8s.io/kubernetes"
	capiModule        = "sigs.k8s.io/cluster-api"
	devProviderModule = "sigs.k8s.io/cluster-api/test"
)

// recipe is part of the cache's key. Raise it when the way of building or
// rendering changes, and not only what is built.
const recipe = "1"

// program is one binary that the module in ./binaries pins.
type program struct {
	name, pkg string
	// module gives the version that the linker writes into versionVars:
	// Cluster API's managers refuse an API server that does not know its own.
	module, versionVars string
}

var programs = []program{
	{name: etcd, pkg: "go.etcd.io/etcd/server/v3"},
	{kubeAPIServer, "k8s.io/kubernetes/cmd/kube-apiserver", kubernetesModule, "k8s.io/component-base/version"},
	{kubeControllerManager, "k8s.io/kubernetes/cmd/kube-controller-manager", kubernetesModule, "k8s.io/component-base/version"},
	{kubectl, "k8s.io/kubernetes/cmd/kubectl", kubernetesModule, "k8s.io/component-base/version"},
	{clusterctl, "sigs.k8s.io/cluster-api/cmd/clusterctl", capiModule, capiModule + "/version"},
	{capiCore, "sigs.k8s.io/cluster-api/core", capiModule, capiModule + "/version"},
	{capiBootstrap, "sigs.k8s.io/cluster-api/bootstrap/kubeadm", capiModule, capiModule + "/version"},
	{capiControlPlane, "sigs.k8s.io/cluster-api/controlplane/kubeadm", capiModule, capiModule + "/version"},
}

// Binaries returns the folder with the programs of the stack and with the
// rendered manifests of the providers. What is missing there it builds:
// everything after a pin changed, nothing otherwise. A line per program goes
// to progress (nil: none). The folder lies below $MOVE_HOOK_STACK_CACHE, or
// below the user's cache folder.
func Binaries(ctx context.Context, progress io.Writer) (string, error) {
	tools, err := build(ctx, progress)
	if err != nil {
		return "", err
	}
	return tools.dir, nil
}

// tools are the built programs.
type tools struct {
	dir   string
	cloud string // its name carries a hash: it changes more often than the pins
}

func (t *tools) path(name string) string { return filepath.Join(t.dir, name) }

type builder struct {
	tools
	progress io.Writer
	source   string // the folder of this package, in the test module
	pins     string // the folder of the module that pins the programs
}

// Clients returns the paths of clusterctl and kubectl, and builds no program that only
// the stack's own management clusters need.
func Clients(ctx context.Context, progress io.Writer) (clusterctlPath, kubectlPath string, err error) {
	tools, err := buildOnly(ctx, progress, slices.DeleteFunc(slices.Clone(programs), func(p program) bool {
		return p.name != clusterctl && p.name != kubectl
	}), nil)
	if err != nil {
		return "", "", err
	}
	return tools.path(clusterctl), tools.path(kubectl), nil
}

func build(ctx context.Context, progress io.Writer) (*tools, error) {
	return buildOnly(ctx, progress, programs, providers)
}

// buildOnly makes these programs and manifests, and the cloud.
func buildOnly(ctx context.Context, progress io.Writer, programs []program, providers []provider) (*tools, error) {
	if progress == nil {
		progress = io.Discard
	}
	b, err := newBuilder(progress)
	if err != nil {
		return nil, err
	}
	if b.complete(programs, providers) {
		return &b.tools, nil
	}
	lock, err := b.lock()
	if err != nil {
		return nil, err
	}
	defer lock.release()

	for _, p := range programs {
		if err := b.build(ctx, p); err != nil {
			return nil, err
		}
	}
	err = b.once(b.cloud, func(tmp string) error {
		// With the flags of go test, whose compiled packages it shares.
		return b.run(ctx, b.source, "go", "build", "-o", tmp, "./cmd/"+stackCloud)
	})
	if err != nil {
		return nil, err
	}
	for _, p := range providers {
		err := b.once(b.path(p.manifest()), func(tmp string) error { return b.render(ctx, p, tmp) })
		if err != nil {
			return nil, err
		}
	}
	return &b.tools, nil
}

func newBuilder(progress io.Writer) (*builder, error) {
	source, err := sourceDir()
	if err != nil {
		return nil, err
	}
	root := os.Getenv("MOVE_HOOK_STACK_CACHE")
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("no folder for the stack's programs; set MOVE_HOOK_STACK_CACHE: %w", err)
		}
		root = filepath.Join(cache, "move-hook", "stack")
	}
	b := &builder{progress: progress, source: source, pins: filepath.Join(source, "binaries")}
	key, err := hash(filepath.Join(b.pins, "go.mod"), filepath.Join(b.pins, "go.sum"))
	if err != nil {
		return nil, err
	}
	b.dir = filepath.Join(root, key)
	key, err = hash(filepath.Join(source, "cmd", stackCloud, "*.go"), filepath.Join(source, "internal", "cloudapi", "*.go"),
		filepath.Join(source, "..", "go.mod"), filepath.Join(source, "..", "go.sum"))
	if err != nil {
		return nil, err
	}
	b.cloud = b.path(stackCloud + "-" + key)
	return b, os.MkdirAll(b.dir, 0o755)
}

// sourceDir finds the folder of this package: where it was compiled, or, when
// -trimpath hides that or it has gone, as the go command sees it from here.
func sourceDir() (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		if _, err := os.Stat(file); err == nil {
			return filepath.Dir(file), nil
		}
	}
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/move-hook/move-hook/test/stack").Output()
	if err != nil {
		return "", fmt.Errorf("finding the sources of the test stack: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func hash(patterns ...string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, recipe, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			fmt.Fprintln(sum, filepath.Base(file), len(data))
			sum.Write(data)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

func (b *builder) complete(programs []program, providers []provider) bool {
	wanted := []string{b.cloud}
	for _, p := range programs {
		wanted = append(wanted, b.path(p.name))
	}
	for _, p := range providers {
		wanted = append(wanted, b.path(p.manifest()))
	}
	for _, path := range wanted {
		if _, err := os.Stat(path); err != nil {
			return false
		}
	}
	return true
}

// lock keeps the packages of one `go test ./...` from building side by side.
func (b *builder) lock() (*fileLock, error) {
	path := b.path(".lock")
	lock, err := tryLock(path)
	if err != nil || lock != nil {
		return lock, err
	}
	fmt.Fprintln(b.progress, "stack: waiting for another process that builds the programs")
	return waitLock(path)
}

// once makes path unless it is there. The file appears under its name only
// when it is whole, so an interrupted build is continued and never believed.
func (b *builder) once(path string, build func(tmp string) error) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	name, start := filepath.Base(path), time.Now()
	fmt.Fprintf(b.progress, "stack: building %s ...", name)
	tmp := filepath.Join(b.dir, ".building-"+name)
	if err := build(tmp); err != nil {
		fmt.Fprintln(b.progress, " failed")
		return fmt.Errorf("building %s for the test stack: %w", name, err)
	}
	fmt.Fprintf(b.progress, " %s\n", time.Since(start).Round(time.Second))
	return os.Rename(tmp, path)
}

func (b *builder) build(ctx context.Context, p program) error {
	return b.once(b.path(p.name), func(tmp string) error {
		ldflags := "-s -w"
		if p.module != "" {
			module, err := b.download(ctx, b.pins, p.module)
			if err != nil {
				return err
			}
			ldflags += versionFlags(p.versionVars, module.Version)
		}
		return b.run(ctx, b.pins, "go", "build", "-ldflags", ldflags, "-o", tmp, p.pkg)
	})
}

func versionFlags(vars, version string) string {
	numbers := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return fmt.Sprintf(" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s", vars, version, numbers[0], numbers[1])
}

type module struct{ Version, Dir string }

// download returns where the sources of a module lie that the module in dir requires.
func (b *builder) download(ctx context.Context, dir, path string) (*module, error) {
	out, err := b.output(ctx, dir, "go", "mod", "download", "-json", path)
	if err != nil {
		return nil, err
	}
	m := &module{}
	return m, json.Unmarshal(out, m)
}

func (b *builder) run(ctx context.Context, dir, name string, args ...string) error {
	_, err := b.output(ctx, dir, name, args...)
	return err
}

func (b *builder) output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err), errors.New(stderr.String()))
	}
	return out, nil
}
