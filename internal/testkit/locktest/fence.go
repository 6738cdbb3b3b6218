package locktest

import (
	"encoding/json"

	"github.com/paddock-lock/paddock/lock"
)

func fenceCases() cases {
	return cases{
		"a holder can write repeatedly":                        fenceTwice,
		"a write is read back":                                 fenceRead,
		"any JSON is a valid value":                            fenceValues,
		"an unwritten key is not found":                        fenceNotFound,
		"a stale token is refused after the next write":        fenceStale,
		"a stale token is refused before the next write":       fenceUnwritten,
		"a token that was never granted is refused":            fenceUnknown,
		"the token of another lock is refused":                 fenceElsewhere,
		"a resource keeps the greatest token it has seen":      fenceSeen,
		"the newest token can write after its lease has ended": fenceEnded,
		"a refused write changes nothing":                      fenceRefused,
	}
}

// write writes the fixture's key with a token of its lock.
func (s *fixture) write(token lock.Token, value string) (lock.FencedValue, error) {
	return s.locks.WriteFenced(s.ctx, lock.FencedWrite{
		Key: s.name, Lock: s.name, Token: token, Value: json.RawMessage(value),
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

func fenceTwice(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	for i := range int64(3) {
		f := s.mustWrite(g.Token, `{"n":1}`)
		if f.Version != i+1 || f.Token != g.Token || f.Key != s.name || f.Lock != s.name || f.WrittenAt.IsZero() {
			s.Errorf("write %d gave %+v", i+1, f)
		}
	}
}

func fenceRead(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	wrote := s.mustWrite(g.Token, `{"balance": 100}`)
	f, err := s.locks.ReadFenced(s.ctx, s.name)
	s.must(err)
	if f.Key != s.name || f.Lock != s.name || f.Token != g.Token || f.Version != 1 ||
		!sameJSON(
			f.Value,
			wrote.Value,
		) || !sameJSON(f.Value, []byte(`{"balance":100}`)) || !isNear(f.WrittenAt, wrote.WrittenAt) {
		s.Errorf("wrote %+v and read %+v", wrote, f)
	}
}

func fenceValues(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	for _, value := range []string{
		`null`, `true`, `0`, `""`, `[]`, `{}`, `12345678901234567890.5`, `"<&> \u2028 é 🐎 \" \\"`, `[null,{"a":[{}]}]`, `"\u0000"`,
	} {
		s.mustWrite(g.Token, value)
		f, err := s.locks.ReadFenced(s.ctx, s.name)
		s.must(err)
		if !sameJSON(f.Value, []byte(value)) {
			s.Errorf("wrote %s and read %s", value, f.Value)
		}
	}
}

func fenceNotFound(s *fixture) {
	_, err := s.locks.ReadFenced(s.ctx, s.name)
	s.expectError(err, lock.ErrNotFound)
	s.mustAcquire(lock.Acquire{})
	_, err = s.locks.ReadFenced(s.ctx, s.name)
	s.expectError(err, lock.ErrNotFound)
}

func fenceStale(s *fixture) {
	first := s.acquireAndRelease(lock.Acquire{})
	s.mustWrite(first.Token, `1`)
	second := s.mustAcquire(lock.Acquire{Holder: "second"})
	s.mustWrite(second.Token, `2`)
	_, err := s.write(first.Token, `3`)
	s.expectStale(err, first.Token, second.Token)
}

func fenceUnwritten(s *fixture) {
	paused := s.acquireAndExpire(lock.Acquire{})
	s.mustWrite(paused.Token, `1`)
	second := s.mustAcquire(lock.Acquire{Holder: "second"})
	_, err := s.write(paused.Token, `2`)
	s.expectStale(err, paused.Token, second.Token)
	s.mustWrite(second.Token, `3`)
}

func fenceUnknown(s *fixture) {
	_, err := s.write(1, `1`)
	s.expectError(err, lock.ErrUnknownToken)
	g := s.mustAcquire(lock.Acquire{})
	for _, token := range []lock.Token{g.Token + 1, lock.MaxToken} {
		_, err = s.write(token, `1`)
		if e := s.expectError(err, lock.ErrUnknownToken); e.Token != token || e.Newest != g.Token {
			s.Errorf("the refusal names %d and %d, want %d and %d", e.Token, e.Newest, token, g.Token)
		}
	}
}

func fenceElsewhere(s *fixture) {
	before := s.mustAcquire(lock.Acquire{Name: s.name + ":before"})
	g := s.mustAcquire(lock.Acquire{})
	after := s.mustAcquire(lock.Acquire{Name: s.name + ":after"})
	_, err := s.write(before.Token, `1`)
	s.expectStale(err, before.Token, g.Token)
	_, err = s.write(after.Token, `1`)
	s.expectError(err, lock.ErrUnknownToken)
}

func fenceSeen(s *fixture) {
	low := s.mustAcquire(lock.Acquire{Name: s.name + ":low"})
	high := s.mustAcquire(lock.Acquire{})
	s.mustWrite(high.Token, `1`)
	_, err := s.locks.WriteFenced(s.ctx, lock.FencedWrite{
		Key: s.name, Lock: low.Name, Token: low.Token, Value: json.RawMessage(`2`),
	})
	s.expectStale(err, low.Token, high.Token)
	s.events(low.Name, 1) // its own lock does not know the token as stale, so nothing is recorded
}

func fenceEnded(s *fixture) {
	g := s.acquireAndRelease(lock.Acquire{})
	if f := s.mustWrite(g.Token, `1`); f.Version != 1 {
		s.Errorf("the write gave %+v", f)
	}
}

func fenceRefused(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	s.mustWrite(g.Token, `"kept"`)
	_, err := s.write(g.Token+1, `"refused"`)
	s.expectError(err, lock.ErrUnknownToken)
	f, err := s.locks.ReadFenced(s.ctx, s.name)
	s.must(err)
	if f.Version != 1 || string(f.Value) != `"kept"` || f.Token != g.Token {
		s.Errorf("after the refusal the resource is %+v", f)
	}
}
