package locktest

import (
	"encoding/json"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

func staleCases() cases {
	return cases{
		"a stale write is in the history":                    staleWrite,
		"a stale write of a permit is in the history":        stalePermit,
		"a report is in the history once":                    staleReport,
		"a report of a token that is not stale is refused":   staleNot,
		"a report with invalid fields is refused":            staleInvalid,
		"a stale write to the longest key is in the history": staleLongKey,
	}
}

// refusal returns the last of n events of the lock, which must be a refusal of the grant's token.
func (s *fixture) refusal(n int, g lock.Grant, where string) lock.Event {
	s.Helper()
	events := s.events(s.name, n)
	s.expectNoGaps(events)
	e := events[n-1]
	if e.Kind != lock.Refused || e.Token != g.Token || e.Slot != g.Slot || e.Mode != g.Mode || e.Holder != g.Holder ||
		e.Reason != where || e.Place != 0 || e.Ref != 0 {
		s.Errorf("the refusal of %+v is %+v", g.Lease, e)
	}
	return e
}

func staleWrite(s *fixture) {
	first := s.acquireAndExpire(lock.Acquire{Holder: "the first"})
	second := s.mustAcquire(lock.Acquire{Holder: "the second"})
	s.events(s.name, 3) // a refusal names the holder if the events of its lease are visible in time
	_, err := s.write(first.Token, `1`)
	s.expectStale(err, first.Token, second.Token)
	e := s.refusal(4, first, "fenced value "+s.name)
	ended := s.events(s.name, 4)[1].At
	if e.Newest != second.Token || e.HeldBy != second.Holder || !isNear(e.At.Add(-e.Late), ended) {
		s.Errorf("the refusal is %+v, want one of a lease that ended at %v", e, ended)
	}
	s.must(s.release(second))
	third := s.acquireAndRelease(lock.Acquire{})
	s.events(s.name, 7)
	_, err = s.write(second.Token, `1`)
	s.expectStale(err, second.Token, third.Token)
	if e := s.refusal(8, second, "fenced value "+s.name); e.Newest != third.Token || e.HeldBy != "" {
		s.Errorf("with no holder the refusal is %+v", e)
	}
}

func stalePermit(s *fixture) {
	permit := lock.Acquire{Mode: lock.Permit, Capacity: 2}
	first, second := s.mustAcquire(permit), s.mustAcquire(permit)
	s.must(s.release(second))
	s.events(s.name, 3)
	_, err := s.locks.WriteFenced(s.ctx, lock.FencedWrite{
		Key: s.name, Lock: s.name, Token: second.Token, Slot: second.Slot, Value: json.RawMessage(`1`),
	})
	s.expectError(err, lock.ErrStaleToken)
	if e := s.refusal(4, second, "fenced value "+s.name); e.HeldBy != first.Holder || e.Newest != second.Token {
		s.Errorf("the refusal is %+v", e)
	}
}

func staleReport(s *fixture) {
	first := s.acquireAndRelease(lock.Acquire{})
	second := s.mustAcquire(lock.Acquire{})
	s.events(s.name, 3)
	report := lock.ReportStale{Name: s.name, Token: first.Token, Where: "table invoices"}
	recorded, err := s.locks.ReportStale(s.ctx, report)
	if s.must(err); !recorded {
		s.Error("the first report was not recorded")
	}
	e := s.refusal(4, first, report.Where)
	if e.Newest != second.Token || e.HeldBy != second.Holder {
		s.Errorf("the refusal is %+v", e)
	}
	if l := s.get(s.name); l.Revision != e.Revision || l.Token != second.Token || l.State != lock.Held {
		s.Errorf("after a report the lock is %+v", l)
	}
}

func staleNot(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	_, err := s.locks.ReportStale(s.ctx, lock.ReportStale{Name: s.name, Token: g.Token})
	if e := s.expectError(err, lock.ErrTokenMismatch); e.Token != g.Token || e.Newest != g.Token {
		s.Errorf("refused with %+v", e)
	}
	_, err = s.locks.ReportStale(s.ctx, lock.ReportStale{Name: s.name, Token: g.Token + 1})
	s.expectError(err, lock.ErrUnknownToken)
	s.must(s.release(g))
	s.events(s.name, 2)
}

func staleInvalid(s *fixture) {
	for _, r := range []lock.ReportStale{
		{Name: "a/b", Token: 1}, {Name: s.name}, {Name: s.name, Token: 1, Slot: new(-1)}, {Name: s.name, Token: 1, Where: "a\nb"},
	} {
		_, err := s.locks.ReportStale(s.ctx, r)
		s.expectError(err, lock.ErrInvalid)
	}
}

func staleLongKey(s *fixture) {
	first := s.acquireAndRelease(lock.Acquire{})
	second := s.mustAcquire(lock.Acquire{})
	s.events(s.name, 3)
	key := s.name + strings.Repeat("k", lock.MaxNameLength-len(s.name))
	_, err := s.locks.WriteFenced(s.ctx, lock.FencedWrite{Key: key, Lock: s.name, Token: first.Token, Value: json.RawMessage(`1`)})
	s.expectStale(err, first.Token, second.Token)
	s.refusal(4, first, "fenced value "+key)
}
