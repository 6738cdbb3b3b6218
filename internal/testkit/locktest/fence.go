package locktest

import (
	"encoding/json"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

func fenceCases() cases {
	return cases{
		"a write is read back":                               fenceRead,
		"any JSON is a valid value":                          fenceValues,
		"a token that was never granted is refused":          fenceUnknown,
		"a resource keeps the greatest token it has seen":    fenceSeen,
		"a write at another version is refused":              fenceVersion,
		"a repeated conditional write changes nothing":       fenceReplay,
		"an operation is written once":                       fenceOperation,
		"a stale write is refused, and is in the history":    fenceStale,
		"a report of a stale token is in the history":        fenceReport,
		"a report of a token that is not stale is refused":   fenceReportNotStale,
		"a token is current, has ended, is stale or unknown": fenceVerify,
	}
}

// write writes the fixture's key with a token of its lock.
func (s *fixture) write(token lock.Token, value string) (lock.FencedValue, error) {
	return s.locks().WriteFenced(s.ctx, lock.FencedWrite{Key: s.name, Lock: s.name, Token: token, Value: json.RawMessage(value)})
}

// writeAt is write at the version.
func (s *fixture) writeAt(version int64, token lock.Token, value string) (lock.FencedValue, error) {
	return s.locks().WriteFenced(s.ctx, lock.FencedWrite{
		Key: s.name, Lock: s.name, Token: token, Value: json.RawMessage(value), IfVersion: &version,
	})
}

func (s *fixture) mustWrite(token lock.Token, value string) lock.FencedValue {
	s.Helper()
	f, err := s.write(token, value)
	s.must(err)
	return f
}

func (s *fixture) expectStale(err error, shown, newest lock.Token) {
	s.Helper()
	if e := s.expectError(err, lock.ErrStaleToken); e.Token != shown || e.Newest != newest {
		s.Errorf("the refusal names %d and %d, want %d and %d", e.Token, e.Newest, shown, newest)
	}
}

func fenceRead(s *fixture) {
	s.expectError(errOf(s.locks().ReadFenced(s.ctx, s.name)), lock.ErrNotFound)
	g := s.mustAcquire(lock.Acquire{})
	for i := range int64(3) {
		wrote := s.mustWrite(g.Token, `{"balance": 100}`)
		f, err := s.locks().ReadFenced(s.ctx, s.name)
		s.must(err)
		for _, v := range []lock.FencedValue{wrote, f} {
			if v.Key != s.name || v.Lock != s.name || v.Token != g.Token || v.Version != i+1 || v.WrittenAt.IsZero() ||
				!isNear(v.WrittenAt, wrote.WrittenAt) || !sameJSON(v.Value, []byte(`{"balance":100}`)) {
				s.Errorf("wrote %+v and read %+v", wrote, f)
			}
		}
	}
}

func fenceValues(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	for _, value := range []string{
		`null`, `true`, `0`, `""`, `[]`, `{}`, `12345678901234567890.5`, `"<&> \u2028 é 🐎 \" \\"`, `[null,{"a":[{}]}]`, `"\u0000"`,
	} {
		s.mustWrite(g.Token, value)
		f, err := s.locks().ReadFenced(s.ctx, s.name)
		s.must(err)
		if !sameJSON(f.Value, []byte(value)) {
			s.Errorf("wrote %s and read %s", value, f.Value)
		}
	}
}

func fenceUnknown(s *fixture) {
	s.expectError(errOf(s.write(1, `1`)), lock.ErrUnknownToken)
	g := s.mustAcquire(lock.Acquire{})
	for _, token := range []lock.Token{g.Token + 1, lock.MaxToken} {
		if e := s.expectError(errOf(s.write(token, `1`)), lock.ErrUnknownToken); e.Token != token || e.Newest != g.Token {
			s.Errorf("the refusal names %d and %d, want %d and %d", e.Token, e.Newest, token, g.Token)
		}
	}
}

func fenceSeen(s *fixture) {
	low := s.mustAcquire(lock.Acquire{Locks: lock.One(s.name + ":low")})
	high := s.mustAcquire(lock.Acquire{})
	s.mustWrite(high.Token, `1`)
	_, err := s.locks().WriteFenced(s.ctx, lock.FencedWrite{Key: s.name, Lock: low.Name, Token: low.Token, Value: json.RawMessage(`2`)})
	s.expectStale(err, low.Token, high.Token)
	s.events(low.Name, 1) // its own lock does not know the token as stale, so nothing is recorded
}

func fenceVersion(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	for version := range int64(3) { // the version of a missing resource is 0
		for _, wrong := range []int64{version + 1, 1 << 40} {
			if e := s.expectError(errOf(s.writeAt(wrong, g.Token, `"new"`)), lock.ErrVersionMismatch); e.Version != version {
				s.Errorf("the refusal names version %d, want %d", e.Version, version)
			}
		}
		f, err := s.writeAt(version, g.Token, `"old"`)
		s.must(err)
		if f.Version != version+1 {
			s.Errorf("the write at version %d gave version %d", version, f.Version)
		}
	}
	if f, err := s.locks().ReadFenced(s.ctx, s.name); err != nil || f.Version != 3 || string(f.Value) != `"old"` {
		s.Errorf("after the refusals the resource is %+v, %v", f, err)
	}
}

func fenceReplay(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	first, err := s.writeAt(0, g.Token, `{"a": 1}`)
	s.must(err)
	again, err := s.writeAt(0, g.Token, `{"a":1}`)
	s.must(err)
	if again.Version != 1 || !isNear(again.WrittenAt, first.WrittenAt) || !sameJSON(again.Value, first.Value) {
		s.Errorf("the write gave %+v and then %+v", first, again)
	}
}

// fenceOperation: the next holder repeats what the last one has written before it died.
func fenceOperation(s *fixture) {
	write := func(key string, g lock.Grant, id, value string) lock.FencedValue {
		s.Helper()
		f, err := s.locks().WriteFenced(s.ctx, lock.FencedWrite{
			Key: key, Lock: s.name, Token: g.Token, Value: json.RawMessage(value), OperationID: id, IfVersion: new(int64),
		})
		if id == "other" {
			s.expectError(err, lock.ErrVersionMismatch)
			return f
		}
		s.must(err)
		return f
	}
	longest := strings.Repeat("ä", lock.MaxOperationIDLength)
	first := s.acquireAndExpire(lock.Acquire{})
	wrote := write(s.name, first, longest, `"first"`)
	second := s.mustAcquire(lock.Acquire{})
	for range 2 {
		again := write(s.name, second, longest, `"again"`)
		if again.Version != 1 || again.Token != first.Token || !isNear(again.WrittenAt, wrote.WrittenAt) || !sameJSON(again.Value, wrote.Value) {
			s.Errorf("the write gave %+v and then %+v", wrote, again)
		}
	}
	write(s.name, second, "other", `2`) // its refusal records no operation
	if f := s.mustWrite(second.Token, `"second"`); f.Version != 2 {
		s.Errorf("a write that is no operation gave %+v", f)
	}
	if again := write(s.name, second, longest, `3`); again.Version != 2 || again.Token != second.Token || !sameJSON(again.Value, []byte(`"second"`)) {
		s.Errorf("after another write the operation is answered with %+v", again)
	}
	f, err := s.locks().WriteFenced(s.ctx, lock.FencedWrite{
		Key: s.name, Lock: s.name, Token: second.Token, Value: json.RawMessage(`4`), OperationID: "other",
	})
	s.must(err)
	if f.Version != 3 {
		s.Errorf("a refused operation was recorded: %+v", f)
	}
	if f := write(s.name+":k", second, longest, `5`); f.Version != 1 {
		s.Errorf("the operation of another key gave %+v", f)
	}
	_, err = s.locks().WriteFenced(s.ctx, lock.FencedWrite{
		Key: s.name, Lock: s.name, Token: first.Token, Value: json.RawMessage(`6`), OperationID: longest,
	})
	s.expectStale(err, first.Token, second.Token)
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

// fenceStale writes to the longest key.
func fenceStale(s *fixture) {
	key := s.name + strings.Repeat("k", lock.MaxNameLength-len(s.name))
	write := func(g lock.Grant) error {
		_, err := s.locks().WriteFenced(s.ctx, lock.FencedWrite{Key: key, Lock: s.name, Token: g.Token, Value: json.RawMessage(`1`)})
		return err
	}
	first := s.acquireAndExpire(lock.Acquire{Holder: "the first"})
	second := s.mustAcquire(lock.Acquire{Holder: "the second"})
	s.events(s.name, 3) // a refusal names the holder if the events of its lease are visible in time
	s.expectStale(write(first), first.Token, second.Token)
	e := s.refusal(4, first, "fenced value "+key)
	ended := s.events(s.name, 4)[1].At
	if e.Newest != second.Token || e.HeldBy != second.Holder || !isNear(e.At.Add(-e.Late), ended) {
		s.Errorf("the refusal is %+v, want one of a lease that ended at %v", e, ended)
	}
	s.must(s.release(second))
	third := s.acquireAndRelease(lock.Acquire{})
	s.events(s.name, 7)
	s.expectStale(write(second), second.Token, third.Token)
	if e := s.refusal(8, second, "fenced value "+key); e.Newest != third.Token || e.HeldBy != "" {
		s.Errorf("with no holder the refusal is %+v", e)
	}
}

func fenceReport(s *fixture) {
	g := s.mustAcquirePermits(2)
	s.must(s.release(g[1]))
	s.events(s.name, 3)
	report := lock.ReportStale{Name: s.name, Token: g[1].Token, Slot: &g[1].Slot, Where: "table invoices"}
	if recorded, err := s.locks().ReportStale(s.ctx, report); err != nil || !recorded {
		s.Errorf("the report was recorded: %t, %v", recorded, err)
	}
	e := s.refusal(4, g[1], report.Where)
	if e.Newest != g[1].Token || e.HeldBy != g[0].Holder {
		s.Errorf("the refusal is %+v", e)
	}
	if l := s.get(s.name); l.Revision != e.Revision || l.Token != g[1].Token || l.State != lock.Held {
		s.Errorf("after a report the lock is %+v", l)
	}
}

func fenceReportNotStale(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	_, err := s.locks().ReportStale(s.ctx, lock.ReportStale{Name: s.name, Token: g.Token})
	if e := s.expectError(err, lock.ErrTokenMismatch); e.Token != g.Token || e.Newest != g.Token {
		s.Errorf("refused with %+v", e)
	}
	s.expectError(errOf(s.locks().ReportStale(s.ctx, lock.ReportStale{Name: s.name, Token: g.Token + 1})), lock.ErrUnknownToken)
	s.must(s.release(g))
	s.events(s.name, 2)
}

func (s *fixture) verify(name string, token lock.Token) lock.Verification {
	s.Helper()
	v, err := s.locks().VerifyToken(s.ctx, lock.Verify{Name: name, Token: token})
	s.must(err)
	if v.Name != name || v.Token != token || v.CheckedAt.IsZero() {
		s.Fatalf("the verification of token %d of %s is %+v", token, name, v)
	}
	return v
}

func fenceVerify(s *fixture) {
	expect := func(token lock.Token, want lock.TokenStatus, newest lock.Token) {
		s.Helper()
		v := s.verify(s.name, token)
		if v.Status != want || v.Newest != newest || (v.Remaining > 0) != (want == lock.Current) || v.Remaining > longTTL {
			s.Errorf("the verification of token %d is %+v, want %s with the newest %d", token, v, want, newest)
		}
	}
	expect(1, lock.Unknown, 0)
	first := s.mustAcquire(lock.Acquire{})
	expect(first.Token, lock.Current, first.Token)
	if v := s.verify(s.name, first.Token); v.CheckedAt.Before(first.AcquiredAt) {
		s.Errorf("checked at %v, before the grant at %v", v.CheckedAt, first.AcquiredAt)
	}
	s.must(s.release(first))
	expect(first.Token, lock.Ended, first.Token)
	second := s.acquireAndExpire(lock.Acquire{})
	expect(second.Token, lock.Ended, second.Token)
	expect(first.Token, lock.Stale, second.Token)
	expect(s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(1))}).Token, lock.Unknown, second.Token)
	expect(lock.MaxToken, lock.Unknown, second.Token)
}
