package when

import (
	"strings"
	"testing"
	"time"
)

func TestDurationsMayHaveDays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "100ms": 100 * time.Millisecond, "1h30m": 90 * time.Minute, "1.5h": 90 * time.Minute,
		"7d": 7 * 24 * time.Hour, "1d12h": 36 * time.Hour, "1d0.5s": 24*time.Hour + 500*time.Millisecond, "+1d": 24 * time.Hour,
		"-1s": -time.Second, "-1d1h": -25 * time.Hour, "106750d": 106750 * 24 * time.Hour, "5µs": 5 * time.Microsecond,
	} {
		if got, err := Duration(text); got != want || err != nil {
			t.Errorf("%s is %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "not a duration", "7": "not a duration", "7x": `"7x" is not a duration; give numbers with units`, "d": "whole",
		"1.5d": "days are whole numbers and come first", "1h2d": "come first", "1d2d": "come first", "-": "not a duration",
		"s": "not a duration", "1d 2h": "not a duration", ".s": "not a duration", "--1s": "not a duration",
		"106751d": "too long", "99999999999999999999d": "too long", "9999999h": "too long", "106750d9999999h": "too long",
	} {
		if got, err := Duration(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %v, %v; want an error with %q", text, got, err, want)
		}
	}
}

// FuzzDurationsAreThoseOfGo compares Duration with time.ParseDuration.
func FuzzDurationsAreThoseOfGo(f *testing.F) {
	for _, text := range []string{"1s", "-1.5h", "1d2h", "0", "+0", "-0", "1µs2ns", ".5s", "9999999h", "+", "1.s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Duration(text)
		want, wantErr := time.ParseDuration(text)
		if wantErr == nil && want != -1<<63 && (err != nil || got != want) || wantErr != nil && err == nil && !strings.Contains(text, "d") {
			t.Errorf("%q is %v, %v; want %v, %v", text, got, err, want, wantErr)
		}
	})
}
