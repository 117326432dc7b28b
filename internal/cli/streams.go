package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"github.com/move-hook/move-hook/internal/report"
)

// Streams are what a command reads and writes, and what is known about where
// that ends up.
type Streams struct {
	// Program is the path by which this process was started; it may be a plugin's.
	Program string
	// Version of a release; empty where the module's own says it.
	Version  string
	In       io.Reader
	Out, Err io.Writer
	// OutIsTerminal and ErrIsTerminal allow colour, and on Err a redrawn block.
	OutIsTerminal, ErrIsTerminal bool
	// Width is the width of the terminal in columns; nil or zero means unknown.
	Width func() int
	// Getenv looks up NO_COLOR and TERM; nil means an empty environment.
	Getenv func(string) string
}

// OSStreams are the streams of this process.
func OSStreams() Streams {
	errFd := int(os.Stderr.Fd())
	return Streams{
		Program: os.Args[0],
		In:      os.Stdin, Out: os.Stdout, Err: os.Stderr,
		OutIsTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		ErrIsTerminal: term.IsTerminal(errFd),
		Width: func() int {
			width, _, err := term.GetSize(errFd)
			if err != nil {
				return 0
			}
			return width
		},
		Getenv: os.Getenv,
	}
}

func (s Streams) env(name string) string {
	if s.Getenv == nil {
		return ""
	}
	return s.Getenv(name)
}

// dumb terminals show no colour and cannot move the cursor.
func (s Streams) dumb() bool { return s.env("TERM") == "dumb" }

// color is for one of the two streams: NO_COLOR wins over everything
// (https://no-color.org: any non-empty value).
func (s Streams) color(terminal bool) bool {
	return terminal && !s.dumb() && s.env("NO_COLOR") == ""
}

func (s Streams) outStyle() report.Style { return report.Style{Color: s.color(s.OutIsTerminal)} }
func (s Streams) errStyle() report.Style { return report.Style{Color: s.color(s.ErrIsTerminal)} }

// calledAs is how a user calls this program: by its name, or as a plugin, whose file
// has an underscore where the user types a dash.
func (s Streams) calledAs() string {
	file := strings.TrimSuffix(filepath.Base(s.Program), ".exe")
	for _, host := range []string{"kubectl", "clusterctl"} {
		if file == host+"-move_hook" {
			return host + " move-hook"
		}
	}
	return "move-hook"
}
