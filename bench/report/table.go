package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/paddock-lock/paddock/bench/result"
)

// A column has a heading and a cell for each row, which may be empty.
type column struct {
	heading string
	cell    func(row) string
}

// columns returns all possible columns.
func (b comparison) columns() []column {
	all := []column{
		{"", func(w row) string { return w.title }},
		{b.unit + " a second", func(w row) string { return formatSpread(w.rate, formatWhole) + unitSuffix(w.unit, b.unit) }},
		b.ratio(),
	}
	for _, what := range []string{"acquire", "release", "renew", "hand-off", "updates"} {
		all = append(all, column{what + ", p50 / p99 in µs", func(w row) string { return quantiles(w, what) }})
	}
	return append(all,
		column{"Jain", optional(func(r result.Run) *float64 { return r.Fairness }, formatDecimals(4))},
		column{"longest wait ÷ mean", optional(func(r result.Run) *float64 { return r.LongestWait }, formatDecimals(1))},
		column{"CPU: client + server + database, µs", cpu},
		column{"of a core, server and database", b.coreShareOf},
		column{"WAL bytes", optional(func(r result.Run) *float64 { return r.WALBytes }, formatWhole)},
		column{"fsyncs", optional(func(r result.Run) *float64 { return r.Fsyncs }, formatDecimals(3))},
		column{"rows deleted a second", b.deleted},
		column{"server memory before / during / after, MB", memory},
		column{"tokens out of order", inversions},
		column{"operations", func(w row) string { return result.Grouped(operations(w)) }},
	)
}

func (b comparison) table() string {
	var cells [][]string
	for range len(b.rows) + 1 {
		cells = append(cells, nil)
	}
	for i, c := range b.columns() {
		filled := []string{c.heading}
		empty := true
		for _, w := range b.rows {
			filled = append(filled, c.cell(w))
			empty = empty && filled[len(filled)-1] == ""
		}
		if empty && i > 0 {
			continue
		}
		for j, cell := range filled {
			cells[j] = append(cells[j], cell)
		}
	}
	return markdown(cells)
}

// markdown returns a table whose first column is text and whose other columns are figures.
func markdown(cells [][]string) string {
	widths := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell), 3)
		}
	}
	var out strings.Builder
	for n, line := range cells {
		for i, cell := range line {
			fill := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				cell += fill
			} else {
				cell = fill + cell
			}
			fmt.Fprintf(&out, "| %s ", cell)
		}
		out.WriteString("|\n")
		if n == 0 {
			out.WriteString(ruler(widths))
		}
	}
	return out.String()
}

func ruler(widths []int) string {
	var out strings.Builder
	for i, width := range widths {
		line := strings.Repeat("-", width)
		if i > 0 {
			line = line[1:] + ":"
		}
		fmt.Fprintf(&out, "| %s ", line)
	}
	return out.String() + "|\n"
}
