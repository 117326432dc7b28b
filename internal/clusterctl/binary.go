package clusterctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// Kubeconfig names a management cluster as clusterctl's flags do.
type Kubeconfig struct {
	// Path of the file; empty for clusterctl's default rules.
	Path string
	// Context inside the file; empty for the current one.
	Context string
}

// Binary is a clusterctl that can be run.
type Binary struct {
	// Path of the executable; empty for the linked library.
	Path string
	// Version as it says of itself ("v1.14.2"); empty where it does not say, as
	// builds without release flags do not.
	Version string
}

// versionTimeout bounds the question for the version: it needs no network.
const versionTimeout = 10 * time.Second

// Find chooses a clusterctl: the given path, else the one on PATH, else the
// linked library. A given path that cannot be executed is an error; so is a
// clusterctl that PATH finds only in the current folder.
func Find(path string) (Binary, error) {
	found, err := look(path)
	if err != nil {
		return Binary{}, err
	}
	if found == "" {
		return Binary{Version: linkedVersion()}, nil
	}
	return Binary{Path: found, Version: askVersion(found)}, nil
}

// String names the clusterctl for people: "clusterctl v1.14.2 (/usr/local/bin/clusterctl)".
func (b Binary) String() string {
	where := b.Path
	if b.Linked() {
		where = "linked into move-hook"
	}
	version := b.Version
	if version == "" {
		version = "of unknown version"
	}
	return fmt.Sprintf("clusterctl %s (%s)", version, where)
}

// Linked says that this is the library and not an executable.
func (b Binary) Linked() bool { return b.Path == "" }

func look(path string) (string, error) {
	if path != "" {
		found, err := exec.LookPath(path)
		if err != nil && !errors.Is(err, exec.ErrDot) {
			return "", fmt.Errorf("clusterctl %q cannot be run: %w", path, reason(err))
		}
		return filepath.Abs(found)
	}
	found, err := exec.LookPath("clusterctl")
	switch {
	case err == nil:
		return found, nil
	case errors.Is(err, exec.ErrDot):
		return "", fmt.Errorf("clusterctl was found only in the current folder; name it with --clusterctl ./clusterctl if that is meant")
	default:
		return "", nil
	}
}

// reason is the operating system's word without the names around it: ours has them.
func reason(err error) error {
	var execErr *exec.Error
	if errors.As(err, &execErr) {
		err = execErr.Err
	}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return err
}

// askVersion runs `clusterctl version -o short`. What it does not answer is left
// empty: a version is for people, a move does not depend on it.
func askVersion(path string) string {
	ctx, cancel := context.WithTimeout(context.Background(), versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "version", "-o", "short")
	cmd.Env = environ(os.Environ())
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	version := strings.TrimSpace(string(line))
	if !strings.HasPrefix(version, "v") {
		return ""
	}
	return version
}

const clusterAPIModule = "sigs.k8s.io/cluster-api"

func linkedVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, dep := range info.Deps {
		if dep.Path != clusterAPIModule {
			continue
		}
		if dep.Replace != nil {
			return dep.Replace.Version
		}
		return dep.Version
	}
	return ""
}

// disableVersionCheck keeps clusterctl from asking GitHub for a newer release,
// which costs about eight seconds where there is no way out.
const disableVersionCheck = "CLUSTERCTL_DISABLE_VERSIONCHECK"

// environ is the environment of our call: the user's, and the version check off
// unless they have an opinion.
func environ(user []string) []string {
	for _, entry := range user {
		if name, _, _ := strings.Cut(entry, "="); name == disableVersionCheck {
			return user
		}
	}
	return append(user[:len(user):len(user)], disableVersionCheck+"=true")
}
