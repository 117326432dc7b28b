package clusterctl

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"k8s.io/klog/v2"
)

// sink writes the library's log as clusterctl prints it ("Moving Cluster API
// objects Clusters=1"), but to a writer: upstream's own sink is bound to os.Stderr.
type sink struct {
	to        io.Writer
	mu        *sync.Mutex
	threshold int
	name      string
	values    []any
}

// Init has nothing to prepare.
func (s *sink) Init(klog.RuntimeInfo) {}

// Enabled compares with the user's -v.
func (s *sink) Enabled(level int) bool { return level <= s.threshold }

// Info writes one line.
func (s *sink) Info(_ int, message string, pairs ...any) { s.write(message, pairs) }

// Error writes one line that ends in the error.
func (s *sink) Error(err error, message string, pairs ...any) {
	if err != nil {
		message = strings.TrimPrefix(message+": "+err.Error(), ": ")
	}
	s.write(message, pairs)
}

// WithValues returns a sink that adds the pairs to every line.
func (s *sink) WithValues(pairs ...any) klog.LogSink {
	more := *s
	more.values = append(slices.Clone(s.values), pairs...)
	return &more
}

// WithName returns a sink that puts the name before every line.
func (s *sink) WithName(name string) klog.LogSink {
	more := *s
	more.name = strings.TrimPrefix(s.name+"/"+name, "/")
	return &more
}

func (s *sink) write(message string, pairs []any) {
	var b strings.Builder
	if s.name != "" {
		fmt.Fprintf(&b, "[%s] ", s.name)
	}
	b.WriteString(message)
	all := append(slices.Clone(s.values), pairs...)
	for i := 0; i+1 < len(all); i += 2 {
		value, err := json.Marshal(all[i+1])
		if err != nil {
			value = fmt.Appendf(nil, "%q", fmt.Sprint(all[i+1]))
		}
		fmt.Fprintf(&b, " %v=%s", all[i], value)
	}
	b.WriteByte('\n')
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.WriteString(s.to, b.String())
}
