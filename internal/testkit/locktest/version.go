package locktest

import (
	"encoding/json"

	"github.com/paddock-lock/paddock/lock"
)

func versionCases() cases {
	return cases{
		"a write at the current version succeeds":       versionRight,
		"a write at another version is refused":         versionWrong,
		"version 0 only creates the resource":           versionZero,
		"a repeated conditional write changes nothing":  versionReplay,
		"a different conditional write is not a replay": versionOther,
		"a stale token is refused at any version":       versionStale,
	}
}

func (s *fixture) writeAt(version int64, token lock.Token, value string) (lock.FencedValue, error) {
	return s.locks.WriteFenced(s.ctx, lock.FencedWrite{
		Key: s.name, Lock: s.name, Token: token, Value: json.RawMessage(value), IfVersion: &version,
	})
}

func versionRight(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	for i := range int64(3) {
		f, err := s.writeAt(i, g.Token, `{"a":1}`)
		s.must(err)
		if f.Version != i+1 {
			s.Errorf("the write at version %d gave version %d", i, f.Version)
		}
	}
}

func versionWrong(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	s.mustWrite(g.Token, `1`)
	s.mustWrite(g.Token, `2`)
	for _, version := range []int64{0, 1, 3, 1 << 40} {
		_, err := s.writeAt(version, g.Token, `"new"`)
		if e := s.expectError(err, lock.ErrVersionMismatch); e.Version != 2 {
			s.Errorf("the refusal names version %d, want 2", e.Version)
		}
	}
	f, err := s.locks.ReadFenced(s.ctx, s.name)
	s.must(err)
	if f.Version != 2 || string(f.Value) != `2` {
		s.Errorf("after the refusals the resource is %+v", f)
	}
}

func versionZero(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	_, err := s.writeAt(1, g.Token, `1`)
	if e := s.expectError(err, lock.ErrVersionMismatch); e.Version != 0 {
		s.Errorf("the refusal names version %d of a missing resource", e.Version)
	}
	_, err = s.writeAt(0, g.Token, `1`)
	s.must(err)
	_, err = s.writeAt(0, g.Token, `2`)
	s.expectError(err, lock.ErrVersionMismatch)
}

func versionReplay(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	first, err := s.writeAt(0, g.Token, `{"a": 1}`)
	s.must(err)
	again, err := s.writeAt(0, g.Token, `{"a":1}`)
	s.must(err)
	if again.Version != 1 || !isNear(again.WrittenAt, first.WrittenAt) || !sameJSON(again.Value, first.Value) {
		s.Errorf("the write gave %+v and then %+v", first, again)
	}
}

func versionOther(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	_, err := s.writeAt(0, g.Token, `1`)
	s.must(err)
	_, err = s.writeAt(1, g.Token, `1`)
	s.must(err)
	_, err = s.writeAt(0, g.Token, `1`)
	s.expectError(err, lock.ErrVersionMismatch)
}

func versionStale(s *fixture) {
	first := s.acquireAndRelease(lock.Acquire{})
	_, err := s.writeAt(0, first.Token, `1`)
	s.must(err)
	second := s.mustAcquire(lock.Acquire{})
	_, err = s.writeAt(0, first.Token, `1`)
	s.expectStale(err, first.Token, second.Token)
	_, err = s.writeAt(1, second.Token, `2`)
	s.must(err)
}
