package report

import (
	"fmt"
	"strings"

	"github.com/paddock-lock/paddock/bench/soak"
)

// maxRows is the maximum number of rows in a soak's table.
const maxRows = 12

// Soak reports a soak in Markdown.
func Soak(f soak.File) string {
	if len(f.Intervals) == 0 {
		return ""
	}
	var out strings.Builder
	last := f.Intervals[len(f.Intervals)-1]
	fmt.Fprintf(&out, "### %.0f minutes without a break\n\n%s, on %s, Paddock at %s.\n\n", last.Minutes,
		last.Run.WorkloadTitle, f.Machine.At.Format("2 January 2006"), f.Machine.Paddock)
	out.WriteString(markdown(intervalCells(f.Intervals)) + "\n")
	if cells := trendCells(soak.Trends(f.Intervals)); len(cells) > 1 {
		out.WriteString(markdown(cells) + "\n")
	}
	return out.String()
}

func intervalCells(all []soak.Interval) [][]string {
	cells := [][]string{{
		"minute", "pairs a second", "acquire, p50 / p99 in µs",
		"paddock serve, MB", "PostgreSQL without buffers, MB", "tables and indexes, MB", "rows",
	}}
	step := (len(all) + maxRows - 1) / maxRows
	for i, s := range all {
		if (i+1)%step != 0 && i != len(all)-1 {
			continue
		}
		q := s.Run.Latency["acquire"]
		cells = append(cells, []string{
			formatDecimals(0)(s.Minutes), formatWhole(s.Run.PerSecond), formatWhole(q.P50) + " / " + formatWhole(q.P99),
			megabytes(s.Server), megabytes(s.Backend), megabytes(s.Tables), formatWhole(float64(s.Rows)),
		})
	}
	return cells
}

func megabytes(bytes int64) string { return formatWhole(float64(bytes) / (1 << 20)) }

func trendCells(verdicts []soak.Trend) [][]string {
	cells := [][]string{{"", "in the middle third", "in the last third", "flat"}}
	for _, v := range verdicts {
		flat := "yes"
		if !v.Flat {
			flat = "**no**"
		}
		cells = append(cells, []string{v.Figure + ", " + v.Unit, formatWhole(v.Middle), formatWhole(v.Last), flat})
	}
	return cells
}
