package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// failOver makes the database look as one that continues the history of another
// does: the newest epoch is about a timeline that is not this server's.
const failOver = `update paddock.epochs set timeline = 'FFFFFFFF' where epoch = (select max(epoch) from paddock.epochs)`

// jumped is less than the tokens of a second epoch, and more than those of a first.
const jumped = 1 << 32

func epochs(t *testing.T, conn *pgx.Conn) int64 {
	t.Helper()
	return number(t, conn, "select count(*) from paddock.epochs")
}

// closed tries to acquire until that is refused since nothing is granted yet.
func closed(t *testing.T, s paddock.Service, name string) *lock.Error {
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
	renewed, err := s.Renew(t.Context(), lock.Renew{Locks: []string{"kept"}, LeaseID: kept.ID})
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

func TestAnIdleServiceNoticesAFailOver(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	open(t, url)
	outside := connect(t, url)
	exec(t, outside, failOver)
	until(t, "there is a second epoch", func() bool { return epochs(t, outside) == 2 })
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
