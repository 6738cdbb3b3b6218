package lock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func TestEventIsExplained(t *testing.T) {
	t.Parallel()
	until := time.Date(2031, 5, 4, 12, 0, 0, 5000, time.FixedZone("", 3600))
	for want, e := range map[string]lock.Event{
		"":                                   {Kind: lock.Released},
		"stuck":                              {Kind: lock.Revoked, Reason: "stuck"},
		"closed until 2031-05-04T11:00:00Z":  {Kind: lock.Released, Until: until},
		"a move":                             {Kind: lock.Frozen, Reason: "a move"},
		"a move, until 2031-05-04T11:00:00Z": {Kind: lock.Frozen, Reason: "a move", Until: until},
		"once more":                          {Kind: lock.Opened, Reason: "once more"},
		"after the end of its lease; newest token 7": {Kind: lock.Refused, Newest: 7},
		`1 min 10 s after the end of its lease; "b; newest token 9; \"x\"" held the lock then; newest token 7; table t`: {
			Kind: lock.Refused, Late: 70*time.Second + 900*time.Millisecond, HeldBy: `b; newest token 9; "x"`, Newest: 7, Reason: "table t",
		},
	} {
		if got := e.Explanation(); got != want {
			t.Errorf("%v is explained by %q, want %q", e.Kind, got, want)
		}
	}
}

func TestDurationsAreInWords(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0 s": 0, "325 ms": 325900 * time.Microsecond, "26 s": 26999 * time.Millisecond, "19 min 58 s": 1198021 * time.Millisecond,
		"2 h 0 min": 2*time.Hour + 59*time.Second, "3 d 4 h": 76*time.Hour + 59*time.Minute,
	} {
		if got := lock.InWords(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	if got := lock.InWords(-time.Hour); got != "0 s" {
		t.Errorf("a negative duration is %q", got)
	}
}

func TestEventHasCircumstances(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]lock.Event{
		"":             {Name: "a", Set: []string{}},
		"with b and c": {Name: "a", Set: []string{"a", "b", "c"}},
		"in session 00000000000000ff, with (not covered), trace 0af7": {
			Name: "a", Session: 255, Set: []string{"(not covered)", "a"}, Caller: lock.Caller{Name: "ops", Trace: "0af7"},
		},
	} {
		if got := e.Circumstances(); got != want {
			t.Errorf("the circumstances are %q, want %q", got, want)
		}
	}
}
