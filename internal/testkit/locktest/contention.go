package locktest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/paddock-lock/paddock/internal/testkit/soak"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func contentionCases() cases {
	two := contention{workers: 2, rounds: soak.Rounds(60, 256), atOnce: true}
	twoOfSets := two
	twoOfSets.rules = ofSets
	return cases{
		"two contenders pass a lock back and forth":              two.of(func(s *fixture, _ int) lock.Acquire { return lock.Acquire{} }),
		"two contenders with opposite orders pass a set":         twoOfSets.of(func(s *fixture, i int) lock.Acquire { return lock.Acquire{Locks: s.set(i, 1-i)} }),
		"20 contenders for one lock are served in order":         contention{workers: 20, rounds: 5}.of(func(*fixture, int) lock.Acquire { return lock.Acquire{} }),
		"16 contenders draw sets of 6 locks, and all are served": contention{workers: 16, rounds: 20, rules: ofSets}.of(drawsSets),
		"of 20 contenders for 3 permits at most 3 hold one": contention{workers: 20, rounds: 5, rules: verify.Rules{Capacity: threePermits}}.of(
			func(s *fixture, _ int) lock.Acquire { return lock.Acquire{Locks: s.permit(threePermits)} }),
		"readers and writers exclude each other, and none starves": contention{workers: 8, rounds: 8}.of(readsOrWrites),
		"never two at once, above and below":                       contention{workers: 8, rounds: 6, tree: true}.of(drawsInTree),
	}
}

func drawsSets(s *fixture, _ int) lock.Acquire {
	return lock.Acquire{Locks: s.set(rand.Perm(6)[:2+rand.IntN(2)]...)}
}

func readsOrWrites(s *fixture, i int) lock.Acquire {
	return lock.Acquire{Locks: s.as([]lock.Mode{lock.Exclusive, lock.Shared, lock.Shared, lock.Shared}[i%4])}
}

func drawsInTree(s *fixture, _ int) lock.Acquire {
	return lock.Acquire{Locks: lock.One([]string{s.name, s.in("a"), s.in("a:a"), s.in("a:b"), s.in("b:a")}[rand.IntN(5)])}
}

// ofSets are the rules for locks of sets: at a free lock, the first waiter may wait for other locks of its set.
var ofSets = verify.Rules{AllowOvertaking: true}

// A contention is workers that acquire, hold and release in rounds, and what must hold of their locks.
type contention struct {
	workers, rounds int
	rules           verify.Rules // of the histories
	tree            bool         // the locks are of a tree
	// atOnce: no call is repeated. It provokes lost wake-ups: one contender releases at the moment when the other begins
	// to wait, and no later request repairs it.
	atOnce bool
}

// of returns a test in which each worker sends these requests.
func (c contention) of(request func(s *fixture, worker int) lock.Acquire) func(*fixture) {
	return func(s *fixture) {
		if c.tree {
			s.tree()
		}
		u := &lockUse{newest: map[string]lock.Token{}}
		s.runWorkers(c.workers, func(ctx context.Context, i int) error {
			for range c.rounds {
				a := request(s, i)
				a.Holder = fmt.Sprint("worker ", i)
				if err := c.use(ctx, s, u, s.complete(a)); err != nil {
					return fmt.Errorf("worker %d: %w", i, err)
				}
			}
			return nil
		})
		for _, name := range slices.Sorted(maps.Keys(u.newest)) {
			if l := s.get(name); l.State != lock.Free {
				s.Errorf("in the end the lock is %+v", l)
			}
			if !c.tree { // its histories have gaps: only the lock itself has an event of a lease below
				s.verifyHistory(name, c.rules)
			}
		}
	}
}

// use acquires, holds and releases.
func (c contention) use(ctx context.Context, s *fixture, u *lockUse, a lock.Acquire) error {
	acquire := s.acquirePatiently
	if c.atOnce {
		a.Wait = lock.MaxWait
		acquire = s.locks().Acquire
	}
	g, err := acquire(ctx, a)
	if err != nil {
		return err
	}
	err = u.enter(g.Leases)
	runtime.Gosched()
	u.leave(g.Leases)
	return errors.Join(err, s.release(g))
}

// A lockUse knows the leases that are held, and the newest token of each lock.
type lockUse struct {
	sync.Mutex
	held   []lock.Lease
	newest map[string]lock.Token
}

// enter adds the leases, and returns an error if another one excludes one of them.
func (u *lockUse) enter(leases []lock.Lease) error {
	u.Lock()
	defer u.Unlock()
	for _, l := range leases {
		for _, o := range u.held {
			meet := o.Name == l.Name || strings.HasPrefix(o.Name, l.Name+":") || strings.HasPrefix(l.Name, o.Name+":")
			if meet && (o.Mode != l.Mode || l.Mode == lock.Exclusive || o.Slot == l.Slot) {
				return fmt.Errorf("beside %+v was granted %+v", o, l)
			}
		}
		if l.Slot > threePermits && l.Mode == lock.Permit || l.Token <= u.newest[l.Name] && l.Mode == lock.Exclusive {
			return fmt.Errorf("after token %d was granted %+v", u.newest[l.Name], l)
		}
		u.newest[l.Name] = l.Token
	}
	u.held = append(u.held, leases...)
	return nil
}

func (u *lockUse) leave(leases []lock.Lease) {
	u.Lock()
	defer u.Unlock()
	u.held = slices.DeleteFunc(u.held, func(o lock.Lease) bool { return o.ID == leases[0].ID })
}
