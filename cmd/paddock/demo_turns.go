package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// A successor is what B has after it took over.
type successor struct {
	id      lock.LeaseID
	token   lock.Token
	version int64
}

const valueB = `"written by B"`

// takeOver has B acquire the lock, which must give a greater token than A's, and write.
func (s *story) takeOver(ctx context.Context, tokenA lock.Token) (successor, error) {
	b := successor{id: lock.LeaseID(uuid.New())}
	grant, err := s.locks.Acquire(ctx, lock.Acquire{Name: s.name, LeaseID: b.id, Holder: "B"})
	if err != nil {
		return b, err
	}
	b.token = grant.Token
	if b.token <= tokenA {
		return b, fmt.Errorf("worker B was granted token %d after A had %d", b.token, tokenA)
	}
	s.say("B  acquires the lock: token %d", b.token)
	written, err := s.locks.WriteFenced(ctx, lock.FencedWrite{
		Key: s.name, Lock: s.name, Token: b.token, Value: json.RawMessage(valueB),
	})
	if err != nil {
		return b, err
	}
	b.version = written.Version
	s.say("B  writes with token %d: accepted, version %d", b.token, b.version)
	return b, nil
}

// wake lets A go on, and returns nil only if what it writes then is refused
// because of its token. An answer to what A wrote before it was stopped may come
// first.
func (s *story) wake(ctx context.Context, a *worker, tokenA lock.Token, b successor) error {
	if err := a.resume(); err != nil {
		return err
	}
	s.say("A  wakes up (SIGCONT) and goes on where it was, sure that it holds the lock")
	for {
		did, err := a.next(ctx)
		if err != nil {
			return err
		}
		s.report(did)
		switch {
		case did.Refused == lock.ErrStaleToken && did.Token == tokenA && did.Newest == b.token:
			return nil
		case did.Refused != "":
			return fmt.Errorf("worker A was refused, but not because token %d is older than %d", tokenA, b.token)
		case did.Wrote > b.version:
			return fmt.Errorf("worker A wrote with token %d after token %d had been granted and used", tokenA, b.token)
		}
	}
}

// conclude checks that the resource is as B left it.
func (s *story) conclude(ctx context.Context, b successor) error {
	now, err := s.locks.ReadFenced(ctx, s.name)
	if err != nil {
		return err
	}
	if now.Token != b.token || now.Version != b.version || string(now.Value) != valueB {
		return fmt.Errorf("the resource is not as B left it: version %d, token %d, %s", now.Version, now.Token, now.Value)
	}
	s.say("   the resource is as B left it: version %d, %s", now.Version, now.Value)
	if err := s.locks.Release(ctx, lock.Release{Name: s.name, LeaseID: b.id}); err != nil {
		return err
	}
	s.say("B  releases the lock\n")
	s.say("No lock can stop a process that does not know that it slept. The fencing token did, where the write landed.")
	return nil
}

// report says what A did, in A's words.
func (s *story) report(did deed) {
	switch {
	case did.Refused != "":
		s.say("A  writes with token %d: refused, 412 %s: %d has been granted since", did.Token, did.Refused, did.Newest)
	case did.Wrote > 0:
		s.say("A  writes with token %d: accepted, version %d", did.Token, did.Wrote)
	default:
		s.say("A  acquires the lock for %v: token %d", s.ttl, did.Token)
	}
}
