package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-lock/paddock/bench/result"
)

// formatWhole formats a figure without decimals.
func formatWhole(f float64) string { return result.Grouped(f) }

// formatDecimals returns a function that formats a figure with n decimals.
func formatDecimals(n int) func(float64) string {
	return func(f float64) string { return strconv.FormatFloat(f, 'f', n, 64) }
}

// formatSpread formats the median, with the range if there is more than one figure.
func formatSpread(s spread, write func(float64) string) string {
	switch s.count {
	case 0:
		return ""
	case 1:
		return write(s.median)
	}
	return fmt.Sprintf("%s (%s–%s)", write(s.median), write(s.least), write(s.most))
}

// unitSuffix returns the unit of a row if it differs from the table's.
func unitSuffix(unit, tableUnit string) string {
	if unit == tableUnit {
		return ""
	}
	return " " + unit
}

// ratio returns the column that compares the systems: how many times faster Paddock is, or, if all rows
// are Paddock, the percentage of the first row.
func (b comparison) ratio() column {
	others := func(w row) bool { return !strings.HasPrefix(w.system, reference) }
	if slices.ContainsFunc(b.rows, others) {
		return column{"Paddock does", func(w row) string { return b.compared(w, "1", "× "+formatSpread(w.ratio, formatDecimals(2))) }}
	}
	return column{"of the first", func(w row) string {
		share := spread{100 / w.ratio.median, 100 / w.ratio.most, 100 / w.ratio.least, w.ratio.count}
		return b.compared(w, "100 %", formatSpread(share, formatWhole)+" %")
	}}
}

// compared returns the cell of the ratio column, empty if the row cannot be compared.
func (b comparison) compared(w row, same, other string) string {
	switch {
	case len(b.rows) == 1 || w.runs[0].Paced:
		return ""
	case w.system == b.base().system:
		return same
	}
	return other
}

func quantiles(w row, what string) string {
	p50, p99 := w.latency(what)
	if p50.count == 0 {
		return ""
	}
	return formatWhole(p50.median) + " / " + formatWhole(p99.median)
}

// optional returns a cell function for a figure that may be missing.
func optional(figure func(result.Run) *float64, write func(float64) string) func(row) string {
	return func(w row) string {
		s := w.ofOptional(figure)
		if s.count == 0 {
			return ""
		}
		return write(s.median)
	}
}

func cpu(w row) string {
	client := w.of(func(r result.Run) float64 { return r.CPU.Client })
	server := w.of(func(r result.Run) float64 { return r.CPU.Server })
	database := w.of(func(r result.Run) float64 { return r.CPU.Database })
	return fmt.Sprintf("%s + %s + %s", formatWhole(client.median), formatWhole(server.median), formatWhole(database.median))
}

func (b comparison) coreShareOf(w row) string {
	if !w.runs[0].Paced {
		return ""
	}
	s := w.of(func(r result.Run) float64 { return (r.CPU.Server + r.CPU.Database) * r.PerSecond / 1e4 })
	return formatDecimals(1)(s.median) + " %"
}

// deleted returns the rows deleted per second, for growth workloads in which events are pruned.
func (b comparison) deleted(w row) string {
	if !strings.HasPrefix(b.workload, "growth") {
		return ""
	}
	s := w.of(func(r result.Run) float64 {
		if r.Deleted == nil {
			return 0
		}
		return *r.Deleted * r.PerSecond
	})
	if s.most < 100 {
		return ""
	}
	return formatSpread(s, formatWhole)
}

// memory returns the servers' memory before, during and after the run, in MB.
func memory(w row) string {
	m := w.runs[0].Memory
	if m == nil {
		return ""
	}
	return megabytes(m.Before) + " / " + megabytes(m.During) + " / " + megabytes(m.After)
}

func operations(w row) (sum int) {
	for _, r := range w.runs {
		sum += r.Operations
	}
	return sum
}

// inversions returns the number of tokens out of order, empty if there are none.
func inversions(w row) string {
	sum := 0
	for _, r := range w.runs {
		sum += r.Inversions
	}
	if sum == 0 {
		return ""
	}
	return result.Grouped(sum)
}
