package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-lock/paddock/bench/result"
)

// The colours for shares of CPU time.
const (
	clientShare   = "#cbd5e1"
	serverShare   = "#2563eb"
	databaseShare = "#0f766e"
)

// rates returns a plot of the operations per second, the highest rate first.
func (b comparison) rates() plot {
	p := plot{title: b.title, note: b.unit + " a second: the median, and the least and the most"}
	for _, w := range b.sorted(func(w row) float64 { return -w.rate.median }) {
		colour := peerColour
		if strings.HasPrefix(w.system, reference) {
			colour = paddockColour
		}
		p.bars = append(p.bars, bar{
			label: w.title, text: formatWhole(w.rate.median) + unitSuffix(w.unit, b.unit), spread: w.rate,
			parts: []part{{w.rate.median, colour}},
		})
	}
	return p
}

// costs returns a plot of the CPU time per operation, the lowest first.
func (b comparison) costs() plot {
	p := plot{
		title: b.title, note: "CPU time in µs, the median",
		names:  []string{"load", "server", "database"},
		legend: []part{{colour: clientShare}, {colour: serverShare}, {colour: databaseShare}},
	}
	mean := func(w row, figure func(result.CPU) float64) float64 {
		return w.of(func(r result.Run) float64 { return figure(r.CPU) }).median
	}
	parts := func(w row) []part {
		return []part{
			{mean(w, func(c result.CPU) float64 { return c.Client }), clientShare},
			{mean(w, func(c result.CPU) float64 { return c.Server }), serverShare},
			{mean(w, func(c result.CPU) float64 { return c.Database }), databaseShare},
		}
	}
	for _, w := range b.sorted(func(w row) float64 { return bar{parts: parts(w)}.length() }) {
		shares := parts(w)
		p.bars = append(p.bars, bar{
			label: w.title, parts: shares,
			text: fmt.Sprintf("%.0f + %.0f + %.0f", shares[0].length, shares[1].length, shares[2].length),
		})
	}
	return p
}

func (b comparison) sorted(by func(row) float64) []row {
	rows := slices.Clone(b.rows)
	slices.SortStableFunc(rows, func(x, y row) int { return cmp.Compare(by(x), by(y)) })
	return rows
}
