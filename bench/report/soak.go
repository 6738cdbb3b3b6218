package report

import (
	"fmt"
	"strings"

	"github.com/paddock-lock/paddock/bench/soak"
)

// shownStretches is how many lines the table of a soak has, at most.
const shownStretches = 12

// Soak tells of a soak, in Markdown.
func Soak(f soak.File) string {
	if len(f.Stretches) == 0 {
		return ""
	}
	var out strings.Builder
	last := f.Stretches[len(f.Stretches)-1]
	fmt.Fprintf(&out, "### %.0f minutes without a break\n\n%s, on %s, Paddock at %s.\n\n", last.Minutes,
		last.Run.WorkloadTitle, f.Machine.At.Format("2 January 2006"), f.Machine.Paddock)
	out.WriteString(markdown(stretchCells(f.Stretches)) + "\n")
	if cells := verdictCells(soak.Verdicts(f.Stretches)); len(cells) > 1 {
		out.WriteString(markdown(cells) + "\n")
	}
	return out.String()
}

func stretchCells(all []soak.Stretch) [][]string {
	cells := [][]string{{"minute", "pairs a second", "acquire, p50 / p99 in µs", "paddock serve, MB", "PostgreSQL without buffers, MB", "tables and indexes, MB", "rows"}}
	step := (len(all) + shownStretches - 1) / shownStretches
	for i, s := range all {
		if (i+1)%step != 0 && i != len(all)-1 {
			continue
		}
		q := s.Run.Latency["acquire"]
		cells = append(cells, []string{
			decimals(0)(s.Minutes), whole(s.Run.PerSecond), whole(q.P50) + " / " + whole(q.P99),
			megabytes(s.Server), megabytes(s.Backend), megabytes(s.Tables), whole(float64(s.Rows)),
		})
	}
	return cells
}

func megabytes(bytes int64) string { return whole(float64(bytes) / (1 << 20)) }

func verdictCells(verdicts []soak.Verdict) [][]string {
	cells := [][]string{{"", "in the middle third", "in the last third", "flat"}}
	for _, v := range verdicts {
		flat := "yes"
		if !v.Flat {
			flat = "**no**"
		}
		cells = append(cells, []string{v.Figure + ", " + v.Unit, whole(v.Middle), whole(v.Last), flat})
	}
	return cells
}
