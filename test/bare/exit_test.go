package bare_test

import (
	"net"
	"strings"
	"testing"

	"github.com/move-hook/move-hook/test/stack"
)

func TestExit5_APIAway(t *testing.T) {
	// Nobody listens on a port that was just given back.
	listener := stack.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	kubeconfig := serverKubeconfig(t, "http://"+address)
	for _, command := range []string{"graph", "verify", "post", "pre", "status", "arm", "disarm"} {
		for _, names := range [][]string{nil, {"c1"}} {
			args := append([]string{command, "--kubeconfig", kubeconfig, "-n", "fleet"}, names...)
			switch {
			case command == "graph" && names != nil:
				args = []string{command, "--kubeconfig", kubeconfig, "-A", "-o", "json"}
			case strings.HasSuffix(command, "arm") && names != nil:
				continue // it takes no names
			case strings.HasSuffix(command, "arm"):
				args = []string{command, "--to-kubeconfig", kubeconfig, "-n", "fleet"}
			}
			t.Run(strings.Join(append([]string{command}, names...), " "), func(t *testing.T) {
				r := hook(t, 5, args...)
				if r.stdout != "" {
					t.Errorf("nothing was read, and it says\n%s", r)
				}
				var errs []string
				for line := range strings.Lines(r.stderr) {
					if strings.HasPrefix(line, "error: ") {
						errs = append(errs, line)
					}
				}
				if len(errs) != 1 || !strings.Contains(errs[0], address) || !strings.Contains(errs[0], "connection refused") {
					t.Errorf("want one line that names %s and why\n%s", address, r)
				}
			})
		}
	}
}
