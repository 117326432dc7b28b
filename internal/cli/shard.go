package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/move-hook/move-hook/internal/watch"
)

// shard are the flags of one post of several that divide the Clusters among them.
type shard struct {
	watch.Shard
	fs *pflag.FlagSet
	// badIndex is why the completion index of this pod's Job is none.
	badIndex error
}

// add takes the index from the Job that this pod is of, where a Job is Indexed;
// completionIndex is empty elsewhere.
func (s *shard) add(fs *pflag.FlagSet, completionIndex string) {
	s.fs = fs
	index := 0
	if completionIndex != "" {
		index, s.badIndex = strconv.Atoi(completionIndex)
	}
	fs.IntVar(&s.Count, "shard-count", 1, "how many posts divide the Clusters among them, each with an index of its own")
	fs.IntVar(&s.Index, "shard-index", index, "which of them this is, from 0; in a pod of an Indexed Job its completion index")
}

func (s *shard) validate() error {
	switch {
	case s.Count < 1:
		return fmt.Errorf("--shard-count must be at least 1")
	case s.Count == 1 && s.fs.Changed("shard-index"):
		return fmt.Errorf("--shard-index needs --shard-count: of how many is it one?")
	case s.Count == 1:
		// A Job that does not divide its work may be Indexed.
		s.Index = 0
		return nil
	case s.badIndex != nil && !s.fs.Changed("shard-index"):
		return fmt.Errorf("the environment's JOB_COMPLETION_INDEX is no number: give --shard-index")
	case s.Index < 0 || s.Index >= s.Count:
		return fmt.Errorf("--shard-index %d is not one of %d shards: they count from 0", s.Index, s.Count)
	}
	return nil
}
