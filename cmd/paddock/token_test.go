package main

import (
	"fmt"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

func TestTokensAreVerified(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	first := d.hold(lock.Acquire{Locks: lock.One("a"), Holder: "me"})
	mustBeNil(t, d.locks.Release(t.Context(), lock.Release{Locks: []string{"a"}, LeaseID: first.ID}))
	second := d.hold(lock.Acquire{Locks: lock.One("a"), Holder: "me"})
	ended := d.hold(lock.Acquire{Locks: lock.One("b"), Holder: "me"})
	mustBeNil(t, d.locks.Release(t.Context(), lock.Release{Locks: []string{"b"}, LeaseID: ended.ID}))
	for _, c := range []struct {
		name   string
		token  lock.Token
		code   int
		status string
		why    string
	}{
		{"a", second.Token, exitOK, "current", ""},
		{"a", first.Token, exitLeaseLost, "stale", fmt.Sprintf("paddock: the token %d of a is stale: the newest one is %d\n", first.Token, second.Token)},
		{"b", ended.Token, exitLeaseLost, "ended", fmt.Sprintf("paddock: the token %d of b is not current: its lease has ended\n", ended.Token)},
		{"c", 1, exitLeaseLost, "unknown", "paddock: the token 1 of c is unknown: it was not granted for this lock; check the lock, the token, the slot and the service\n"},
	} {
		stdout, stderr := d.expectExit(c.code, "token", "verify", c.name, fmt.Sprint(c.token))
		left := ""
		if c.code == exitOK {
			left = "LEFT  DURATION\n"
		}
		newest := map[string]string{"a": fmt.Sprint(second.Token), "b": fmt.Sprint(ended.Token), "c": none}[c.name]
		want := fmt.Sprintf("LOCK  %s\nTOKEN  %d\nSTATUS  %s\nNEWEST TOKEN  %s\nCHECKED  INSTANT\n%s", c.name, c.token, c.status, newest, left)
		if got := collapseSpaces(normalized(stdout)); got != want || stderr != c.why {
			t.Errorf("printed\n%s%swant\n%s%s", got, stderr, want, c.why)
		}
	}
	d.expectFailure(exitUnreachable, []string{"127.0.0.1:1"}, "token", "verify", "a", "1", "--retry=0s", "--url=http://127.0.0.1:1")
}
