package faults_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/test/internal/pgcluster"
)

// The TTLs of leases that are kept and lost. They leave time to promote a standby and to
// query it on a busy machine. The database has lost its record that a lease as long as
// lostTTL existed.
const (
	keptTTL = 6 * time.Second
	lostTTL = 8 * time.Second
)

// A loss is a way in which the database loses data.
type loss struct {
	before  func(context.Context) error // data written after this is lost
	spent   int                         // tokens that are granted and lost, beside those of leases
	trigger func(context.Context) error // replaces the database with one that lacks the data
}

// A heldLease is a lease that its holder counts on.
type heldLease struct {
	lock.Grant
	name string
}

// A lossResult is what a loss led to.
type lossResult struct {
	lost       string // begins the names of the locks of lost leases
	violations []string
	refusals   int           // of grants, because the database may have lost leases
	paused     time.Duration // from the trigger to the first grant
}

// runLoss grants leases, triggers the loss, and lets other clients request the same locks from all
// replicas. It returns what must not have happened.
func (s *clusterHarness) runLoss(l loss) (o lossResult) {
	s.t.Helper()
	prefix := fmt.Sprintf("loss-%d", rand.Uint32())
	kept := s.grantLeases(prefix+":kept", 4, keptTTL)
	s.renewWhile(kept, func() { s.must(l.before(s.t.Context())) })
	s.spendTokens(prefix+":spent", l.spent)
	o.lost = prefix + ":lost"
	lost := s.grantLeases(o.lost, 6, lostTTL)
	greatest := lost[len(lost)-1].Token
	struck := time.Now()
	s.must(l.trigger(s.t.Context()))

	var mu sync.Mutex
	var all sync.WaitGroup
	for _, b := range kept {
		all.Go(func() {
			g, err := s.renew(b)
			mu.Lock()
			defer mu.Unlock()
			switch late := time.Since(struck) - keptTTL*3/4; {
			case late > 0 && errors.Is(err, lock.ErrLeaseLost): // its last renewal was too long ago
				s.t.Logf("%s was renewed %v too late: the machine is busy", b.name, late)
			case err != nil || g.Token != b.Token:
				o.violated("%s was not lost but cannot be renewed: token %d, %v", b.name, g.Token, err)
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
				o.violated("%s was granted %v before the end of the lost lease", b.name, b.Until.Sub(at))
			}
			if g.Token <= greatest {
				o.violated("%s was granted with token %d, not greater than the earlier token %d", b.name, g.Token,
					greatest)
			}
		})
	}
	all.Wait()
	for _, b := range lost {
		s.checkFenced(b, &o)
	}
	return o
}

// renewWhile keeps leases alive while do runs, which may take longer than their TTL.
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

// grantLeases grants n locks to different holders.
func (s *clusterHarness) grantLeases(prefix string, n int, ttl time.Duration) []heldLease {
	s.t.Helper()
	all := make([]heldLease, n)
	for i := range all {
		all[i].name = fmt.Sprintf("%s:%d", prefix, i)
		a := lock.Acquire{Locks: lock.One(all[i].name), LeaseID: lock.LeaseID(uuid.New()), Holder: "holder", TTL: ttl}
		s.must(s.retryCall(func(ctx context.Context) (err error) {
			all[i].Grant, err = s.first().Acquire(ctx, a)
			return err
		}))
	}
	return all
}

// spendTokens grants n tokens that will be lost.
func (s *clusterHarness) spendTokens(name string, n int) {
	s.t.Helper()
	for i := range n {
		id := lock.LeaseID(uuid.New())
		a := lock.Acquire{Locks: lock.One(name), LeaseID: id, Holder: "spender", TTL: keptTTL}
		s.must(s.retryCall(func(ctx context.Context) error { _, err := s.replica(i).Acquire(ctx, a); return err }))
		r := lock.Release{Locks: []string{name}, LeaseID: id}
		s.must(s.retryCall(func(ctx context.Context) error { return s.replica(i).Release(ctx, r) }))
	}
}

// acquireUntilGranted requests a lock until it is granted. It returns the time of the grant, and how often
// the lock was refused because the database may have lost a lease.
func (s *clusterHarness) acquireUntilGranted(name string, i int) (g lock.Grant, at time.Time, refusals int) {
	a := lock.Acquire{Locks: lock.One(name), LeaseID: lock.LeaseID(uuid.New()), Holder: "contender", TTL: keptTTL}
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

// isPaused reports whether a lock was refused because a lease that the database has lost may still be
// held.
func isPaused(err error) bool {
	e := (*lock.Error)(nil)
	return errors.As(err, &e) && e.Code == lock.ErrUnavailable && e.RetryAfter > 0 &&
		strings.Contains(e.Detail, "may have lost leases")
}

func (s *clusterHarness) renew(b heldLease) (g lock.Grant, err error) {
	err = s.retryCall(func(ctx context.Context) (err error) {
		g, err = s.first().Renew(ctx, lock.Renew{Locks: []string{b.name}, LeaseID: b.ID})
		return err
	})
	return g, err
}

// checkFenced checks that the holder of a lost lease can neither renew it nor write under its token once
// another client has the lock.
func (s *clusterHarness) checkFenced(b heldLease, o *lossResult) {
	if _, err := s.renew(b); !errors.Is(err, lock.ErrLeaseLost) {
		o.violated("the lost lease of %s was renewed: %v", b.name, err)
	}
	err := s.retryCall(func(ctx context.Context) error {
		_, err := s.first().WriteFenced(ctx,
			lock.FencedWrite{Key: b.name, Lock: b.name, Token: b.Token, Value: []byte(`"late"`)})
		return err
	})
	if !errors.Is(err, lock.ErrStaleToken) {
		o.violated("a write under the token of the lost lease of %s was not refused: %v", b.name, err)
	}
}

func (s *clusterHarness) replica(i int) paddock.Service { return s.services[i%len(s.services)].Locks }

// retryCall repeats a call until it succeeds or is refused for good.
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
	return errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome) ||
		errors.Is(err, lock.ErrHeld)
}

// laggingFailOver is a fail-over to a standby that has not received the newest data.
func (s *clusterHarness) laggingFailOver() loss {
	behind := s.cluster.Standbys()
	return loss{
		spent: manySpent,
		before: func(ctx context.Context) error {
			return errors.Join(behind[0].Cut(ctx), behind[1].Cut(ctx))
		},
		trigger: func(ctx context.Context) error {
			return errors.Join(s.cluster.Primary().Kill(), behind[0].Promote(ctx))
		},
	}
}

// withLateReplica is l, but the replica that granted the lost leases, and may be the only one that knows
// their length, is suspended until the other replica has begun an epoch on the new primary.
func (s *clusterHarness) withLateReplica(l loss) loss {
	return loss{
		before: l.before,
		spent:  l.spent,
		trigger: func(ctx context.Context) error {
			knows, other := s.replicas[0], s.replicas[1]
			err := errors.Join(knows.signal(syscall.SIGSTOP), l.trigger(ctx))
			s.eventually("the other replica begins an epoch",
				func() bool { return bytes.Contains(other.output.bytes(), []byte("new epoch started")) })
			return errors.Join(err, knows.signal(syscall.SIGCONT))
		},
	}
}

// restoreFromArchive is a restore of a backup with the log from then on, on a new timeline.
func (s *clusterHarness) restoreFromArchive() loss {
	return loss{
		before:  s.cluster.Backup,
		spent:   manySpent,
		trigger: func(ctx context.Context) error { return s.cluster.Restore(ctx, pgcluster.FromArchive) },
	}
}

func (o lossResult) check(t *testing.T) {
	t.Helper()
	t.Logf("refused %d times; first grant %v after the loss", o.refusals, o.paused)
	for _, v := range o.violations {
		t.Error(v)
	}
	if o.refusals == 0 {
		t.Error("no request was refused although the database may have lost leases")
	}
}

// laggingStandbyPromoted promotes a standby that has not received the newest data.
func laggingStandbyPromoted(t *testing.T, program string) {
	s := newClusterHarness(t, program, pgcluster.Options{})
	s.serve(2, s.cluster.URL(), "--migrate")
	s.runLoss(s.withLateReplica(s.laggingFailOver())).check(t)
}

// backupRestored restores a backup in two ways. TestRestoreBeginsAnEpoch restores backups as after a crash.
func backupRestored(t *testing.T, program string) {
	s := newClusterHarness(t, program, pgcluster.Options{})
	s.serve(2, s.cluster.URL(), "--migrate")
	for _, l := range []loss{s.restoreFromArchive(), s.unnoticedRestore()} {
		s.runLoss(l).check(t)
	}
}

// withoutEpochCheck proves that laggingStandbyPromoted can fail.
func withoutEpochCheck(t *testing.T) {
	s := newClusterHarness(t, noEpochCheck.build(t), pgcluster.Options{})
	s.serve(2, s.cluster.URL(), "--migrate")
	o := s.runLoss(s.laggingFailOver())
	t.Logf("without the check: %q", o.violations)
	for _, want := range []string{"before the end of the lost lease", "not greater than the earlier token"} {
		if !slices.ContainsFunc(o.violations, func(v string) bool { return strings.Contains(v, want) }) {
			t.Errorf("no violation says %q", want)
		}
	}
}

// unnoticedRestore is a restore that no replica can notice, so an operator announces it.
func (s *clusterHarness) unnoticedRestore() loss {
	return loss{
		before: s.cluster.Backup,
		spent:  manySpent,
		trigger: func(ctx context.Context) error {
			s.stopServing()
			if err := s.cluster.Restore(ctx, pgcluster.AsCrashed); err != nil {
				return err
			}
			if err := s.runPaddock(ctx, "epoch", "new", "--reason", "a backup was restored"); err != nil {
				return err
			}
			s.serve(2, s.cluster.URL())
			return nil
		},
	}
}

// runPaddock runs a command of the program on the database to its end.
func (s *clusterHarness) runPaddock(ctx context.Context, args ...string) error {
	return s.runPaddockAs(ctx, s.cluster.URL(), args...)
}

// runPaddockAs is runPaddock with another database URL.
func (s *clusterHarness) runPaddockAs(ctx context.Context, databaseURL string, args ...string) error {
	return runPaddockAt(ctx, s.program, "PADDOCK_DATABASE_URL="+databaseURL, args...)
}

// runPaddockAt runs a command of the program on the database, or the cells, that the variable names, to its end.
func runPaddockAt(ctx context.Context, program, at string, args ...string) error {
	c, err := launch(&logBuffer{}, []string{at}, program, args...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	select {
	case <-c.ended:
	case <-ctx.Done():
		return fmt.Errorf("paddock %v has not ended: %w", args, context.Cause(ctx))
	}
	if code := c.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("paddock %v ended with %d:\n%s", args, code, c.output.bytes())
	}
	return nil
}
