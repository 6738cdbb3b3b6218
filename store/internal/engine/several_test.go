package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/policy"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// TestACommandOnSeveralLocksIsOneTransaction, with one token, and which is refused as a whole.
func TestACommandOnSeveralLocksIsOneTransaction(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, s := newReplica(t, url, 1), connect(t, url)
	r.acquires("other") // so that the length of its lease is recorded
	r.reset()
	c := wants("b", "a")
	out := r.must(c)
	r.used(1, 0, 1)
	if len(out.Locks) != 2 || out.Due.IsZero() || s.number("select count(distinct xmin::text) from paddock.records where name in ('a', 'b')") != 1 {
		t.Errorf("not one transaction on two locks: %+v", out)
	}
	if again := r.must(c); !again.Replayed {
		t.Errorf("repeated, it gave %+v", again)
	}
	single := r.acquires("c")
	for _, refused := range []lock.Acquire{wants("a", "free"), wants("free", "c"), wants("free", "c", "free:too")} {
		if _, err := r.Do(t.Context(), refused); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("%v: %v", refused.Names(), err)
		}
	}
	if n := s.number("select count(*) from paddock.records where name like 'free%' and (lease_id is not null or revision > 0)"); n != 0 {
		t.Errorf("%d locks were written by a command that was refused", n)
	}
	r.must(endOf(c))
	r.must(endOf(c)) // again: how both leases ended is read
	if _, err := r.Do(t.Context(), c); !errors.Is(err, lock.ErrLeaseLost) {
		t.Errorf("acquired again after its end: %v", err)
	}
	r.releases(single)
	next := wants("c", "a")
	outcomes, errs := r.DoAll(t.Context(), []lock.Command{wants("b"), next, endOf(next), wants("c"), wants("b")})
	if want := []error{nil, nil, nil, nil, lock.ErrHeld}; !slices.EqualFunc(errs, want, errors.Is) {
		t.Errorf("in one batch: %v, want %v", errs, want)
	}
	if outcomes[3].Leases[0].Token <= outcomes[1].Leases[0].Token {
		t.Errorf("token %d of the same lock after %d", outcomes[3].Leases[0].Token, outcomes[1].Leases[0].Token)
	}
}

// TestASetIsDecidedOnTheCache, and again with its rows locked if another replica has changed one of its locks.
func TestASetIsDecidedOnTheCache(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, other := newReplica(t, url, 1), newReplica(t, url, 2)
	first := wants("a", "b")
	r.must(first)
	r.must(endOf(first))
	r.reset()
	cached := wants("a", "b")
	r.must(cached)
	r.used(0, 0, 1)
	r.must(endOf(cached))
	r.used(0, 0, 1)
	between := other.acquires("b")
	other.releases(between)
	r.reset()
	missed := wants("a", "b")
	out := r.must(missed)
	r.used(0, 1, 2)
	if len(out.Leases) != 2 || out.Leases[0].Token != out.Leases[1].Token || out.Leases[0].Token <= between.Token {
		t.Errorf("after token %d it was granted %+v", between.Token, out.Leases)
	}
	if _, err := other.Do(t.Context(), wants("a", "b")); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("another one gave %v", err)
	}
	other.must(endOf(missed))
}

// holders records which caller holds which lock, by the answers.
type holders struct {
	t       *testing.T
	mu      sync.Mutex
	of      map[string]lock.LeaseID
	granted int
}

func (h *holders) hold(names []string, id lock.LeaseID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.granted++
	for _, name := range names {
		if other, held := h.of[name]; held {
			h.t.Errorf("%s is held twice, by %x and %x", name, other[:], id[:])
		}
		h.of[name] = id
	}
}

func (h *holders) free(names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range names {
		delete(h.of, name)
	}
}

// TestCommandsOnSeveralLocksOfTwoReplicas: at random, in any order of names, beside commands on one lock. Nothing is
// written in part, no call is without an answer, and no transaction waits for another one that waits for it.
func TestCommandsOnSeveralLocksOfTwoReplicas(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	replicas := []*replica{newReplica(t, url, 1), newReplica(t, url, 2)}
	s := connect(t, url)
	const locks, callers, pairs = 6, 8, 25
	var all sync.WaitGroup
	h := holders{t: t, of: make(map[string]lock.LeaseID)}
	for i := range callers {
		r, random := replicas[i%2], rand.New(rand.NewPCG(1, uint64(i)))
		all.Go(func() {
			for range pairs {
				var names []string
				for _, n := range random.Perm(locks)[:1+random.IntN(3)] {
					names = append(names, fmt.Sprint("lock:", n))
				}
				c := wants(names...)
				_, err := r.Do(t.Context(), c)
				if errors.Is(err, lock.ErrHeld) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				h.hold(names, c.LeaseID)
				h.free(names)
				if _, err := r.Do(t.Context(), endOf(c)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if h.granted < callers {
		t.Errorf("only %d of %d were granted", h.granted, callers*pairs)
	}
	for _, q := range []string{
		"select count(*) from paddock.records where lease_id is not null",
		"select deadlocks from pg_stat_database where datname = current_database()",
	} {
		if n := s.number(q); n != 0 {
			t.Errorf("%s: %d", q, n)
		}
	}
}

// TestSeveralLocksOfWhichOneIsLockedOutside: the command waits in a slow lane, and no other one does.
func TestSeveralLocksOfWhichOneIsLockedOutside(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, outside := newReplica(t, url, 1), connect(t, url)
	r.releases(r.acquires("b"))
	outside.exec("begin; select from paddock.records where name = 'b' for update")
	c, done := wants("a", "b"), make(chan error, 1)
	go func() {
		_, err := r.Do(t.Context(), c)
		done <- err
	}()
	outside.until(waitsForLock)
	for range 3 {
		r.releases(r.acquires("c"))
		r.must(lock.Sweep{Locks: []string{"a"}}) // an acquire of it would be a reason to refuse the command
	}
	outside.exec("commit")
	if err := <-done; err != nil {
		t.Error(err)
	}
	r.must(endOf(c))
}

// TestChangesAreWrittenInTheOrderOfNames, also those of sets that overlap in that order: two replicas that write the
// same locks in different orders would wait for each other.
func TestChangesAreWrittenInTheOrderOfNames(t *testing.T) {
	t.Parallel()
	var units []*unit
	for _, names := range [][]string{{"a", "z"}, {"b", "m", "y"}, {"c"}} {
		u := &unit{names: names}
		for _, name := range names {
			u.changes = append(u.changes, &row.Change{After: lock.Record{Name: name}})
		}
		units = append(units, u)
	}
	var written []string
	for _, c := range changesOf(units) {
		written = append(written, c.After.Name)
	}
	if want := []string{"a", "b", "c", "m", "y", "z"}; !slices.Equal(written, want) {
		t.Errorf("written in the order %q, want %q", written, want)
	}
}

// TestOnlyWhatIsAskedForCanHaveEnded: nothing is read or compared for the ancestors in a tree.
func TestOnlyWhatIsAskedForCanHaveEnded(t *testing.T) {
	t.Parallel()
	a := wants("r:a:b")
	r := newRequest(a, &policy.Snapshot{Policy: lock.Policy{Trees: lock.Trees{"r": {}}}})
	if len(r.names) != 3 || len(r.refs) != 1 || r.refs[0] != lock.RefOf("r:a:b", a.LeaseID) {
		t.Errorf("%v needs the ends of %d leases", r.names, len(r.refs))
	}
}
