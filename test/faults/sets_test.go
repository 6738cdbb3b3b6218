package faults_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

// flagKills: one replica is killed each second.
var flagKills = repeats{
	flag.Int("faults.kills", 0, "replicas to kill in TestSetsAreGrantedWholeOrNotAtAll; 0: 8, or 600 in the long form"), 8, 600}

const (
	setClients = 32
	setNames   = 6
	setTTL     = 5 * time.Second
	killEvery  = time.Second
	// setPatience bounds one acquire of a set, and its release, with all their repetitions.
	setPatience = 2 * time.Minute
)

// TestSetsAreGrantedWholeOrNotAtAll: clients acquire sets of two and three of six locks, in any order of names, while
// one replica after the other is killed. No lock has two holders, tokens grow, each snapshot of the database has all
// leases of a set or none, and each client is answered.
func TestSetsAreGrantedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	d := deploy(t, builds{normal: program(t), skewed: program(t)})
	s := &setHarness{T: t, held: make(map[string]hold)}
	for _, r := range d.replicas {
		c, err := r.client()
		if err != nil {
			t.Fatal(err)
		}
		s.replicas = append(s.replicas, c)
	}
	ctx, stop := context.WithCancel(t.Context())
	var watching, clients sync.WaitGroup
	watching.Go(func() { s.takeSnapshots(ctx, d.database) })
	for i := range setClients {
		clients.Go(func() { s.run(ctx, rand.New(rand.NewPCG(*flagSeed, uint64(i)))) })
	}
	random := rand.New(rand.NewPCG(*flagSeed, setClients))
	for range flagKills.count() {
		time.Sleep(killEvery)
		r := d.replicas[random.IntN(len(d.replicas))]
		if err := errors.Join(r.kill(), r.start(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	clients.Wait()
	watching.Wait()
	t.Logf("%d sets granted, %d acquires refused, %d leases lost, %d snapshots with %d sets, longest acquire %v",
		s.granted, s.refused, s.lost, s.snapshots, s.seen, s.longest.Round(time.Millisecond))
	if s.granted < setClients || s.seen == 0 {
		t.Error("there was hardly any load")
	}
}

// A hold is what is known of the last holder of a lock.
type hold struct {
	token lock.Token
	until time.Time // the holder believes until then that it has the lock
}

// A setHarness is clients and what they were told.
type setHarness struct {
	*testing.T
	replicas []*client.Client

	mu                     sync.Mutex
	held                   map[string]hold
	granted, refused, lost int
	longest                time.Duration
	snapshots, seen        int
}

// run acquires sets until ctx ends.
func (s *setHarness) run(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil && !s.Failed() {
		a := lock.Acquire{LeaseID: lock.LeaseID(uuid.New()), Holder: "worker", TTL: setTTL, Wait: 3 * time.Second}
		for _, n := range random.Perm(setNames)[:2+random.IntN(2)] {
			m := lock.Member{Name: fmt.Sprint("set:", n), Mode: lock.Exclusive}
			if random.IntN(4) == 0 {
				m.Mode = lock.Shared
			}
			a.Locks = append(a.Locks, m)
		}
		began := time.Now()
		g, err := retried(s, random, func(ctx context.Context, c *client.Client) (lock.Grant, error) { return c.Acquire(ctx, a) })
		s.mu.Lock()
		s.longest = max(s.longest, time.Since(began))
		s.mu.Unlock()
		switch {
		case errors.Is(err, lock.ErrHeld):
			s.count(&s.refused)
			continue
		case errors.Is(err, lock.ErrLeaseLost): // granted while the answers were lost
			s.count(&s.lost)
			continue
		case err != nil:
			s.Errorf("a client is stuck: %v", err)
			return
		}
		s.enter(g)
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		s.leave(g)
		_, err = retried(s, random, func(ctx context.Context, c *client.Client) (lock.Grant, error) {
			return lock.Grant{}, c.Release(ctx, lock.Release{Locks: a.Names(), LeaseID: a.LeaseID})
		})
		switch {
		case errors.Is(err, lock.ErrLeaseLost):
			s.count(&s.lost)
		case err != nil:
			s.Errorf("a release: %v", err)
		}
	}
}

// retried sends the call to replicas at random until it is decided.
func retried(s *setHarness, random *rand.Rand, send func(context.Context, *client.Client) (lock.Grant, error)) (g lock.Grant, err error) {
	ctx, cancel := context.WithTimeout(s.Context(), setPatience)
	defer cancel()
	for {
		one, done := context.WithTimeout(ctx, 10*time.Second)
		g, err = send(one, s.replicas[random.IntN(len(s.replicas))])
		done()
		undecided := errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome)
		if !undecided || ctx.Err() != nil {
			return g, err
		}
		time.Sleep(time.Duration(10+random.IntN(40)) * time.Millisecond)
	}
}

func (s *setHarness) count(n *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
}

// enter checks the grant against those before it, and records it.
func (s *setHarness) enter(g lock.Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.granted++
	now := time.Now()
	for _, l := range g.Leases {
		before := s.held[l.Name]
		if l.Mode == lock.Exclusive && l.Token <= before.token || l.Token < before.token {
			if now.Before(g.Until) && now.Before(before.until) {
				s.Errorf("%s: token %d (%v) was granted while %d is held", l.Name, l.Token, l.Mode, before.token)
			}
			continue // an older grant whose answer came late
		}
		if l.Token > before.token && now.Before(before.until) {
			s.Errorf("%s: token %d was granted while %d is held for %v more", l.Name, l.Token, before.token, before.until.Sub(now))
		}
		h := hold{token: l.Token, until: g.Until}
		if l.Token == before.token && before.until.After(h.until) {
			h.until = before.until
		}
		s.held[l.Name] = h
	}
	if len(g.Leases) < 2 {
		s.Errorf("a set was granted %d leases", len(g.Leases))
	}
}

// leave records that the holder believes no longer that it has the locks. Readers may still be there.
func (s *setHarness) leave(g lock.Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range g.Leases {
		if h := s.held[l.Name]; h.token == l.Token && l.Mode == lock.Exclusive {
			h.until = time.Time{}
			s.held[l.Name] = h
		} else if h.token == l.Token {
			delete(s.held, l.Name) // that others still read is not recorded
			s.held[l.Name] = hold{token: h.token}
		}
	}
}

// leasesOfSets returns the number of leases of each set that has more or fewer of them than locks, and the number of
// sets.
const leasesOfSets = `
	with leases as (
		select name, lease_id, rest->>'set' as names, expires_at from paddock.records where lease_id is not null and ttl_ms > 0
		union all
		select name, lease_id, rest->>'set', expires_at from paddock.parts where slot > 0 and ttl_ms > 0
	), sets as (
		select lease_id, names, count(*) as n, count(distinct expires_at) as ends from leases
		where names is not null and expires_at > now() + interval '1 s'
		group by lease_id, names
	)
	select count(*), count(*) filter (where n <> cardinality(string_to_array(names, ' ')) or ends > 1) from sets`

// takeSnapshots looks at the database until ctx ends.
func (s *setHarness) takeSnapshots(ctx context.Context, db *database) {
	conn, err := db.connect(s.Context(), "paddock")
	if err != nil {
		s.Error(err)
		return
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the test is over
	for ctx.Err() == nil {
		var all, torn int
		if err := conn.QueryRow(s.Context(), leasesOfSets).Scan(&all, &torn); err != nil {
			s.Error(err)
			return
		}
		s.snapshots, s.seen = s.snapshots+1, s.seen+all
		if torn > 0 {
			s.Errorf("%d of %d sets have not all their leases, or not one end", torn, all)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
