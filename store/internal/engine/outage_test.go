package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// slowCommits makes each commit with an event of the lock "slow" wait for an advisory lock, as it might for a standby.
const slowCommits = `
create function public.wait_for_42() returns trigger language plpgsql set lock_timeout = 0 as
	$$ begin perform pg_advisory_xact_lock_shared(42); return null; end $$;
create constraint trigger slow_commit after insert on paddock.event_batches
	deferrable initially deferred for each row when (new.entries::text like '%slow%') execute function public.wait_for_42();
select pg_advisory_lock(42);`

// aCommitWaits are the commits that slowCommits keeps waiting in this database.
const aCommitWaits = ` from pg_locks where locktype = 'advisory' and not granted
	and database = (select oid from pg_database where datname = current_database())`

// TestALateCommitStallsNoOtherCall: other locks go on. Its caller is told what is so when it is through; or that the
// outcome is unknown, if its connection ends.
func TestALateCommitStallsNoOtherCall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end   string
		want  error
		warm  bool // the lock is in the cache
		locks bool // it is decided with its row locked
	}{
		"it gets through":                 {end: "select pg_advisory_unlock(42)"},
		"it gets through, cached":         {end: "select pg_advisory_unlock(42)", warm: true},
		"it gets through, locked":         {end: "select pg_advisory_unlock(42)", locks: true},
		"its connection ends":             {end: "select pg_terminate_backend(pid)" + aCommitWaits, want: lock.ErrUnknownOutcome},
		"its connection ends, with locks": {end: "select pg_terminate_backend(pid)" + aCommitWaits, want: lock.ErrUnknownOutcome, locks: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			r, s := newReplica(t, url, 1), connect(t, url)
			r.acquires("first")
			if c.warm {
				r.releases(r.acquires("slow"))
			}
			s.exec(slowCommits)
			a, done := wants("slow"), make(chan error, 1)
			var cmd lock.Command = a
			if c.locks {
				cmd = wants("slow", "other")
			}
			go func() {
				_, err := r.Do(t.Context(), cmd)
				done <- err
			}()
			s.until("select exists (select" + aCommitWaits + ")")
			for deadline := time.Now().Add(patience); r.Late() == 0; { // each of these waits behind the slow commit, until that is late
				r.releases(r.acquires("quick"))
				if time.Now().After(deadline) {
					t.Fatal("the slow commit stalls the others")
				}
			}
			s.exec(c.end)
			if err := <-done; !errors.Is(err, c.want) {
				t.Errorf("the late one was answered with %v, want %v", err, c.want)
			}
			s.exec("drop trigger slow_commit on paddock.event_batches; select pg_advisory_unlock_all()")
			if out := r.must(cmd); out.Replayed != (c.want == nil) {
				t.Errorf("asked again, it is replayed: %t", out.Replayed)
			}
			if n := r.Late(); n != 0 {
				t.Errorf("%d commits are late", n)
			}
		})
	}
}

// TestALateCommitGivesUpWhatItHasNotDone: a later call on the same lock may have been decided, and calls on one lock
// are decided in order.
func TestALateCommitGivesUpWhatItHasNotDone(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, another, s := newReplica(t, url, 1), newReplica(t, url, 2), connect(t, url)
	r.releases(r.acquires("moved"))
	another.releases(another.acquires("moved")) // what r has in its cache is old
	s.exec(slowCommits)
	var errs []error
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, errs = r.DoAll(t.Context(), []lock.Command{wants("slow"), wants("moved")})
	}()
	s.until("select exists (select" + aCommitWaits + ")")
	later := r.acquires("moved") // waits until the commit is late
	s.exec("select pg_advisory_unlock(42)")
	<-done
	if errs[0] != nil || !errors.Is(errs[1], lock.ErrUnavailable) || !errors.Is(errs[1], errOvertaken) {
		t.Errorf("they were answered %v, want nil and %v", errs, errOvertaken)
	}
	r.releases(later)
}

func TestACallThatWasNotAnsweredHasAnErrorOfPackageLock(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]lock.Code{
		errFull: lock.ErrUnavailable,
		&batch.CanceledError{Started: false, Cause: context.Canceled}: lock.ErrUnavailable,
		&batch.CanceledError{Started: true, Cause: context.Canceled}:  lock.ErrUnknownOutcome,
	} {
		if got := Unanswered(err); !errors.Is(got, want) || !errors.Is(got, err) {
			t.Errorf("%v became %v, want %v", err, got, want)
		}
	}
}

// TestALockThatIsLockedOutsideDelaysNoOther, its calls keep their order, and what it needed is freed after that.
func TestALockThatIsLockedOutsideDelaysNoOther(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, s := newReplica(t, url, 1), connect(t, url)
	l := r.acquires("stuck")
	free := r.acquires("free")
	s.exec("begin; select from paddock.records where name = 'stuck' for update")
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan []error, 1)
	next := wants("stuck")
	go func() {
		_, errs := r.DoAll(t.Context(), []lock.Command{
			lock.Renew{Locks: []string{"stuck"}, LeaseID: l.ID}, lock.Release{Locks: []string{"stuck"}, LeaseID: l.ID}, next, wants("stuck"), lock.Renew{Locks: []string{"free"}, LeaseID: free.ID},
		})
		answered <- errs
	}()
	s.until(waitsForLock)
	left := make(chan error, 1)
	go func() {
		_, err := r.Do(ctx, lock.Release{Locks: []string{"stuck"}, LeaseID: next.LeaseID})
		left <- err
	}()
	for i := range 5 {
		r.releases(r.acquires(fmt.Sprint("other:", i)))
	}
	cancel()
	gone := <-left
	if !errors.Is(gone, lock.ErrUnavailable) && !errors.Is(gone, lock.ErrUnknownOutcome) {
		t.Errorf("the call whose caller has left: %v", gone)
	}
	select {
	case errs := <-answered:
		t.Fatalf("answered while the row is locked: %v", errs)
	default:
	}
	s.exec("commit")
	errs := <-answered
	for i, want := range []error{nil, nil, nil, lock.ErrHeld, nil} {
		if !errors.Is(errs[i], want) {
			t.Errorf("call %d: %v, want %v", i, errs[i], want)
		}
	}
	r.lanes.wait()
	r.lanes.mu.Lock()
	open := len(r.lanes.lanes) + len(r.lanes.limit)
	r.lanes.mu.Unlock()
	if open != 0 {
		t.Errorf("%d lanes are open", open)
	}
	if _, err := r.Do(t.Context(), lock.Renew{Locks: []string{"stuck"}, LeaseID: next.LeaseID}); errors.Is(gone, lock.ErrUnavailable) && err != nil {
		t.Errorf("the release was done, though its caller was told that it was not: %v", err)
	}
}

// TestALeaseThatEndsWhileItsRowIsLockedIsNotRenewed.
func TestALeaseThatEndsWhileItsRowIsLockedIsNotRenewed(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, s := newReplica(t, url, 1), connect(t, url)
	a := wants("a")
	a.TTL, a.Grace = time.Second, 200*time.Millisecond
	r.must(a)
	s.exec("begin; select from paddock.records where name = 'a' for no key update")
	renewed := make(chan error, 1)
	go func() {
		_, err := r.Do(t.Context(), lock.Renew{Locks: []string{"a"}, LeaseID: a.LeaseID})
		renewed <- err
	}()
	s.until("select expires_at + interval '0.2 s' <= clock_timestamp() from paddock.records where name = 'a'")
	s.exec("commit")
	e := new(lock.Error)
	if err := <-renewed; !errors.As(err, &e) || e.Code != lock.ErrLeaseLost || e.Ended != lock.Expired {
		t.Errorf("renewing gave %v, want lease_lost, expired", err)
	}
}

// TestAGrantIsDecidedAgainIfItsLeaseEndedMeanwhile: its caller gets one that has just begun. If the machine stands
// still for seconds, the answer is to retry.
func TestAGrantIsDecidedAgainIfItsLeaseEndedMeanwhile(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, s := newReplica(t, url, 1), connect(t, url)
	r.releases(r.acquires("a"))
	for _, conn := range r.db.Deciding.AcquireAllIdle(t.Context()) { // so that the swap waits for long
		if _, err := conn.Exec(t.Context(), "set lock_timeout = 0"); err != nil {
			t.Error(err)
		}
		conn.Release()
	}
	var err error = lock.ErrUnavailable
	for n := 0; n < 5 && errors.Is(err, lock.ErrUnavailable); n++ {
		r.reset()
		s.exec("begin; select from paddock.records where name = 'a' for no key update")
		a, granted := wants("a"), make(chan error, 1)
		a.TTL = lock.MinTTL
		go func() {
			_, err := r.Do(t.Context(), a)
			granted <- err
		}()
		s.until(waitsForLock)
		s.exec("select pg_sleep(0.2)")
		s.exec("commit")
		err = <-granted
	}
	if err != nil {
		t.Error(err)
	}
	if r.mu.Lock(); r.swaps < 2 {
		t.Errorf("there were %d swaps, want the first one refused", r.swaps)
	}
	r.mu.Unlock()
}

// failing makes writes of locks fail, whose names begin with "bad".
const failing = `create sequence public.failures; create function public.fail() returns trigger language plpgsql as $$ begin
	if nextval('public.failures') <= %d then raise 'no room' using errcode = '%s'; end if; return new; end $$;
	create trigger fail before update on paddock.records for each row when (new.name like 'bad%%') execute function public.fail()`

// TestAFailureThatPassesIsRetried: a full disk, a deadlock or a server that shuts down fails no call.
func TestAFailureThatPassesIsRetried(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"53100", "40P01", "40001", "57014"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			r := newReplica(t, url, 1)
			connect(t, url).exec(fmt.Sprintf(failing, 1, code))
			l := r.acquires("bad")
			r.reset()
			r.renews(l)
			r.used(0, 0, 1)
		})
	}
}

// TestACommandThatFailsFailsAlone, and the others of its batch are done.
func TestACommandThatFailsFailsAlone(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r := newReplica(t, url, 1)
	connect(t, url).exec(fmt.Sprintf(failing, 1000, "22012"))
	_, errs := r.DoAll(t.Context(), []lock.Command{wants("a"), wants("bad"), wants("b"), wants("bad:too"), wants("c", "bad"), wants("d", "e")})
	for i, want := range []error{nil, lock.ErrInternal, nil, lock.ErrInternal, lock.ErrInternal, nil} {
		if !errors.Is(errs[i], want) {
			t.Errorf("command %d: %v, want %v", i, errs[i], want)
		}
	}
	if n := connect(t, url).number("select count(*) from paddock.records where lease_id is not null"); n != 4 {
		t.Errorf("%d locks are held, want 4", n)
	}
}

// TestConnectionsThatEndAreReplaced, and what was cached is read again.
func TestConnectionsThatEndAreReplaced(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, s := newReplica(t, url, 1), connect(t, url)
	l := r.acquires("a")
	s.exec("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
	_, err := r.Do(t.Context(), lock.Renew{Locks: []string{"a"}, LeaseID: l.ID})
	if err != nil && !errors.Is(err, lock.ErrUnknownOutcome) {
		t.Errorf("renewing: %v", err)
	}
	r.renews(l)
}

// TestAStoppedEngineDecidesNothing, and answers what it was asked.
func TestAStoppedEngineDecidesNothing(t *testing.T) {
	t.Parallel()
	r := newReplica(t, pgtest.URL(t), 1)
	l := r.acquires("a")
	r.db.Stop()
	if _, err := r.Do(t.Context(), lock.Renew{Locks: []string{"a"}, LeaseID: l.ID}); !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("one command: %v", err)
	}
	for _, err := range second(r.DoAll(t.Context(), []lock.Command{wants("b"), lock.Renew{Locks: []string{"a"}, LeaseID: l.ID}})) {
		if !errors.Is(err, lock.ErrUnavailable) {
			t.Errorf("several commands: %v", err)
		}
	}
	r.Wait()
}

func second[A, B any](_ A, b B) B { return b }
