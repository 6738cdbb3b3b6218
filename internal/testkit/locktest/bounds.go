package locktest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func boundsCases() cases {
	return cases{
		"an invalid acquire is refused":        boundAcquire,
		"an invalid renewal is refused":        boundRenew,
		"an invalid release is refused":        boundRelease,
		"an invalid revocation is refused":     boundRevoke,
		"an invalid read of a lock is refused": boundLook,
		"an invalid watch is refused":          boundWatch,
		"an invalid list query is refused":     boundLocks,
		"an invalid event query is refused":    boundEvents,
		"an invalid verification is refused":   boundVerify,
		"an invalid fenced write is refused":   boundWrite,
		"an invalid fenced read is refused":    boundRead,
	}
}

// badNames returns invalid names.
func badNames() []string {
	return []string{
		"", "-a", ".", "..", ":a", "a/b", "a b", "a%2Fb", "é", "a\x00b", "a\n", "a?b", "a#b", "a\xff", strings.Repeat("x", lock.MaxNameLength+1),
	}
}

// expectInvalid ends the test unless err is ErrInvalid for the field.
func (s *fixture) expectInvalid(what any, err error, field string) {
	s.Helper()
	e := s.expectError(err, lock.ErrInvalid)
	if e.Field != field {
		s.Errorf("%+v: the invalid field is %q, want %q (%v)", what, e.Field, field, err)
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
	_, err = s.locks.Renew(
		s.ctx,
		lock.Renew{Name: s.name, LeaseID: newID(), Metadata: json.RawMessage(`{"a":1e99999}`)},
	)
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

func boundLook(s *fixture) {
	for _, name := range badNames() {
		_, err := s.locks.Lock(s.ctx, name)
		s.expectInvalid(name, err, "name")
		_, err = s.locks.Queue(s.ctx, name)
		s.expectInvalid(name, err, "name")
	}
}

func boundWatch(s *fixture) {
	for _, name := range badNames() {
		_, err := s.locks.Watch(s.ctx, lock.Watch{Name: name, Seen: "1.1.held"})
		s.expectInvalid(name, err, "name")
	}
	for _, wait := range []time.Duration{-1, -time.Hour, lock.MaxWait + time.Millisecond} {
		for _, seen := range []string{"", "1.1.held"} {
			_, err := s.locks.Watch(s.ctx, lock.Watch{Name: s.name, Seen: seen, Wait: wait})
			s.expectInvalid(wait, err, "wait_ms")
		}
	}
}

func boundLocks(s *fixture) {
	for field, wrong := range map[string][]lock.LockQuery{
		"prefix": {{Prefix: "a/b"}, {Prefix: "-"}, {Prefix: "a b"}, {Prefix: "a\xff"}, {Prefix: strings.Repeat("x", lock.MaxNameLength+1)}},
		"state":  {{State: "gone"}, {State: "Held"}},
		"holder": {{Holder: strings.Repeat("h", lock.MaxHolderLength+1)}, {Holder: "a\x00"}, {Holder: "a\xff"}},
		"limit":  {{Limit: -1}, {Limit: lock.MaxLimit + 1}},
		"cursor": {{Cursor: strings.Repeat("c", 1000)}},
	} {
		for _, q := range wrong {
			_, err := s.locks.Locks(s.ctx, q)
			s.expectInvalid(q, err, field)
		}
	}
}

func boundEvents(s *fixture) {
	for field, wrong := range map[string][]lock.EventQuery{
		"lock":    {{Name: "a/b"}, {Name: "a\xff"}, {Name: strings.Repeat("x", lock.MaxNameLength+1)}},
		"prefix":  {{Prefix: "a/b"}, {Prefix: "-"}, {Name: s.name, Prefix: s.name}},
		"limit":   {{Limit: -1}, {Limit: lock.MaxLimit + 1}},
		"cursor":  {{Cursor: strings.Repeat("c", 1000)}},
		"wait_ms": {{Wait: -1}, {Wait: lock.MaxWait + time.Millisecond}},
	} {
		for _, q := range wrong {
			_, err := s.locks.Events(s.ctx, q)
			s.expectInvalid(q, err, field)
		}
	}
}

func boundVerify(s *fixture) {
	for _, name := range badNames() {
		_, err := s.locks.VerifyToken(s.ctx, lock.Verify{Name: name, Token: 1})
		s.expectInvalid(name, err, "name")
	}
	for _, token := range badTokens() {
		_, err := s.locks.VerifyToken(s.ctx, lock.Verify{Name: s.name, Token: token})
		s.expectInvalid(token, err, "fencing_token")
	}
	for _, slot := range []int{-1, lock.MaxHolders + 1} {
		_, err := s.locks.VerifyToken(s.ctx, lock.Verify{Name: s.name, Token: 1, Slot: &slot})
		s.expectInvalid(slot, err, "slot")
	}
}

func boundWrite(s *fixture) {
	right := lock.FencedWrite{Key: s.name, Lock: s.name, Token: 1, Value: json.RawMessage(`1`)}
	refused := func(field string, change func(*lock.FencedWrite)) {
		s.Helper()
		w := right
		change(&w)
		_, err := s.locks.WriteFenced(s.ctx, w)
		s.expectInvalid(w, err, field)
	}
	for _, name := range badNames() {
		refused("key", func(w *lock.FencedWrite) { w.Key = name })
		refused("lock", func(w *lock.FencedWrite) { w.Lock = name })
	}
	for _, token := range badTokens() {
		refused("fencing_token", func(w *lock.FencedWrite) { w.Token = token })
	}
	for _, value := range []string{"", "{", "1 2", "nul", "\"\xff\"", "1e99999", "[[-1e309]]"} {
		refused("value", func(w *lock.FencedWrite) { w.Value = json.RawMessage(value) })
	}
	refused("value", func(w *lock.FencedWrite) { w.Value = nil })
	refused("slot", func(w *lock.FencedWrite) { w.Slot = -1 })
	refused("slot", func(w *lock.FencedWrite) { w.Slot = lock.MaxHolders + 1 })
	refused("if_version", func(w *lock.FencedWrite) { w.IfVersion = new(int64(-1)) })
}

func boundRead(s *fixture) {
	for _, name := range badNames() {
		_, err := s.locks.ReadFenced(s.ctx, name)
		s.expectInvalid(name, err, "key")
	}
}
