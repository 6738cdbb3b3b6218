package lock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func TestEventIsExplained(t *testing.T) {
	t.Parallel()
	by := lock.Caller{Name: "ops"}
	until := time.Date(2031, 5, 4, 12, 0, 0, 5000, time.FixedZone("", 3600))
	for want, e := range map[string]lock.Event{
		"":                                   {Kind: lock.Released},
		"stuck":                              {Kind: lock.Revoked, Reason: "stuck"},
		"stuck (revoked by ops)":             {Kind: lock.Revoked, Reason: "stuck", Caller: by},
		"closed until 2031-05-04T11:00:00Z":  {Kind: lock.Released, Until: until},
		"a move":                             {Kind: lock.Frozen, Reason: "a move"},
		"a move, until 2031-05-04T11:00:00Z": {Kind: lock.Frozen, Reason: "a move", Until: until},
		"a move, until 2031-05-04T11:00:00Z (frozen by ops)": {Kind: lock.Frozen, Reason: "a move", Until: until, Caller: by},
		"(thawed by ops)":           {Kind: lock.Thawed, Caller: by},
		"once more (opened by ops)": {Kind: lock.Opened, Reason: "once more", Caller: by},
	} {
		if got := e.Explanation(); got != want {
			t.Errorf("%v is explained by %q, want %q", e.Kind, got, want)
		}
	}
}
