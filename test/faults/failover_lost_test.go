package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// The TTLs of leases that are not lost, and of those that are. A standby can be promoted
// meanwhile, and asked, on a machine with much else to do. The database has forgotten that
// there was one as long as the second.
const (
	keptTTL = 6 * time.Second
	lostTTL = 8 * time.Second
)

// A loss is what a database forgets, and how it comes to that.
type loss struct {
	before  func(context.Context) error // from here on it will be forgotten
	trigger func(context.Context) error // a database that has forgotten takes its place
}

// A heldLease is a lease that its holder has been granted and believes in.
type heldLease struct {
	lock.Grant
	name string
}

// An lossResult is what came of a loss.
type lossResult struct {
	violations []string
	refusals   int           // as the database may have lost leases
	paused     time.Duration // from the strike to the first grant
}

// runLoss has leases be granted, lost, and asked for by others from all sides. It
// returns what must not have happened.
func (s *clusterHarness) runLoss(l loss) (o lossResult) {
	s.t.Helper()
	prefix := fmt.Sprintf("loss-%d", rand.Uint32())
	kept := s.grantLeases(prefix+":kept", 4, keptTTL)
	s.renewWhile(kept, func() { s.must(l.before(s.t.Context())) })
	s.spendTokens(prefix+":spent", 80)
	lost := s.grantLeases(prefix+":lost", 6, lostTTL)
	greatest := lost[len(lost)-1].Token
	struck := time.Now()
	s.must(l.trigger(s.t.Context()))

	var mu sync.Mutex
	var all sync.WaitGroup
	for _, b := range kept {
		all.Go(func() {
			if g, err := s.renew(b); err != nil || g.Token != b.Token {
				mu.Lock()
				defer mu.Unlock()
				o.violated("%s, which was not lost, cannot be renewed: token %d, %v", b.name, g.Token, err)
			}
		})
	}
	for i, b := range lost {
		all.Go(func() {
			g, at, refusals := s.acquireUntilGranted(b.name, i)
			mu.Lock()
			defer mu.Unlock()
			o.refusals += refusals
			if d := at.Sub(struck); o.paused == 0 || d < o.paused {
				o.paused = d
			}
			if at.Before(b.Until) {
				o.violated("%s was granted %v before the one who had it gave it up", b.name, b.Until.Sub(at))
			}
			if g.Token <= greatest {
				o.violated("%s was granted with token %d, after %d had been granted", b.name, g.Token, greatest)
			}
		})
	}
	all.Wait()
	for _, b := range lost {
		s.checkFenced(b, &o)
	}
	return o
}

// renewWhile keeps leases alive while something is done that may take longer than they last.
func (s *clusterHarness) renewWhile(kept []heldLease, do func()) {
	done := make(chan struct{})
	var renewals sync.WaitGroup
	renewals.Go(func() {
		again := time.NewTicker(keptTTL / 8)
		defer again.Stop()
		for {
			select {
			case <-done:
				return
			case <-again.C:
			}
			for _, b := range kept {
				if _, err := s.renew(b); err != nil {
					s.t.Errorf("%s: %v", b.name, err)
				}
			}
		}
	})
	defer renewals.Wait()
	defer close(done)
	do()
}

func (o *lossResult) violated(format string, args ...any) {
	o.violations = append(o.violations, fmt.Sprintf(format, args...))
}

// grantLeases has n locks be granted, each to another holder, by one of the replicas.
func (s *clusterHarness) grantLeases(prefix string, n int, ttl time.Duration) []heldLease {
	s.t.Helper()
	all := make([]heldLease, n)
	for i := range all {
		all[i].name = fmt.Sprintf("%s:%d", prefix, i)
		a := lock.Acquire{Name: all[i].name, LeaseID: lock.LeaseID(uuid.New()), Holder: "who had it", TTL: ttl}
		s.must(s.retryCall(func(ctx context.Context) (err error) {
			all[i].Grant, err = s.first().Acquire(ctx, a)
			return err
		}))
	}
	return all
}

// spendTokens has tokens be granted that will be forgotten.
func (s *clusterHarness) spendTokens(name string, n int) {
	s.t.Helper()
	for i := range n {
		id := lock.LeaseID(uuid.New())
		a := lock.Acquire{Name: name, LeaseID: id, Holder: "who spends", TTL: keptTTL}
		s.must(s.retryCall(func(ctx context.Context) error { _, err := s.replica(i).Acquire(ctx, a); return err }))
		r := lock.Release{Name: name, LeaseID: id}
		s.must(s.retryCall(func(ctx context.Context) error { return s.replica(i).Release(ctx, r) }))
	}
}

// acquireUntilGranted asks for a lock until it is granted. It returns when it was, and how often it
// was refused since the database may have lost a lease.
func (s *clusterHarness) acquireUntilGranted(name string, i int) (g lock.Grant, at time.Time, refusals int) {
	a := lock.Acquire{Name: name, LeaseID: lock.LeaseID(uuid.New()), Holder: "who wants it", TTL: keptTTL}
	err := s.retryCall(func(ctx context.Context) (err error) {
		i++
		g, err = s.replica(i).Acquire(ctx, a)
		if at = time.Now(); isPaused(err) {
			refusals++
		}
		return err
	})
	if err != nil {
		s.t.Errorf("%s: %v", name, err)
	}
	return g, at, refusals
}

// isPaused is whether a lock is refused since a lease that the database has lost may
// be alive.
func isPaused(err error) bool {
	e := (*lock.Error)(nil)
	return errors.As(err, &e) && e.Code == lock.ErrUnavailable && e.RetryAfter > 0 && strings.Contains(e.Detail, "may have lost leases")
}

func (s *clusterHarness) renew(b heldLease) (g lock.Grant, err error) {
	err = s.retryCall(func(ctx context.Context) (err error) {
		g, err = s.first().Renew(ctx, lock.Renew{Name: b.name, LeaseID: b.ID})
		return err
	})
	return g, err
}

// checkFenced checks that the holder of a lost lease can neither renew it nor write
// under its token, now that another one has the lock.
func (s *clusterHarness) checkFenced(b heldLease, o *lossResult) {
	if _, err := s.renew(b); !errors.Is(err, lock.ErrLeaseLost) {
		o.violated("the lost lease of %s was renewed: %v", b.name, err)
	}
	err := s.retryCall(func(ctx context.Context) error {
		_, err := s.first().WriteFenced(ctx, lock.FencedWrite{Key: b.name, Lock: b.name, Token: b.Token, Value: []byte(`"late"`)})
		return err
	})
	if !errors.Is(err, lock.ErrStaleToken) {
		o.violated("under the token of the lost lease of %s somebody wrote: %v", b.name, err)
	}
}

func (s *clusterHarness) replica(i int) lock.Service { return s.services[i%len(s.services)].Locks }

// retryCall makes a call again and again until it is done, or refused for good.
func (s *clusterHarness) retryCall(call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), stepTimeout)
	defer cancel()
	var refused error
	err := retry(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		err := call(ctx)
		if err == nil || retryable(err) {
			return err
		}
		refused = err
		return nil
	})
	return errors.Join(err, refused)
}

// retryable reports whether the same call may succeed later.
func retryable(err error) bool {
	return errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome) || errors.Is(err, lock.ErrHeld)
}
