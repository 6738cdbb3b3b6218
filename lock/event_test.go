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
	} {
		if got := e.Explanation(); got != want {
			t.Errorf("%v is explained by %q, want %q", e.Kind, got, want)
		}
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
