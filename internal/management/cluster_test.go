package management

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters:
- {name: a, cluster: {server: "https://a.example.com"}}
- {name: b, cluster: {server: "https://b.example.com"}}
users: [{name: u, user: {token: t}}]
contexts:
- {name: a, context: {cluster: a, user: u, namespace: fleet}}
- {name: b, context: {cluster: b, user: u}}
current-context: a
`

func TestOpen_NamesKubeconfigAndContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
	for _, test := range []struct {
		o                     Options
		name, host, namespace string
	}{
		{Options{Kubeconfig: path}, "kubeconfig " + path + ", context a", "https://a.example.com", "fleet"},
		{Options{Kubeconfig: path, Context: "b"}, "kubeconfig " + path + ", context b", "https://b.example.com", "default"},
		{Options{}, "the default kubeconfig, context a", "https://a.example.com", "fleet"},
	} {
		c, err := Open(test.o)
		if err != nil {
			t.Fatal(err)
		}
		if c.Name() != test.name || c.Host() != test.host || c.Namespace() != test.namespace {
			t.Errorf("%+v: %q at %q in %q", test.o, c.Name(), c.Host(), c.Namespace())
		}
	}
}

func TestOpen_ErrorsSayWhichFileAndContext(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good"), filepath.Join(dir, "bad")
	for path, text := range map[string]string{good: kubeconfig, bad: "{"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	t.Setenv("HOME", dir)
	for want, o := range map[string]Options{
		"does not exist": {Kubeconfig: filepath.Join(dir, "none")},
		bad:              {Kubeconfig: bad},
		"context nobody": {Kubeconfig: good, Context: "nobody"},
		"--kubeconfig":   {},
	} {
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: want %q in the error, got %v", o, want, err)
		}
	}
}

func TestNow_FollowsTheServersClock(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for ahead, want := range map[time.Duration]time.Duration{
		0: 0, time.Second: 0, -time.Second: 0, time.Minute: time.Minute, -time.Hour: -time.Hour,
	} {
		var c clock
		c.learn(now.Add(ahead).Format(http.TimeFormat), now)
		c.learn("nonsense", now)
		if got := c.skew(); got != want {
			t.Errorf("a server %s ahead: skew %s, want %s", ahead, got, want)
		}
	}
}
