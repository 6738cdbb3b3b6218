package lock_test

import (
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

var names = regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}\z`)

func FuzzCheckName(f *testing.F) {
	for _, seed := range []string{"", "a", "jobs:nightly", "a/b", "-a", "a b", "a\x00", "é", "\xff", "a@b-c_d.e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		err := lock.CheckName(name)
		if (err == nil) != names.MatchString(name) {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
		if err != nil && !errors.Is(err, lock.ErrInvalid) {
			t.Errorf("CheckName(%q) = %v, want ErrInvalid", name, err)
		}
	})
}

// FuzzApply reads a story from bytes, a command each three, and plays it.
func FuzzApply(f *testing.F) {
	f.Add([]byte{0, 1, 10, 1, 1, 0, 2, 1, 0})
	f.Add([]byte{0, 1, 1, 5, 0, 200, 1, 1, 0, 0, 2, 9})
	f.Add([]byte{0, 1, 1, 3, 1, 0, 0, 1, 1, 4, 0, 0})
	f.Fuzz(func(t *testing.T, story []byte) {
		w := newWorld(t)
		for ; len(story) >= 3; story = story[3:] {
			lease, n := id(story[1]%4), time.Duration(story[2])*100*time.Millisecond
			switch story[0] % 6 {
			case 0:
				w.do(lock.Acquire{Name: name, LeaseID: lease, Holder: "h", Mode: lock.Exclusive, TTL: n, Grace: n / 7, MaxHold: n * 3})
			case 1:
				w.do(lock.Renew{Name: name, LeaseID: lease, TTL: n})
			case 2:
				w.do(lock.Release{Name: name, LeaseID: lease})
			case 3:
				w.do(lock.Revoke{Name: name, Token: lock.Token(story[1]), Reason: "r"})
			case 4:
				w.do(lock.Expire{Name: name})
			case 5:
				w.pass(n)
			}
			if live := w.state.Live(w.now); len(live) > 1 {
				t.Fatalf("%d leases at once", len(live))
			}
		}
	})
}
