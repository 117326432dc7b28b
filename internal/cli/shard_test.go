package cli

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/move-hook/move-hook/internal/watch"
)

func TestShard_AnIndexedJobGivesTheIndex(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		completionIndex string
		args            []string
		want            watch.Shard
		wrong           bool
	}{
		"of a Job":                   {"2", []string{"--shard-count=4"}, watch.Shard{Index: 2, Count: 4}, false},
		"a flag wins":                {"2", []string{"--shard-count=4", "--shard-index=1"}, watch.Shard{Index: 1, Count: 4}, false},
		"of a Job that does not":     {"2", nil, watch.Shard{Count: 1}, false},
		"more pods than shards":      {"4", []string{"--shard-count=4"}, watch.Shard{}, true},
		"no number":                  {"two", []string{"--shard-count=4"}, watch.Shard{}, true},
		"no number, and not needed":  {"two", nil, watch.Shard{Count: 1}, false},
		"no number, but a flag says": {"two", []string{"--shard-count=4", "--shard-index=3"}, watch.Shard{Index: 3, Count: 4}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s shard
			fs := pflag.NewFlagSet("post", pflag.ContinueOnError)
			s.add(fs, c.completionIndex)
			if err := fs.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			err := s.validate()
			if (err != nil) != c.wrong || (!c.wrong && s.Shard != c.want) {
				t.Errorf("%+v, %v; want %+v", s.Shard, err, c.want)
			}
		})
	}
}
