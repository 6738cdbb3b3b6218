package locktest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

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
