package report

import (
	"strings"
	"unicode/utf8"
)

// cell is one value of a table. Its width is that of the text, not of the paint.
type cell struct {
	text  string
	paint paint
}

// cells makes unpainted cells.
func cells(texts ...string) []cell {
	out := make([]cell, len(texts))
	for i, t := range texts {
		out[i].text = t
	}
	return out
}

// columns is a table with a head and left-aligned columns, as kubectl prints it:
// upper-case head, three spaces between columns, nothing after the last value.
type columns struct {
	head []string
	rows [][]cell
}

const gap = "   "

func (c *columns) add(row ...cell) { c.rows = append(c.rows, row) }

// write prints the table. Columns that are empty in every row are left out, so
// that a table never shows a column about something that did not occur.
func (c *columns) write(out *sticky, st Style) {
	widths := make([]int, len(c.head))
	for _, row := range c.rows {
		for i, v := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(v.text))
		}
	}
	for i, h := range c.head {
		if widths[i] > 0 {
			widths[i] = max(widths[i], utf8.RuneCountInString(h))
		}
	}
	head := make([]cell, len(c.head))
	for i, h := range c.head {
		head[i] = cell{h, heading}
	}
	out.line(layout(head, widths, st))
	for _, row := range c.rows {
		out.line(layout(row, widths, st))
	}
}

// layout joins one row; columns of width zero are skipped.
func layout(row []cell, widths []int, st Style) string {
	var b strings.Builder
	pad := 0
	for i, v := range row {
		if widths[i] == 0 {
			continue
		}
		if v.text != "" {
			b.WriteString(strings.Repeat(" ", pad))
			b.WriteString(st.dress(v.paint, v.text))
			pad = 0
		}
		pad += widths[i] - utf8.RuneCountInString(v.text) + len(gap)
	}
	return b.String()
}

// shorten cuts text to width runes, with an ellipsis where something was cut.
// A width of zero or less means no limit.
func shorten(text string, width int) string {
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return text
	}
	if width == 1 {
		return "…"
	}
	return string([]rune(text)[:width-1]) + "…"
}

// count is "1 object", "3 objects".
func count(n int, one string) string {
	return plural(n, one, one+"s")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return itoa(n) + " " + many
}
