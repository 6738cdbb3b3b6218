package when

import (
	"strings"
	"testing"
	"time"
)

// TestInstantsOfPeople: a time of day is the last one that the clock has shown.
func TestInstantsOfPeople(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("somewhere", 2*60*60)
	now := time.Date(2026, 3, 1, 4, 30, 15, 0, zone)
	for text, want := range map[string]time.Time{
		"2026-01-02T03:04:05Z":      time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		"2026-01-02T03:04:05+01:00": time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC),
		"2026-01-02 03:04":          time.Date(2026, 1, 2, 3, 4, 0, 0, zone),
		"2026-01-02T03:04:05":       time.Date(2026, 1, 2, 3, 4, 5, 0, zone),
		"03:12":                     time.Date(2026, 3, 1, 3, 12, 0, 0, zone),
		"04:30:15":                  now,
		"04:30:16":                  time.Date(2026, 2, 28, 4, 30, 16, 0, zone),
		"2h":                        now.Add(-2 * time.Hour),
		"1d12h":                     now.Add(-36 * time.Hour),
		"0":                         now,
	} {
		if got, err := Instant(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v, want %v (%v)", text, got, want, err)
		}
	}
}

func TestTextsThatAreNoTime(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "noon", "25:00", "-2h", "7"} {
		if at, err := Instant(text, time.Now()); err == nil || !strings.Contains(err.Error(), "is no time; give an instant such as") {
			t.Errorf("%q is %v, %v", text, at, err)
		}
	}
}
