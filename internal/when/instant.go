package when

import (
	"fmt"
	"time"
)

// around is how far events are from an instant that they are around.
const around = 5 * time.Minute

// Around returns the range of what happened around the instant: since the one and until the other.
func Around(at time.Time) (since, until time.Time) { return at.Add(-around), at.Add(around) }

// Instant reads an instant, a time of day within the 24 hours before now, or how long before now. An instant without a
// zone is in that of now.
func Instant(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04:05"} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	for _, layout := range []string{"15:04", time.TimeOnly} {
		if clock, err := time.Parse(layout, text); err == nil {
			at := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
			if at.After(now) {
				at = at.AddDate(0, 0, -1)
			}
			return at, nil
		}
	}
	ago, err := Duration(text)
	if err != nil || ago < 0 {
		return time.Time{}, fmt.Errorf("%q is no time; give an instant such as 2026-01-02T03:12:00Z, a time such as 03:12, or how long "+
			"ago, such as 2h", text)
	}
	return now.Add(-ago), nil
}
