package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// failOver makes the database look as one that continues the history of another
// does: the newest epoch is about a timeline that is not this server's.
const failOver = `update paddock.epochs set timeline = 'FFFFFFFF' where epoch = (select max(epoch) from paddock.epochs)`

// deleteEvents deletes the batches with events of locks whose names begin with $1.
const deleteEvents = `delete from paddock.event_batches
	where exists (select from unnest(entries) as entry where starts_with(entry ->> 0, $1))`

// jumped is less than the tokens of a second epoch, and more than those of a first.
const jumped = 1 << 32

func epochs(t *testing.T, conn *pgx.Conn) int64 {
	t.Helper()
	return number(t, conn, "select count(*) from paddock.epochs")
}

// closed tries to acquire until that is refused since nothing is granted yet.
func closed(t *testing.T, s lock.Service, name string) *lock.Error {
	t.Helper()
	var e *lock.Error
	until(t, "nothing is granted", func() bool {
		g, err := s.Acquire(t.Context(), acquire(name))
		if err == nil {
			mustRelease(t, s, g)
		}
		return errors.As(err, &e) && strings.Contains(e.Detail, "restored")
	})
	return e
}

func TestAfterAFailOverNothingIsGrantedUntilUnknownLeasesAreOver(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	short := acquire("kept")
	short.TTL, short.Grace = 3*time.Second, time.Second
	kept := mustAcquire(t, s, short)
	exec(t, outside, failOver)

	refused := closed(t, s, "other")
	if !errors.Is(refused, lock.ErrUnavailable) || refused.RetryAfter <= 0 || refused.RetryAfter > 4*time.Second {
		t.Errorf("refused with %+v, want until TTL and grace of the longest lease are over", refused)
	}
	renewed, err := s.Renew(t.Context(), lock.Renew{Name: "kept", LeaseID: kept.ID})
	if err != nil || renewed.Token != kept.Token {
		t.Errorf("the renewal of a lease that is known gave %+v, %v", renewed.Lease, err)
	}
	w := start(s, t.Context(), waitingAs("other", "patient"))
	mustRelease(t, s, renewed)
	next := w.granted(t)
	if next.Token <= jumped {
		t.Errorf("the token after is %d, want one far above %d", next.Token, kept.Token)
	}
	if after := mustAcquire(t, s, acquire("kept")); after.Token <= jumped {
		t.Errorf("the token after is %d, want one far above %d", after.Token, kept.Token)
	}
	if n := epochs(t, outside); n != 2 {
		t.Errorf("there are %d epochs, want 2", n)
	}
}

func TestManyReplicasBeginOneEpoch(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	replicas, outside := []*store.Store{open(t, url), open(t, url), open(t, url)}, connect(t, url)
	exec(t, outside, failOver)
	granted := make(chan error, 30)
	for i := range cap(granted) {
		go func() {
			a := acquire(fmt.Sprintf("n:%d", i))
			_, err := replicas[i%3].Acquire(t.Context(), a)
			granted <- err
		}()
	}
	for range cap(granted) {
		if err := <-granted; err != nil {
			t.Error(err) // no lease was granted before, so there is nothing to wait for
		}
	}
	if n := epochs(t, outside); n != 2 {
		t.Errorf("there are %d epochs, want 2", n)
	}
}

func TestAnIdleServiceNoticesAFailOver(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	open(t, url)
	outside := connect(t, url)
	exec(t, outside, failOver)
	until(t, "there is a second epoch", func() bool { return epochs(t, outside) == 2 })
}

// TestLeasesAreSetOnTheNewClock has the clock of the database that was be an hour off.
func TestLeasesAreSetOnTheNewClock(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]string{"the old clock was ahead": "1 hour", "the old clock was behind": "-1 hour"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			outside := connect(t, url)
			s := open(t, url)
			held := mustAcquire(t, s, acquire("held"))
			bounded := acquire("bounded")
			bounded.MaxHold = 2 * time.Minute
			bound := mustAcquire(t, s, bounded)
			mustRelease(t, s, mustAcquire(t, s, acquire("free")))
			shift := "set changed_at = changed_at + $1::interval, acquired_at = acquired_at + $1::interval, expires_at = expires_at + $1::interval"
			tx, err := outside.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			exec(t, outside, "update paddock.records "+shift, off)
			exec(t, outside, "update paddock.event_batches set at = at + $1::interval", off)
			exec(t, outside, failOver)
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			until(t, "there is a second epoch", func() bool { return epochs(t, outside) == 2 })
			for _, g := range []lock.Grant{held, bound} {
				l, err := s.Lock(t.Context(), g.Name)
				if err != nil || len(l.Leases) != 1 || l.Leases[0].Remaining > time.Minute || l.Leases[0].Remaining < time.Second {
					t.Fatalf("%s is %+v, %v; want a TTL from now on", g.Name, l, err)
				}
				if again, err := s.Renew(t.Context(), lock.Renew{Name: g.Name, LeaseID: g.ID}); err != nil || time.Until(again.Until) > time.Minute {
					t.Errorf("the renewal of %s gave %+v, %v", g.Name, again.Lease, err)
				}
				mustRelease(t, s, g)
			}
			if n := number(t, outside, "select count(*) from paddock.records where changed_at > clock_timestamp()"); n != 0 {
				t.Errorf("%d locks have changed in the future", n)
			}
		})
	}
}

func TestALeaseThatWasOverIsNotRevived(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	outside := connect(t, url)
	s := open(t, url)
	g := mustAcquire(t, s, acquire("over"))
	exec(t, outside, `with e as (update paddock.epochs set timeline = 'FFFFFFFF')
		update paddock.records set expires_at = (select max(at) from paddock.event_batches)`)
	_, err := s.Renew(t.Context(), lock.Renew{Name: g.Name, LeaseID: g.ID})
	if !errors.Is(err, lock.ErrLeaseLost) {
		t.Errorf("err = %v, want lease_lost", err)
	}
}

func TestAnEpochOfQuorumDecidesNothingWithoutAStandby(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	outside := connect(t, url)
	s := open(t, url)
	g := mustAcquire(t, s, acquire("before"))
	if err := store.RequireQuorum(t.Context(), url, "", true); !errors.Is(err, store.ErrNoStandby) {
		t.Errorf("a quorum of nobody was accepted: %v", err)
	}
	exec(t, outside, "update paddock.epochs set quorum = true")
	_, err := s.Acquire(t.Context(), acquire("a"))
	if e := (*lock.Error)(nil); !errors.As(err, &e) || e.Code != lock.ErrUnavailable || !strings.Contains(e.Detail, "standby") {
		t.Errorf("err = %v, want unavailable for the lack of a standby", err)
	}
	_, err = s.WriteFenced(t.Context(), lock.FencedWrite{Key: "k", Lock: "before", Token: g.Token, Value: []byte(`1`)})
	if !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("a fenced write: err = %v, want unavailable", err)
	}
	if s.Ready(t.Context()) == nil {
		t.Error("the store is ready")
	}
	if err := store.RequireQuorum(t.Context(), url, "", false); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, s, acquire("a"))
}

// TestAPauseOfGrantsHoldsForWholeBatches: one lock is in the cache of the replica, and the other one must be read,
// which shows that another replica has paused the grants.
func TestAPauseOfGrantsHoldsForWholeBatches(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	mustRelease(t, s, mustAcquire(t, s, acquire("cached")))
	exec(t, outside, "update paddock.epochs set closed_until = clock_timestamp() + interval '1 minute'")
	for i, r := range s.Batch(t.Context(), []lock.Command{acquire("cached"), acquire("new")}) {
		if !errors.Is(r.Err, lock.ErrUnavailable) {
			t.Errorf("item %d is answered %+v, %v while grants are paused", i, r.Grant, r.Err)
		}
	}
}

func TestAnOperatorBeginsAnEpochAndOpensIt(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := open(t, url)
	mustAcquire(t, s, acquire("held")) // for a minute
	const above = 7_000_000_000_000
	if err := store.BeginEpoch(t.Context(), url, "", "put back to yesterday", above); err != nil {
		t.Fatal(err)
	}
	if e := closed(t, s, "a"); e.RetryAfter < 30*time.Second {
		t.Errorf("closed for %v only", e.RetryAfter)
	}
	all, now, err := store.Epochs(t.Context(), url, "")
	if err != nil || len(all) != 2 || all[1].Reason != "put back to yesterday" || !all[1].GrantsPausedUntil.After(now) || all[1].MaxLease != time.Minute {
		t.Fatalf("the epochs are %+v, %v", all, err)
	}
	if opened, err := store.OpenEpoch(t.Context(), url, "", "all holders are stopped"); err != nil || !opened {
		t.Fatalf("opened %t, %v", opened, err)
	}
	if g := mustAcquire(t, s, acquire("a")); g.Token <= above {
		t.Errorf("the token is %d, want one above %d", g.Token, int64(above))
	}
	if opened, err := store.OpenEpoch(t.Context(), url, "", "again"); err != nil || opened {
		t.Errorf("opened again: %t, %v", opened, err)
	}
}

func TestAnUnclaimedGrantIsWithdrawnAfterAFailOver(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	outside := connect(t, url)
	first, second := open(t, url), open(t, url)
	a, next := acquire("a"), waitingAs("a", "next")
	a.TTL, next.TTL = 5*time.Second, 5*time.Second
	g := mustAcquire(t, first, a)
	w := start(second, t.Context(), next)
	until(t, "somebody waits", func() bool { return len(queueOf(t, first, "a")) == 1 })
	if err := first.Release(context.WithoutCancel(t.Context()), lock.Release{Name: "a", LeaseID: g.ID}); err != nil {
		t.Fatal(err)
	}
	exec(t, outside, failOver)
	if got := w.granted(t); got.Token <= g.Token {
		t.Errorf("token %d came after %d", got.Token, g.Token)
	}
}

// TestEveryReplicaSaysHowLongLeasesWereGrantedFor: who begins the epoch may not know
// of the longest, which the database has lost.
func TestEveryReplicaSaysHowLongLeasesWereGrantedFor(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	mustAcquire(t, s, acquire("lost")) // for a minute
	exec(t, outside, `insert into paddock.epochs (epoch, began_at, system_identifier, timeline, reason, closed_until, longest_ms)
		select epoch + 1, clock_timestamp(), system_identifier, timeline, 'begun by a replica that knew of a second', clock_timestamp() + interval '1 second', 1000
		from paddock.epochs`)
	if e := closed(t, s, "a"); e.RetryAfter < 30*time.Second {
		t.Errorf("closed for %v, want about a minute", e.RetryAfter)
	}
	if n := epochs(t, outside); n != 2 {
		t.Errorf("there are %d epochs, want 2", n)
	}
}

func TestTheGreatestTokenThatAnEpochCanGoOnAbove(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	if err := store.BeginEpoch(t.Context(), url, "", "almost at the end", store.MaxAbove+1); err == nil {
		t.Error("tokens jumped beyond the greatest that there may be")
	}
	if err := store.BeginEpoch(t.Context(), url, "", "almost at the end", store.MaxAbove-lock.MaxTokens); err != nil {
		t.Fatal(err)
	}
	if g := mustAcquire(t, open(t, url), acquire("a")); g.Token <= lock.MaxToken-lock.MaxTokens || g.Token > lock.MaxToken {
		t.Errorf("the token is %d, want one of the last %d, up to %d", g.Token, lock.MaxTokens, lock.MaxToken)
	}
}

// TestReadersAreToldThatEventsWereLost loses the last events in a fail-over. Readers that received
// them receive a gap, other readers do not, and both receive what happens afterwards.
func TestReadersAreToldThatEventsWereLost(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	short := acquire("kept")
	short.TTL = time.Second
	mustRelease(t, s, mustAcquire(t, s, short))
	kept := cursorOf(t, s)
	short = acquire("lost")
	short.TTL = time.Second
	mustRelease(t, s, mustAcquire(t, s, short))
	lost := cursorOf(t, s)

	var waited lock.Page[lock.Event]
	following := make(chan error, 1)
	go func() {
		var err error
		waited, err = s.Events(t.Context(), lock.EventQuery{Cursor: lost, Wait: lock.MaxWait})
		following <- err
	}()
	tx, err := outside.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(t, outside, deleteEvents, "lost")
	exec(t, outside, "delete from paddock.records where name = 'lost'")
	exec(t, outside, failOver)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "there is a second epoch", func() bool { return epochs(t, outside) == 2 })
	until(t, "the lock is granted", func() bool {
		_, err := s.Acquire(t.Context(), acquire("new"))
		return err == nil
	})
	if err := <-following; err != nil || !waited.Gap || len(waited.Items) == 0 {
		t.Errorf("a waiting reader that was told of lost events is told %+v, %v; want a gap and what came after", waited, err)
	}
	for cursor, gap := range map[string]bool{kept: false, lost: true, "0": false} {
		page, err := s.Events(t.Context(), lock.EventQuery{Cursor: cursor, Name: "new"})
		if err != nil || page.Gap != gap || len(page.Items) != 1 {
			t.Errorf("a reader at %s is told %+v, %v; want one event, and a gap: %t", cursor, page, err, gap)
		}
	}
}

// cursorOf returns a cursor at the end of the events.
func cursorOf(t *testing.T, s lock.Service) string {
	t.Helper()
	page, err := s.Events(t.Context(), lock.EventQuery{Limit: lock.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	return page.Next
}

// TestTokensThatGoBackBeginAnEpoch makes the database look as if it was put back to an earlier state, and others have
// written to since: its log has gone on, its tokens have not.
func TestTokensThatGoBackBeginAnEpoch(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := replica.Store(t, url, store.Options{TransactionPooling: true}), connect(t, url)
	var newest lock.Token
	for i := range 60 {
		a := acquire(fmt.Sprintf("lost:%d", i))
		a.TTL = 2 * time.Second
		newest = mustAcquire(t, s, a).Token
	}
	exec(t, outside, "begin")
	exec(t, outside, "lock table paddock.records in access exclusive mode")
	exec(t, outside, "delete from paddock.records where name like 'lost:%'")
	exec(t, outside, deleteEvents, "lost:")
	exec(t, outside, "select setval('paddock.event_batch_ids', 1)")
	exec(t, outside, "commit")
	if e := closed(t, s, "lost:0"); e.RetryAfter <= 0 || e.RetryAfter > 2*time.Second {
		t.Errorf("refused for %v, want until the longest lease is over", e.RetryAfter)
	}
	w := start(s, t.Context(), waitingAs("lost:1", "patient"))
	if g := w.granted(t); g.Token <= newest+jumped-1 {
		t.Errorf("token %d came after %d", g.Token, newest)
	}
	if n := epochs(t, outside); n != 2 {
		t.Errorf("there are %d epochs, want 2", n)
	}
}
