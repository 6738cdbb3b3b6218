package engine

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/tcpproxy"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// TestTheCommonCycleIsDecidedOnTheCache: the lock is read once, and each call is one statement.
func TestTheCommonCycleIsDecidedOnTheCache(t *testing.T) {
	t.Parallel()
	r := newReplica(t, pgtest.URL(t), 1)
	var last lock.Token
	for range 3 {
		a := wants("a")
		a.Metadata = []byte(`{"a": 1}`)
		l := r.must(a).Leases[0]
		if again := r.renews(l); again.Token != l.Token || again.ExpiresAt.Before(l.ExpiresAt) {
			t.Errorf("renewed to %+v, from %+v", again, l)
		}
		r.releases(l)
		if l.Token <= last {
			t.Errorf("token %d after %d", l.Token, last)
		}
		last = l.Token
	}
	r.used(1, 0, 9)
}

// TestTheFirstDecisionIsWrittenAtOnce: the first row of events has the grant. A swap that missed would have drawn it.
func TestTheFirstDecisionIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	if l := newReplica(t, pgtest.URL(t), 1).acquires("new"); l.Token != row.TokensPerBatch {
		t.Errorf("granted token %d, want the first one of the first row", l.Token)
	}
}

// TestACachedFreeLockIsProven: whatever has happened to a free lock, its next acquire is decided on what is there.
func TestACachedFreeLockIsProven(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql  string
		want error
	}{
		"nothing":                      {"select", nil},
		"an update of all to the same": {"update paddock.records set holder = holder", nil},
		"it was pruned":                {"delete from paddock.records", nil},
		"another epoch": {`insert into paddock.epochs (epoch, began_at, system_identifier, timeline, reason, longest_ms)
			select epoch + 1, clock_timestamp(), system_identifier, timeline, 'test', longest_ms from paddock.epochs`, nil},
		"grants are paused":     {"update paddock.epochs set closed_until = clock_timestamp() + interval '1 hour'", lock.ErrUnavailable},
		"grants were paused":    {"update paddock.epochs set closed_until = clock_timestamp() - interval '1 hour'", nil},
		"a longer lease":        {"update paddock.epochs set longest_ms = longest_ms + 1", nil},
		"the longest is lost":   {"update paddock.epochs set longest_ms = 1, began_at = clock_timestamp()", lock.ErrUnavailable},
		"a standby is required": {"update paddock.epochs set quorum = true", lock.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			r := newReplica(t, url, 1)
			first := r.acquires("a")
			r.releases(first)
			connect(t, url).exec(c.sql)
			out, err := r.Do(t.Context(), wants("a"))
			if !errors.Is(err, c.want) || err == nil && out.Leases[0].Token <= first.Token {
				t.Errorf("token %d after %d, %v, want %v", out.Leases[0].Token, first.Token, err, c.want)
			}
			if err == nil {
				r.reset()
				r.renews(out.Leases[0])
				r.used(0, 0, 1)
			}
		})
	}
}

// TestWhatAnotherReplicaDidIsSeen, whatever the cache has.
func TestWhatAnotherReplicaDidIsSeen(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, other := newReplica(t, url, 1), newReplica(t, url, 2)
	r.releases(r.acquires("a"))
	held := other.acquires("a")
	r.reset()
	if _, err := r.Do(t.Context(), wants("a")); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("acquiring what another replica has granted: %v", err)
	}
	r.used(0, 1, 1)
	other.releases(held)
	if l := r.acquires("a"); l.Token <= held.Token { // a refusal is never from the cache
		t.Errorf("token %d after %d", l.Token, held.Token)
	}
	r.used(1, 0, 1)

	mine := r.acquires("b")
	other.must(lock.Revoke{Name: "b", Token: mine.Token, Reason: "test"})
	theirs := other.acquires("b")
	for _, cmd := range []lock.Command{lock.Renew{Locks: []string{"b"}, LeaseID: mine.ID}, lock.Release{Locks: []string{"b"}, LeaseID: mine.ID}} {
		e := new(lock.Error)
		if _, err := r.Do(t.Context(), cmd); !errors.As(err, &e) || e.Code != lock.ErrLeaseLost || e.Ended != lock.Revoked {
			t.Errorf("%T of what was revoked: %v", cmd, err)
		}
	}
	other.renews(theirs)

	s := connect(t, url)
	l := r.acquires("c")
	s.exec("update paddock.records set holder = 'by hand' where name = 'c'")
	if got := r.renews(l); got.Holder != "by hand" {
		t.Errorf("the change by hand is gone: %+v", got)
	}
}

// TestALeaseThatHasEndedIsNotGrantedAgain although its lock is in the cache as it is.
func TestALeaseThatHasEndedIsNotGrantedAgain(t *testing.T) {
	t.Parallel()
	r := newReplica(t, pgtest.URL(t), 1)
	a := wants("a")
	r.releases(r.must(a).Leases[0])
	r.releases(r.acquires("a"))
	r.reset()
	e := new(lock.Error)
	if _, err := r.Do(t.Context(), a); !errors.As(err, &e) || e.Code != lock.ErrLeaseLost || e.Ended != lock.Released {
		t.Errorf("the lease that was released: %v", err)
	}
	r.used(0, 1, 1)
	r.releases(r.acquires("a"))
	r.used(0, 0, 2)
	b := wants("a") // in one batch with its end
	_, errs := r.DoAll(t.Context(), []lock.Command{b, lock.Release{Locks: []string{"a"}, LeaseID: b.LeaseID}, b})
	if errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], lock.ErrLeaseLost) {
		t.Errorf("acquired, released and acquired again: %v", errs)
	}
}

// TestNoAnswerHasAProvisionalToken: of calls that one batch decides, each has the tokens that were granted, also in a
// refusal.
func TestNoAnswerHasAProvisionalToken(t *testing.T) {
	t.Parallel()
	r := newReplica(t, pgtest.URL(t), 1)
	first, waits, permit := wants("a"), wants("a"), wants("b")
	waits.Wait, waits.Replica, waits.Attachment = lock.MaxWait, r.self, 1
	permit.Locks[0].Mode, permit.Locks[0].Capacity = lock.Permit, 3
	second := permit
	second.LeaseID = lock.LeaseID(uuid.New())
	commands := []lock.Command{
		first, wants("a"), waits, lock.Revoke{Name: "a", Token: 1, Reason: "test"}, lock.ReportStale{Name: "a", Token: 2},
		lock.Renew{Locks: []string{"a"}, LeaseID: first.LeaseID}, lock.Release{Locks: []string{"a"}, LeaseID: first.LeaseID},
		lock.Renew{Locks: []string{"a"}, LeaseID: first.LeaseID}, permit, second, lock.ReportStale{Name: "b", Token: 1 << 40},
	}
	outcomes, errs := r.DoAll(t.Context(), commands)
	for i, out := range outcomes {
		if errs[i] != nil {
			out.Decision = lock.Decision{}
		}
		for text := range map[string]bool{fmt.Sprintf("%+v", out): true, fmt.Sprintf("%+v", errs[i]): true} {
			if strings.Contains(text, fmt.Sprint(int64(lock.MaxToken + 1))[:13]) {
				t.Errorf("%T was answered %s", commands[i], text)
			}
		}
		refusal := (*lock.Error)(nil)
		if errors.As(errs[i], &refusal) && (refusal.Token > lock.MaxToken || refusal.Newest > lock.MaxToken) {
			t.Errorf("%T was refused with the tokens %d and %d", commands[i], refusal.Token, refusal.Newest)
		}
	}
	granted := outcomes[0].Leases[0].Token
	if mismatch := (*lock.Error)(nil); !errors.As(errs[3], &mismatch) || mismatch.Newest != granted {
		t.Errorf("the holder has the token %d, and a revocation was refused with %+v", granted, errs[3])
	}
	if errs[4] != nil || !errors.Is(errs[10], lock.ErrUnknownToken) {
		t.Errorf("reports of an old token and of one that was never granted: %v, %v", errs[4], errs[10])
	}
}

// keepCache connects again, and keeps the cache all the same. Behind a pooler a replica does not notice that a
// connection ended.
func (r *replica) keepCache() {
	r.Helper()
	r.db.Deciding.Reset()
	r.db.Rest.Reset()
	if err := r.db.Deciding.Ping(r.Context()); err != nil {
		r.Fatal(err)
	}
	r.cache().conns = r.db.Connected()
}

// TestARestartOfTheServerIsSeen: nothing that was cached before it is written.
func TestARestartOfTheServerIsSeen(t *testing.T) {
	t.Parallel()
	server, url := pgtest.Server(t)
	r := newReplica(t, url, 1)
	l := r.acquires("a")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.keepCache()
	r.reset()
	// The statement in which the server is recognized misses, and the lock is read again.
	if again := r.renews(l); again.Token != l.Token {
		t.Errorf("renewed as %+v", again)
	}
	r.used(0, 1, 2)
	if next := r.acquires("b"); next.Token <= l.Token {
		t.Errorf("token %d after %d", next.Token, l.Token)
	}
}

// TestAConnectionThatLeadsToAnotherServerWritesNothing of what was read from the first one.
func TestAConnectionThatLeadsToAnotherServerWritesNothing(t *testing.T) {
	t.Parallel()
	_, firstURL := pgtest.Server(t)
	_, secondURL := pgtest.Server(t)
	address := func(url string) (network, address string) {
		config, err := pgconn.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		return pgconn.NetworkAddress(config.Host, config.Port)
	}
	network, to := address(firstURL)
	proxy := tcpproxy.NewChanging(t, network, to, func(client io.Writer, server io.Reader) {
		_, _ = io.Copy(client, server) // it ends when either connection does
	})
	r := newReplica(t, "postgres://paddock@"+proxy.Address+"/paddock?sslmode=disable", 1)
	free, held := r.acquires("free"), r.acquires("held")
	r.releases(free)
	second := connect(t, secondURL)
	other := newReplica(t, secondURL, 2) // so that the rows are there, in the same places
	other.releases(other.acquires("free"))
	theirs := other.acquires("held")
	_, to = address(secondURL)
	proxy.Redirect(to)
	r.keepCache()
	if _, err := r.Do(t.Context(), lock.Renew{Locks: []string{"held"}, LeaseID: held.ID}); !errors.Is(err, lock.ErrLeaseLost) {
		t.Errorf("renewing a lease of the other server: %v", err)
	}
	if out, err := r.Do(t.Context(), wants("free")); err == nil && out.Leases[0].Token <= free.Token {
		t.Errorf("token %d after %d", out.Leases[0].Token, free.Token)
	} else if err != nil && !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("acquiring: %v", err)
	}
	if n := second.number("select count(*) from paddock.records where name = 'held' and token = $1", int64(theirs.Token)); n != 1 {
		t.Error("the second server's lock was written")
	}
}

// TestAClockThatIsOffIsNotBelieved: a reading may be wrong when the database's clock is set, or when this machine has
// slept. It costs one call a statement, not more.
func TestAClockThatIsOffIsNotBelieved(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{
		"the database's clock was set back": time.Hour, "by a little": 10 * time.Second,
		"the machine has slept": -time.Hour, "for a moment": -time.Minute - 100*time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReplica(t, pgtest.URL(t), 1)
			l := r.acquires("a")
			r.acquires("b")
			r.reset()
			r.cache().clock.shown = r.cache().clock.shown.Add(off)
			out := r.must(lock.Renew{Locks: []string{"a"}, LeaseID: l.ID})
			if moved := out.Leases[0].ExpiresAt.Sub(l.ExpiresAt); moved < 0 || moved > time.Minute/2 {
				t.Errorf("the renewal moved the end by %v", moved)
			}
			if until := time.Until(out.Until(out.Leases[0].ExpiresAt)); until > time.Minute || until < 0 {
				t.Errorf("the holder may use the lease for %v", until)
			}
			r.used(0, 1, 2)
			r.renews(l)
			r.used(0, 0, 1)
		})
	}
}

// TestALockThatKeepsChangingWhileItIsReadIsLocked after a look that fails with row.ErrChanged, which is a miss.
func TestALockThatKeepsChangingWhileItIsReadIsLocked(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, other, s := newReplica(t, url, 1), newReplica(t, url, 2), connect(t, url)
	held := other.acquires("a")
	other.joins("a", nil) // a part, which is read after the record
	r.afterLook = func() { s.exec("update paddock.records set holder = holder where name = 'a'") }
	r.renews(held)
	r.used(1, 1, 1)
}
