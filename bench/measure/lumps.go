package measure

// Lumps tell how many there are of one thing for each of another, where the first is reported
// late, and many at a time: between two instants at which there was a report both are known.
type Lumps struct {
	before, first, last lump
	reports             int
}

type lump struct{ late, prompt int64 }

// Add tells how many there have been so far.
func (l *Lumps) Add(late, prompt int64) {
	now := lump{late, prompt}
	if l.reports == 0 {
		l.before, l.reports = now, 1
	}
	if now.late == l.before.late {
		return
	}
	if l.before = now; l.reports == 1 {
		l.first = now
	}
	l.last = now
	l.reports++
}

// Ratio is how many came for each; false if there have been too few reports to tell.
func (l *Lumps) Ratio() (float64, bool) {
	if l.last.prompt == l.first.prompt {
		return 0, false
	}
	return float64(l.last.late-l.first.late) / float64(l.last.prompt-l.first.prompt), true
}
