package measure

// A LaggedRatio computes how often one event occurs per occurrence of another, where the count of the
// first is reported late and in steps. It uses only the times of reports, at which both counts are
// known.
type LaggedRatio struct {
	before, first, last sample
	reports             int
}

type sample struct{ lagged, current int64 }

// Add adds the current values of both counters.
func (r *LaggedRatio) Add(lagged, current int64) {
	now := sample{lagged, current}
	if r.reports == 0 {
		r.before, r.reports = now, 1
	}
	if now.lagged == r.before.lagged {
		return
	}
	if r.before = now; r.reports == 1 {
		r.first = now
	}
	r.last = now
	r.reports++
}

// Ratio returns the ratio, or false if there were too few reports.
func (r *LaggedRatio) Ratio() (float64, bool) {
	if r.last.current == r.first.current {
		return 0, false
	}
	return float64(r.last.lagged-r.first.lagged) / float64(r.last.current-r.first.current), true
}
