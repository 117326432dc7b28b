package report

import "io"

// Style decides how text is dressed. The zero Style is plain.
type Style struct {
	// Color allows ANSI colours; only for a terminal whose user did not set NO_COLOR.
	Color bool
}

// paint is an ANSI attribute with a meaning, not a colour name: what is wrong
// looks alike wherever it is printed.
type paint string

const (
	plain   paint = ""
	good    paint = "32"
	waits   paint = "33"
	wrong   paint = "31"
	quiet   paint = "2"
	heading paint = "1"
)

// dress wraps s in the attribute, or returns it as it is.
func (s Style) dress(p paint, text string) string {
	if !s.Color || p == plain || text == "" {
		return text
	}
	return "\x1b[" + string(p) + "m" + text + "\x1b[0m"
}

// sticky remembers the first error of a writer, so that a printer may write
// many lines and report once.
type sticky struct {
	w   io.Writer
	err error
}

func (s *sticky) line(text string) {
	if s.err == nil {
		_, s.err = io.WriteString(s.w, text+"\n")
	}
}
