package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// terminationLimit is what kubelet keeps of a termination message, in bytes.
const terminationLimit = 4096

// termination is where the summary of a run is left for whoever looks at its pod.
type termination struct{ path string }

func (t *termination) add(fs *pflag.FlagSet) {
	fs.StringVar(&t.path, "termination-message-path", "/dev/termination-log",
		"`file` for a summary of at most 4096 bytes, written if it exists, as kubelet makes it for a container; empty for none")
}

// leave writes the message. Only a file that is there is written: where there is
// none, nobody reads it.
func (t termination) leave(message string) error {
	if t.path == "" {
		return nil
	}
	f, err := os.OpenFile(t.path, os.O_WRONLY|os.O_TRUNC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("leaving the termination message: %w", err)
	}
	if len(message) > terminationLimit {
		message = strings.ToValidUTF8(message[:terminationLimit], "")
	}
	_, err = f.WriteString(message)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("leaving the termination message: %w", err)
	}
	return nil
}
