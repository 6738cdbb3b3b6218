package store

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/internal/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// A greedy command uses more than it says it will.
type greedy struct {
	lock.Acquire
	tokens, events int
}

func (greedy) Draws() (tokens, events int) { return 0, 0 }

func (g greedy) Apply(v lock.View) lock.Decision {
	for range g.tokens {
		v.Tokens()
	}
	return lock.Decision{Locks: v.Locks, Changed: true, Events: make([]lock.Event, g.events)}
}

func TestACommandThatOverdrawsFailsAndChangesNothing(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), pgtest.URL(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for _, g := range []greedy{{tokens: 1}, {events: 1}} {
		g.Name = "a"
		if _, err := s.do(t.Context(), g); !errors.Is(err, lock.ErrInternal) {
			t.Errorf("%+v: %v, want internal", g, err)
		}
	}
	good := batch.NewCall[lock.Command, outcome](lock.Acquire{Name: "b", LeaseID: lock.LeaseID{1}, Holder: "h", Mode: lock.Exclusive, TTL: time.Minute})
	bad := batch.NewCall[lock.Command, outcome](greedy{events: 9, Acquire: lock.Acquire{Name: "a"}})
	s.run([]*call{bad, good}, func(calls []*call) []*call { return calls })
	if l, err := s.Lock(t.Context(), "b"); err != nil || l.Phase != lock.Held {
		t.Errorf("what came in the same batch is %+v, %v", l, err)
	}
	if l, err := s.Lock(t.Context(), "a"); err != nil || l.Revision != 0 {
		t.Errorf("the lock is %+v, %v", l, err)
	}
}
