package measure

// LaggedRatio tell how many there are of one thing for each of another, where the first is reported
// late, and many at a time: between two instants at which there was a report both are known.
type LaggedRatio struct {
	before, first, last sample
	reports             int
}

type sample struct{ lagged, current int64 }

// Add tells how many there have been so far.
func (l *LaggedRatio) Add(late, prompt int64) {
	now := sample{late, prompt}
	if l.reports == 0 {
		l.before, l.reports = now, 1
	}
	if now.lagged == l.before.lagged {
		return
	}
	if l.before = now; l.reports == 1 {
		l.first = now
	}
	l.last = now
	l.reports++
}

// Ratio is how many came for each; false if there have been too few reports to tell.
func (l *LaggedRatio) Ratio() (float64, bool) {
	if l.last.current == l.first.current {
		return 0, false
	}
	return float64(l.last.lagged-l.first.lagged) / float64(l.last.current-l.first.current), true
}
