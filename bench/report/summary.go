package report

import (
	"slices"

	"github.com/paddock-lock/paddock/bench/result"
)

// reference is the system that others are compared with.
const reference = "paddock"

// A spread is the median and the range of some figures.
type spread struct {
	median, least, most float64
	count               int
}

func spreadOf(figures []float64) spread {
	if len(figures) == 0 {
		return spread{}
	}
	slices.Sort(figures)
	n := len(figures)
	return spread{median: (figures[(n-1)/2] + figures[n/2]) / 2, least: figures[0], most: figures[n-1], count: n}
}

// A comparison contains the runs of one workload by system, in the order of the runs.
type comparison struct {
	workload, title, unit string
	rows                  []row
}

// A row contains the runs of one system under one workload, in all rounds.
type row struct {
	system, title, unit string
	runs                []result.Run
	rate                spread
	ratio               spread // rate of the reference divided by that of this system, by round
}

// comparisons groups the successful runs.
func comparisons(runs []result.Run) []comparison {
	var all []comparison
	for _, r := range runs {
		if r.Error != "" {
			continue
		}
		i := slices.IndexFunc(all, func(b comparison) bool { return b.workload == r.Workload })
		if i < 0 {
			i = len(all)
			all = append(all, comparison{workload: r.Workload, title: r.WorkloadTitle, unit: r.Unit})
		}
		all[i].add(r)
	}
	for _, b := range all {
		b.compare()
	}
	return all
}

func (b *comparison) add(r result.Run) {
	i := slices.IndexFunc(b.rows, func(w row) bool { return w.system == r.System })
	if i < 0 {
		i = len(b.rows)
		b.rows = append(b.rows, row{system: r.System, title: r.Title, unit: r.Unit})
	}
	b.rows[i].runs = append(b.rows[i].runs, r)
}

// compare computes the rates and the ratios to the reference, or to the first system if the reference
// was not run.
func (b *comparison) compare() {
	base := b.base()
	for i := range b.rows {
		w := &b.rows[i]
		var times []float64
		for _, r := range w.runs {
			for _, other := range base.runs {
				if other.Round == r.Round {
					times = append(times, other.PerSecond/r.PerSecond)
				}
			}
		}
		w.ratio = spreadOf(times)
		w.rate = w.of(func(r result.Run) float64 { return r.PerSecond })
	}
}

func (b *comparison) base() row {
	i := slices.IndexFunc(b.rows, func(w row) bool { return w.system == reference })
	return b.rows[max(i, 0)]
}

// of returns the spread of a figure.
func (w row) of(figure func(result.Run) float64) spread {
	var figures []float64
	for _, r := range w.runs {
		figures = append(figures, figure(r))
	}
	return spreadOf(figures)
}

// ofOptional returns the spread of a figure that may be missing.
func (w row) ofOptional(figure func(result.Run) *float64) spread {
	var figures []float64
	for _, r := range w.runs {
		if f := figure(r); f != nil {
			figures = append(figures, *f)
		}
	}
	return spreadOf(figures)
}

// latency returns the spreads of the p50 and p99 of a kind of call.
func (w row) latency(what string) (p50, p99 spread) {
	var medians, worst []float64
	for _, r := range w.runs {
		if q, ok := r.Latency[what]; ok {
			medians, worst = append(medians, q.P50), append(worst, q.P99)
		}
	}
	return spreadOf(medians), spreadOf(worst)
}
