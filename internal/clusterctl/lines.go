package clusterctl

import (
	"bytes"
	"io"
	"slices"
	"sync"
)

// keptLines is how many of the last lines an error carries.
const keptLines = 10

// lines is a writer that hands on whole lines only, so that clusterctl's output
// and a progress display on the same terminal do not run into each other, and
// that remembers the last of them. os/exec copies each stream from a goroutine
// of its own, and both may end on one terminal: they share mu.
type lines struct {
	mu      *sync.Mutex
	to      io.Writer
	partial []byte
	last    []string
}

// Write hands on the lines that p completes. An error of the writer below is
// swallowed: a closed terminal must not stop a move half way.
func (l *lines) Write(p []byte) (int, error) {
	l.partial = append(l.partial, p...)
	for {
		end := bytes.IndexByte(l.partial, '\n')
		if end < 0 {
			return len(p), nil
		}
		l.emit(l.partial[:end+1])
		l.partial = l.partial[end+1:]
	}
}

// Flush hands on a last line that has no end.
func (l *lines) Flush() {
	if len(l.partial) > 0 {
		l.emit(append(l.partial, '\n'))
		l.partial = nil
	}
}

func (l *lines) emit(line []byte) {
	if l.to != nil {
		l.mu.Lock()
		_, _ = l.to.Write(line)
		l.mu.Unlock()
	}
	text := string(bytes.TrimRight(line, "\r\n"))
	if text == "" {
		return
	}
	l.last = append(l.last, text)
	if len(l.last) > keptLines {
		l.last = slices.Delete(l.last, 0, len(l.last)-keptLines)
	}
}
