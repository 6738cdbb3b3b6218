package locktest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func boundsCases() cases {
	return cases{
		"an acquire beyond its bounds is refused":       boundAcquire,
		"a renewal beyond its bounds is refused":        boundRenew,
		"a release beyond its bounds is refused":        boundRelease,
		"a revocation beyond its bounds is refused":     boundRevoke,
		"a look beyond its bounds is refused":           boundLook,
		"a watch beyond its bounds is refused":          boundWatch,
		"a list beyond its bounds is refused":           boundLocks,
		"a list of events beyond its bounds is refused": boundEvents,
		"a verification beyond its bounds is refused":   boundVerify,
		"a fenced write beyond its bounds is refused":   boundWrite,
		"a fenced read beyond its bounds is refused":    boundRead,
	}
}

// badNames are names that no lock has.
func badNames() []string {
	return []string{
		"", "-a", ".", "..", ":a", "a/b", "a b", "a%2Fb", "é", "a\x00b", "a\n", "a?b", "a#b", "a\xff", strings.Repeat("x", lock.MaxNameLength+1),
	}
}

// expectInvalid ends the test unless err says that the field breaks a bound.
func (s *fixture) expectInvalid(what any, err error, field string) {
	s.Helper()
	e := s.expectError(err, lock.ErrInvalid)
	if e.Field != field {
		s.Errorf("%+v: the field at fault is %q, want %q (%v)", what, e.Field, field, err)
	}
}

func boundAcquire(s *fixture) {
	for _, name := range badNames() {
		_, err := s.locks.Acquire(s.ctx, lock.Acquire{Name: name, Holder: "h", TTL: longTTL})
		s.expectInvalid(name, err, "name")
	}
	for field, wrong := range map[string][]lock.Acquire{
		"holder": {
			{Holder: strings.Repeat("h", lock.MaxHolderLength+1)}, {Holder: "a\nb"}, {Holder: "a\x00"}, {Holder: "\u0085"}, {Holder: "a\xff"},
			{Holder: " "}, {Holder: "\u3164"}, {Holder: "\u200d"}, {Holder: "\u202enimda"}, {Holder: "a\u2066b"}, {Holder: "a\u2028b"}},
		"mode": {{Mode: 7}},
		"capacity": {
			{Capacity: 1}, {Mode: lock.Shared, Capacity: 3}, {Mode: lock.Permit}, {Mode: lock.Permit, Capacity: -1},
			{Mode: lock.Permit, Capacity: lock.MaxHolders + 1}},
		"wait_ms":     {{Wait: -time.Millisecond}, {Wait: -1}, {Wait: lock.MaxWait + time.Millisecond}},
		"ttl_ms":      {{TTL: lock.MinTTL - 1}, {TTL: 1}, {TTL: -longTTL}, {TTL: lock.MaxTTL + time.Millisecond}},
		"grace_ms":    {{Grace: -time.Millisecond}, {Grace: lock.MaxGrace + time.Millisecond}},
		"max_hold_ms": {{MaxHold: lock.MinTTL - 1}, {MaxHold: -1}, {MaxHold: lock.MaxHold + time.Millisecond}},
		"metadata": {
			{Metadata: json.RawMessage(`[]`)}, {Metadata: json.RawMessage(`null`)}, {Metadata: json.RawMessage(`"{}"`)},
			{Metadata: json.RawMessage(`{`)}, {Metadata: json.RawMessage{}}, {Metadata: json.RawMessage("{\"a\":\"\xff\"}")},
			{Metadata: json.RawMessage(`{"a":"` + strings.Repeat("x", lock.MaxMetadataSize-7) + `"}`)},
			{Metadata: json.RawMessage(`{"a":1e99999}`)}, {Metadata: json.RawMessage(`{"a":[{"b":-1e309}]}`)},
		},
	} {
		for _, a := range wrong {
			_, err := s.acquire(a)
			s.expectInvalid(a, err, field)
		}
	}
	_, err := s.locks.Acquire(s.ctx, lock.Acquire{Name: s.name, TTL: longTTL})
	s.expectInvalid("no holder", err, "holder")
	if l := s.get(s.name); l.Revision != 0 {
		s.Errorf("a refused acquire changed the lock: %+v", l)
	}
}

func boundRenew(s *fixture) {
	for _, name := range badNames() {
		_, err := s.locks.Renew(s.ctx, lock.Renew{Name: name, LeaseID: newID()})
		s.expectInvalid(name, err, "name")
	}
	_, err := s.locks.Renew(s.ctx, lock.Renew{Name: s.name})
	s.expectInvalid("no lease_id", err, "lease_id")
	for _, ttl := range []time.Duration{lock.MinTTL - 1, 1, -1, lock.MaxTTL + time.Millisecond} {
		_, err := s.locks.Renew(s.ctx, lock.Renew{Name: s.name, LeaseID: newID(), TTL: ttl})
		s.expectInvalid(ttl, err, "ttl_ms")
	}
	_, err = s.locks.Renew(s.ctx, lock.Renew{Name: s.name, LeaseID: newID(), Metadata: json.RawMessage(`{"a":1e99999}`)})
	s.expectInvalid("a number beyond a float64", err, "metadata")
}

func boundRelease(s *fixture) {
	for _, name := range badNames() {
		s.expectInvalid(name, s.locks.Release(s.ctx, lock.Release{Name: name, LeaseID: newID()}), "name")
	}
	s.expectInvalid("no lease_id", s.locks.Release(s.ctx, lock.Release{Name: s.name}), "lease_id")
}

func boundRevoke(s *fixture) {
	for _, name := range badNames() {
		_, err := s.locks.Revoke(s.ctx, lock.Revoke{Name: name, Token: 1, Reason: "r"})
		s.expectInvalid(name, err, "name")
	}
	for _, token := range badTokens() {
		_, err := s.locks.Revoke(s.ctx, lock.Revoke{Name: s.name, Token: token, Reason: "r"})
		s.expectInvalid(token, err, "fencing_token")
	}
	for _, slot := range []int{-1, lock.MaxHolders + 1} {
		_, err := s.locks.Revoke(s.ctx, lock.Revoke{Name: s.name, Token: 1, Slot: &slot, Reason: "r"})
		s.expectInvalid(slot, err, "slot")
	}
	for _, reason := range []string{"", " ", "\u3164", "\u202enimda", "a\nb", "a\xff", strings.Repeat("r", lock.MaxReasonLength+1)} {
		_, err := s.locks.Revoke(s.ctx, lock.Revoke{Name: s.name, Token: 1, Reason: reason})
		s.expectInvalid(reason, err, "reason")
	}
}

func badTokens() []lock.Token { return []lock.Token{0, -1, lock.MaxToken + 1} }
