package cli

import (
	"cmp"
	"fmt"
	"regexp"

	"github.com/distribution/reference"
	"github.com/spf13/pflag"

	"github.com/move-hook/move-hook/internal/pivot"
)

// repository is where the images of releases are; `make image` names its own alike.
const repository = "ghcr.io/move-hook/move-hook"

// asJob are the flags of a move whose post runs as a Job on the target.
type asJob struct {
	wanted bool
	image  string
}

func (j *asJob) add(fs *pflag.FlagSet) {
	fs.BoolVar(&j.wanted, "post-as-job", false,
		"run post as a Job of the target, in namespace move-hook-system; that, a ServiceAccount and its rights are put there")
	fs.StringVar(&j.image, "job-image", "", "`image` of that Job; empty for "+repository+" of this version")
}

func (j asJob) validate() error {
	if j.image == "" {
		return nil
	}
	if !j.wanted {
		return fmt.Errorf("--job-image needs --post-as-job: without it there is no Job")
	}
	// The server takes anything; kubelet would refuse it after the move.
	if _, err := reference.ParseNormalizedNamed(j.image); err != nil {
		return fmt.Errorf("--job-image %q is no image: %w", j.image, err)
	}
	return nil
}

// options are nil where post runs here.
func (j asJob) options(version string, args []string) *pivot.JobOptions {
	if !j.wanted {
		return nil
	}
	return &pivot.JobOptions{Image: cmp.Or(j.image, imageOf(version)), Args: args}
}

// imageOf is the image of a version of move-hook; a build without one, or with one
// that is no tag, is taken for the latest.
func imageOf(version string) string {
	if !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`).MatchString(version) {
		version = "latest"
	}
	return repository + ":" + version
}
