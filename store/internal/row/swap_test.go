package row

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// stored returns what is in the tables of the lock, as text.
func (f *fixture) stored(t *testing.T, name string) (all string) {
	t.Helper()
	err := f.outside.QueryRow(t.Context(), `select coalesce((select r::text from paddock.records r where name = $1), 'none')
		|| coalesce((select string_agg(p::text, ' ' order by slot, place) from paddock.parts p where name = $1), '')
		|| (select count(*) from paddock.event_batches)::text || (select count(*) from paddock.event_refs)::text`, name).Scan(&all)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestASwapProvesWhatWasRead: after anything else has happened to the lock, the epoch or the clock, nothing is
// written.
func TestASwapProvesWhatWasRead(t *testing.T) {
	t.Parallel()
	const copies = `create table public.kept as select * from paddock.records; delete from paddock.records;
		insert into paddock.records (token, revision, last_event, changed_at, acquired_at, expires_at, ttl_ms, lease_id, parts, mode,
			last_end, name, holder, rest)
		select token, revision, last_event, changed_at, acquired_at, expires_at, ttl_ms, lease_id, parts, mode, last_end, name, holder, rest
		from public.kept`
	for name, c := range map[string]struct {
		sql    string
		change func(*Swap)
	}{
		"a change by hand":                                    {sql: "update paddock.records set holder = 'another'"},
		"a change by hand to the same":                        {sql: "update paddock.records set holder = holder"},
		"deleted":                                             {sql: "delete from paddock.records"},
		"deleted and made again":                              {sql: "delete from paddock.records; insert into paddock.records (name) values ('a')"},
		"deleted and made again as it was":                    {sql: copies},
		"rewritten by CLUSTER":                                {sql: "insert into paddock.records (name) values ('0'); cluster paddock.records using records_pkey"},
		"an epoch has begun":                                  {sql: `insert into paddock.epochs (epoch, began_at, system_identifier, timeline, reason, longest_ms) select epoch + 1, clock_timestamp(), system_identifier, timeline, 'test', longest_ms from paddock.epochs`},
		"grants are paused":                                   {sql: "update paddock.epochs set closed_until = clock_timestamp() + interval '1 hour'"},
		"the longest lease was forgotten":                     {sql: "update paddock.epochs set longest_ms = longest_ms - 1"},
		"a standby is required":                               {sql: "update paddock.epochs set quorum = true"},
		"the policy was changed":                              {sql: "update paddock.epochs set policy = policy + 1"},
		"no epoch is known":                                   {sql: "delete from paddock.epochs"},
		"another server":                                      {change: func(s *Swap) { s.Epoch.Started = s.Epoch.Started.Add(time.Microsecond) }},
		"another epoch":                                       {change: func(s *Swap) { s.Epoch.Number++ }},
		"decided after the database's now":                    {change: func(s *Swap) { s.Now = s.Now.Add(time.Minute) }},
		"decided too long ago":                                {change: func(s *Swap) { s.Latest = s.Latest.Add(-time.Minute - MaxLag) }},
		"another writer":                                      {change: func(s *Swap) { s.Changes[0].Before.Xmin++ }},
		"another place":                                       {change: func(s *Swap) { s.Changes[0].Before.TID.OffsetNumber++ }},
		"another lock at the place":                           {change: func(s *Swap) { s.Changes[0].After.Name = "b" }},
		"a lease that is over is continued":                   {change: func(s *Swap) { s.Changes[0].After.Leases[0].ExpiresAt = s.Now.Add(time.Nanosecond) }},
		"one that ended before another decision of the batch": {change: endedMeanwhile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.exec(t, "update paddock.epochs set longest_ms = 100000")
			f.look(t, "a") // creates the row, so that the next look finds one
			v := f.look(t, "a")
			s := swapOf(v, v.change("a", grant(1, v.Epoch.Now), lock.Event{Kind: lock.Granted, Ref: 5}))
			s.Changes[0].After.Queue = []*lock.Waiter{{Place: 1, Lease: lock.Lease{ID: lock.LeaseID{1}}}}
			s.Latest = s.Latest.Add(time.Minute) // a busy machine may take long
			if c.change != nil {
				c.change(s)
			}
			if c.sql != "" {
				f.exec(t, c.sql)
			}
			was := f.stored(t, "a")
			w := f.run(t, s)
			if s.Changes[0].Written || !w.Clock.IsZero() || w.Batch != 0 {
				t.Errorf("it was written: %+v", w)
			}
			if is := f.stored(t, "a"); is != was {
				t.Errorf("the tables have\n%s, and had\n%s", is, was)
			}
		})
	}
}

// endedMeanwhile makes the change one of a lease that ended after its own decision, and before the latest of the
// batch.
func endedMeanwhile(s *Swap) {
	c := s.Changes[0]
	c.At = s.Now.Add(-time.Minute)
	over := c.After.Leases[0]
	over.ExpiresAt = s.Now.Add(-time.Minute / 2)
	c.Before.Record.Leases = []lock.Lease{over}
}

// TestASwapIsWrittenIfNothingHasChanged, also after statements that change nothing of the lock.
func TestASwapIsWrittenIfNothingHasChanged(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"nothing":              "select",
		"another lock":         "insert into paddock.records (name) values ('b')",
		"VACUUM":               "vacuum paddock.records",
		"VACUUM (FREEZE)":      "vacuum (freeze) paddock.records",
		"the row was locked":   "select from paddock.records for update",
		"a longer lease":       "update paddock.epochs set longest_ms = longest_ms + 1",
		"a failed transaction": "begin; update paddock.records set holder = 'another'; rollback",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			v := f.look(t, "a")
			s := swapOf(v, v.change("a", grant(1, v.Epoch.Now), lock.Event{Kind: lock.Granted}))
			s.Latest = s.Latest.Add(time.Minute)
			f.exec(t, sql)
			w := f.run(t, s)
			if c := s.Changes[0]; !c.Written || w.Clock.Before(v.Epoch.Now) || w.Batch == 0 {
				t.Fatalf("it was not written: %+v", w)
			}
			again := swapOf(v, &Change{Before: s.Changes[0].Left(), After: s.Changes[0].Left().Record})
			again.Latest = s.Latest
			if f.run(t, again); !again.Changes[0].Written {
				t.Error("what the swap left is not what is there")
			}
		})
	}
}

// TestVacuumFullIsHarmless: it moves a row to the place of another one that the same transaction wrote. A swap of the
// other one writes nothing.
func TestVacuumFullIsHarmless(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprintf("n:%02d", i))
	}
	f.look(t, names...) // creates all in one transaction
	v := f.look(t, "n:30", "n:40")
	place := func(name string) (ctid string) {
		if err := f.outside.QueryRow(t.Context(), "select ctid::text from paddock.records where name = $1", name).Scan(&ctid); err != nil {
			t.Fatal(err)
		}
		return ctid
	}
	before := place("n:30")
	f.exec(t, "delete from paddock.records where name = 'n:00'")
	for deadline := time.Now().Add(time.Minute); place("n:31") != before; { // autovacuum may still see the deleted row
		if time.Now().After(deadline) {
			t.Fatalf("n:31 is at %s, and n:30 was at %s", place("n:31"), before)
		}
		f.exec(t, "vacuum full paddock.records")
	}
	s := swapOf(v, v.change("n:30", grant(1, v.Epoch.Now)), v.change("n:40", grant(2, v.Epoch.Now)))
	s.Latest = s.Latest.Add(2 * time.Minute)
	f.run(t, s)
	for _, c := range s.Changes {
		if is := f.look(t, c.After.Name).Rows[c.After.Name]; c.Written || is.Record.Token != 0 {
			t.Errorf("%s was written: %t, %+v", c.After.Name, c.Written, is)
		}
	}
}

// TestALockThatChangedIsLeftAlone, and the others of its swap are written, with all that belongs to each.
func TestALockThatChangedIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	v := f.look(t, "a", "b", "c")
	s := swapOf(v)
	for i, name := range []string{"a", "b", "c"} {
		c := v.change(name, func(r *lock.Record) {
			r.Revision, r.Token = 15, 9
			r.Leases = []lock.Lease{{ID: lock.LeaseID{byte(i)}, Name: name, Slot: 1, Mode: lock.Shared, Holder: "h", TTL: time.Hour, Token: 9, ExpiresAt: v.Epoch.Now.Add(time.Hour)}}
		}, lock.Event{Kind: lock.Granted, Holder: name}, lock.Event{Kind: lock.Released, Ref: lock.LeaseRef(100 + i)})
		s.Changes = append(s.Changes, c)
	}
	s.Latest = s.Latest.Add(time.Minute)
	f.exec(t, "update paddock.records set last_end = 2 where name = 'b'")
	w := f.run(t, s)
	now := f.look(t, "a", "b", "c")
	for i, c := range s.Changes {
		name := c.After.Name
		if want := name != "b"; c.Written != want || len(now.Rows[name].Record.Leases) == 1 != want {
			t.Errorf("%s was written: %t, and is %+v", name, c.Written, now.Rows[name])
		}
		v, err := Look{Names: []string{name}, Create: []string{name}, Ended: []Ending{{lock.LeaseRef(100 + i), name}}}.Run(t.Context(), f.conn)
		if e, known := v.Ended[lock.LeaseRef(100+i)]; err != nil || known != (name != "b") || known && (e.Kind != lock.Released || e.Name != name) {
			t.Errorf("its lease ended with %+v, %v", e, err)
		}
	}
	var refs, batches int64
	var entries int
	err := f.outside.QueryRow(t.Context(), `select (select count(*) from paddock.event_refs), count(*), max(cardinality(entries)) from paddock.event_batches`).
		Scan(&refs, &batches, &entries)
	if err != nil || refs != 4 || batches != 1 || entries != 2 || w.Batch != now.Rows["a"].LastEvent || now.Rows["b"].LastEvent != 0 {
		t.Errorf("%d references, %d rows of events, %d entries, %v", refs, batches, entries, err)
	}
}

// TestALeaseThatHasEndedIsNotUsedAgain, though its event is all that tells.
func TestALeaseThatHasEndedIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	v := f.look(t, "a", "b")
	f.exec(t, "insert into paddock.event_refs values (7, 4096)")
	s := swapOf(v, v.change("a", grant(1, v.Epoch.Now)), v.change("b", grant(2, v.Epoch.Now)))
	s.Latest = s.Latest.Add(time.Minute)
	s.Changes[0].NotEnded, s.Changes[1].NotEnded = []lock.LeaseRef{6, 7}, []lock.LeaseRef{8}
	if f.run(t, s); s.Changes[0].Written || !s.Changes[1].Written {
		t.Errorf("the used one was granted: %t, the other one: %t", s.Changes[0].Written, s.Changes[1].Written)
	}
}

// TestASwapIsUndoneUnlessItsSessionsAreOpen: if a session that a change relies on has ended, or is gone, nothing of the
// whole swap is written.
func TestASwapIsUndoneUnlessItsSessionsAreOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql  string
		open bool
	}{
		"open":    {"select", true},
		"renewed": {"update paddock.sessions set expires_at = expires_at + interval '1 minute'", true},
		"ended":   {"update paddock.sessions set ended = 3, ended_at = clock_timestamp()", false},
		"gone":    {"delete from paddock.sessions", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			v := f.look(t, "a", "b")
			session := f.open(t, 1)
			f.exec(t, c.sql)
			s := swapOf(v, v.change("a", grant(1, v.Epoch.Now), lock.Event{Kind: lock.Granted}), v.change("b", grant(2, v.Epoch.Now)))
			s.Latest = s.Latest.Add(time.Minute)
			s.Changes[0].OpenSessions = []lock.SessionRef{session}
			_, err := s.Run(t.Context(), f.conn)
			pg := new(pgconn.PgError)
			if tooLate := errors.As(err, &pg) && pg.Code == TooLate; tooLate == c.open || c.open && err != nil {
				t.Errorf("got %v; is the session open: %t", err, c.open)
			}
			for name, r := range f.look(t, "a", "b").Rows {
				if written := len(r.Record.Leases) == 1; written != c.open {
					t.Errorf("%s was written: %t, and is %+v", name, written, r)
				}
			}
		})
	}
}

// open writes a new session.
func (f *fixture) open(t *testing.T, id byte) lock.SessionRef {
	t.Helper()
	now := time.Now()
	session := lock.Session{ID: lock.SessionID{id}, Holder: "h", TTL: time.Minute, OpenedAt: now, ExpiresAt: now.Add(time.Minute)}
	b, lost := &pgx.Batch{}, false
	QueueOpenSession(b, "", session, &lost)
	if err := f.conn.SendBatch(t.Context(), b).Close(); err != nil || lost {
		t.Fatal(lost, err)
	}
	return session.ID.Ref()
}

// revokedOf returns what the session counts.
func (f *fixture) revokedOf(t *testing.T, ref lock.SessionRef) int64 {
	t.Helper()
	return pgtest.Number(t, f.outside, "select revoked_leases from paddock.sessions where ref = $1", int64(ref))
}

// taking returns a change that takes leases of the lock from the sessions.
func (v View) taking(name string, sessions ...lock.SessionRef) *Change {
	c := v.change(name, func(r *lock.Record) { r.LastEnd = lock.Revoked }, lock.Event{Kind: lock.Revoked, Ref: 7})
	c.SessionLosses = sessions
	return c
}

// TestASessionCountsTheLeasesThatItLoses by changes that are written, and by no others; not if it has ended.
func TestASessionCountsTheLeasesThatItLoses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, second, ended := f.open(t, 1), f.open(t, 2), f.open(t, 3)
	f.exec(t, "update paddock.sessions set ended = 3, ended_at = clock_timestamp() where ref = $1", int64(ended))
	v := f.look(t, "a", "b", "c")
	f.exec(t, "update paddock.records set holder = 'another' where name = 'b'")
	s := swapOf(v, v.taking("a", first, second, first), v.taking("b", first), v.taking("c", second, ended))
	s.Latest = s.Latest.Add(time.Minute)
	f.run(t, s)
	for ref, want := range map[lock.SessionRef]int64{first: 2, second: 2, ended: 0} {
		if n := f.revokedOf(t, ref); n != want {
			t.Errorf("%v counts %d leases, want %d", ref, n, want)
		}
	}
	v = f.look(t, "a")
	s = swapOf(v, v.taking("a", second))
	s.Latest = s.Latest.Add(time.Minute)
	s.Changes[0].Before.Xmin++
	f.run(t, s)
	s.Changes[0].Before.Xmin--
	if n := f.revokedOf(t, second); n != 2 {
		t.Errorf("after a swap that wrote nothing the second counts %d leases, want 2", n)
	}
	f.run(t, s)
	if n := f.revokedOf(t, second); n != 3 {
		t.Errorf("after a change alone the second counts %d leases, want 3", n)
	}
}

// TestASwapMayRelyOnASessionThatLosesALease: a batch may have both. If one that it relies on has ended, none is counted.
func TestASwapMayRelyOnASessionThatLosesALease(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, second := f.open(t, 1), f.open(t, 2)
	swap := func() error {
		v := f.look(t, "a", "b")
		s := swapOf(v, v.taking("a", first), v.change("b", grant(v.Rows["b"].Record.Token+1, v.Epoch.Now), lock.Event{Kind: lock.Granted}))
		s.Latest = s.Latest.Add(time.Minute)
		s.Changes[1].OpenSessions = []lock.SessionRef{first, second}
		_, err := s.Run(t.Context(), f.conn)
		return err
	}
	if err := swap(); err != nil || f.revokedOf(t, first) != 1 || f.revokedOf(t, second) != 0 {
		t.Errorf("the sessions count %d and %d leases, %v", f.revokedOf(t, first), f.revokedOf(t, second), err)
	}
	f.exec(t, "update paddock.sessions set ended = 3, ended_at = clock_timestamp() where ref = $1", int64(second))
	pg := new(pgconn.PgError)
	if err := swap(); !errors.As(err, &pg) || pg.Code != TooLate || f.revokedOf(t, first) != 1 {
		t.Errorf("the session counts %d leases, %v", f.revokedOf(t, first), err)
	}
}

// TestASwapThatCountsLossesWaitsForNoOtherHeartbeat: a session that it relies on, and that loses nothing, may be locked.
func TestASwapThatCountsLossesWaitsForNoOtherHeartbeat(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, second := f.open(t, 1), f.open(t, 2)
	v := f.look(t, "a", "b")
	s := swapOf(v, v.taking("a", first), v.change("b", grant(1, v.Epoch.Now), lock.Event{Kind: lock.Granted}))
	s.Latest = s.Latest.Add(time.Minute)
	s.Changes[1].OpenSessions = []lock.SessionRef{second}
	f.exec(t, "begin")
	f.exec(t, "select from paddock.sessions where ref = $1 for no key update", int64(second))
	if _, err := s.Run(t.Context(), f.conn); err != nil || f.revokedOf(t, first) != 1 {
		t.Errorf("the session counts %d leases, %v", f.revokedOf(t, first), err)
	}
}

// TestACountWaitsForAHeartbeat and keeps what that has written.
func TestACountWaitsForAHeartbeat(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	session := f.open(t, 1)
	v := f.look(t, "a")
	s := swapOf(v, v.taking("a", session))
	s.Latest = s.Latest.Add(time.Minute)
	free := f.blocked(t, s, "update paddock.sessions set ttl_ms = 5, revoked_leases = 8")
	if err := free("commit"); err != nil || f.revokedOf(t, session) != 9 || pgtest.Number(t, f.outside, "select ttl_ms from paddock.sessions") != 5 {
		t.Errorf("the session counts %d leases, want 9; %v", f.revokedOf(t, session), err)
	}
}

// blocked starts the swap while the other session has locked the row by the statement, and returns its result once
// free, which ends the other transaction, was called.
func (f *fixture) blocked(t *testing.T, s *Swap, statement string) (free func(sql string) error) {
	t.Helper()
	if _, err := f.conn.Exec(t.Context(), "set lock_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	f.exec(t, "begin isolation level read committed")
	f.exec(t, statement)
	done := make(chan error, 1)
	go func() {
		_, err := s.Run(context.WithoutCancel(t.Context()), f.conn)
		done <- err
	}()
	f.until(t, waitsForLock)
	return func(sql string) error {
		f.exec(t, sql)
		return <-done
	}
}

// TestASwapThatWaitsPastTheEndFails as a whole: its decision was right when the statement began.
func TestASwapThatWaitsPastTheEndFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	v := f.look(t, "a", "b")
	short := grant(1, v.Epoch.Now)
	a := v.change("a", short, lock.Event{Kind: lock.Granted})
	b := v.change("b", grant(2, v.Epoch.Now))
	s := swapOf(v, a, b)
	s.Latest = s.Latest.Add(time.Minute)
	end := v.Epoch.Now.Add(2 * time.Second)
	a.After.Leases[0].ExpiresAt = end
	free := f.blocked(t, s, "select from paddock.records where name = 'a' for update")
	f.until(t, fmt.Sprintf("select clock_timestamp() >= '%s'", end.Format(time.RFC3339Nano)))
	pg := new(pgconn.PgError)
	if err := free("commit"); !errors.As(err, &pg) || pg.Code != TooLate {
		t.Errorf("got %v, want SQLSTATE %s", err, TooLate)
	}
	for name, r := range f.look(t, "a", "b").Rows {
		if r.Record.Token != 0 || r.LastEvent != 0 {
			t.Errorf("%s was written: %+v", name, r)
		}
	}
}

func TestASwapThatWaitsForLessGoesOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	v := f.look(t, "a")
	s := swapOf(v, v.change("a", grant(1, v.Epoch.Now)))
	s.Latest = s.Latest.Add(time.Minute)
	if err := f.blocked(t, s, "select from paddock.records where name = 'a' for update")("commit"); err != nil || !s.Changes[0].Written {
		t.Errorf("written: %t, %v", s.Changes[0].Written, err)
	}
}

// TestASwapThatWaitsForAChangeLeavesItAlone, also where the database's default is an isolation in which it would fail.
func TestASwapThatWaitsForAChangeLeavesItAlone(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
		for _, change := range []string{"update paddock.records set holder = 'another' where name = 'a'", "delete from paddock.records where name = 'a'"} {
			t.Run(isolation+"/"+change[:6], func(t *testing.T) {
				t.Parallel()
				url := pgtest.URL(t)
				if _, err := connect(t, url).Exec(t.Context(), fmt.Sprintf(
					"do $$ begin execute format('alter database %%I set default_transaction_isolation = ''%s''', current_database()); end $$", isolation)); err != nil {
					t.Fatal(err)
				}
				f := fixtureOf(t, url)
				v := f.look(t, "a")
				s := swapOf(v, v.change("a", grant(1, v.Epoch.Now), lock.Event{Kind: lock.Granted}))
				s.Latest = s.Latest.Add(time.Minute)
				if err := f.blocked(t, s, change)("commit"); err != nil || s.Changes[0].Written {
					t.Errorf("written: %t, %v", s.Changes[0].Written, err)
				}
				if is := f.look(t, "a").Rows["a"]; is.Record.Token != 0 || is.LastEvent != 0 {
					t.Errorf("the lock is %+v", is)
				}
			})
		}
	}
}

// TestChangesThatBelongTogetherAreAllWrittenOrNone, since they may be of one command.
func TestChangesThatBelongTogetherAreAllWrittenOrNone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.look(t, "a", "b")
	v, err := Look{Names: []string{"a", "b"}, Create: []string{"a", "b"}, Lock: true}.Run(t.Context(), f.conn)
	if err != nil {
		t.Fatal(err)
	}
	a := v.change("a", grant(1, v.Epoch.Now), lock.Event{Kind: lock.Granted})
	b := v.change("b", grant(2, v.Epoch.Now), lock.Event{Kind: lock.Granted})
	b.After.Leases[0].ExpiresAt = v.Epoch.Now.Add(time.Nanosecond) // it is over when it is written
	s := swapOf(v, a, b)
	s.Commit, s.AllOrNone = true, true
	pg := new(pgconn.PgError)
	if _, err := s.Run(t.Context(), f.conn); !errors.As(err, &pg) || pg.Code != TooLate {
		t.Errorf("got %v, want SQLSTATE %s", err, TooLate)
	}
	if _, err := f.conn.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	for name, r := range f.look(t, "a", "b").Rows {
		if r.Record.Token != 0 || r.LastEvent != 0 {
			t.Errorf("%s was written: %+v", name, r)
		}
	}
}

// TestASwapGrantsTheTokensOfItsRow: in records, parts, events and what Left returns, whatever else it writes.
func TestASwapGrantsTheTokensOfItsRow(t *testing.T) {
	t.Parallel()
	shared := func(r *lock.Record) {
		grant(lock.Provisional(0), r.ChangedAt)(r)
		r.Leases[0].Slot, r.Leases[0].Mode = 1, lock.Shared
	}
	for name, names := range map[string][]string{"one lock": {"a"}, "two locks": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			v := f.look(t, names...)
			before := f.run(t, swapOf(v, v.change("a", func(*lock.Record) {}, lock.Event{Kind: lock.Queued})))
			v = f.look(t, names...)
			var changes []*Change
			for i, name := range names {
				do := grant(lock.Provisional(0), v.Epoch.Now)
				if i == 0 {
					do = shared
				}
				c := v.change(name, do, lock.Event{Kind: lock.Granted, Token: lock.Provisional(0)})
				c.FirstToken = 17 * i
				changes = append(changes, c)
			}
			w := f.run(t, swapOf(v, changes...))
			after := f.look(t, names...)
			for i, name := range names {
				r, want := after.Rows[name].Record, lock.Token(w.Batch*TokensPerBatch+int64(17*i))
				if want != w.Token(17*i) || want <= before.Token(TokensPerBatch-1) {
					t.Errorf("token %d is that of number %d; want %d, and that it is greater than those before", w.Token(17*i), 17*i, want)
				}
				if r.Token != want || r.Leases[0].Token != want {
					t.Errorf("the record has the token %d and the lease %d, want %d", r.Token, r.Leases[0].Token, want)
				}
				var shown int64
				if err := f.conn.QueryRow(t.Context(), "select token from paddock.history where name = $1 and kind = 'granted'", name).Scan(&shown); err != nil || lock.Token(shown) != want {
					t.Errorf("the history shows the token %d, %v, want %d", shown, err, want)
				}
			}
		})
	}
}

// TestALeaseIsInTheRowOfItsLock while it has the newest token, whatever its mode. When another one is granted, it becomes
// a part, and stays one.
func TestALeaseIsInTheRowOfItsLock(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(t, "select setval('paddock.event_batch_ids', 1000)")
	until := time.Now().Add(time.Hour).Truncate(time.Microsecond) // as it is read, so that a lease that stays is the same
	permit := func(slot int, token lock.Token) lock.Lease {
		return lock.Lease{
			ID: lock.LeaseID{byte(slot)}, Name: "a", Mode: lock.Permit, Slot: slot, Token: token, TTL: time.Minute, ExpiresAt: until,
		}
	}
	first, second := permit(1, 5), permit(2, 6)
	f.look(t, "a") // creates the row
	for _, c := range []struct {
		does   string
		token  lock.Token
		leases []lock.Lease
		parts  int64
	}{
		{"the first is granted", 5, []lock.Lease{first}, 0},
		{"the second is granted", 6, []lock.Lease{first, second}, 2},
		{"the second ends", 6, []lock.Lease{first}, 1},
		{"all end", 6, nil, 0},
		{"readers share a token", 7, []lock.Lease{permit(1, 7), permit(2, 7)}, 1},
		{"one of them ends", 7, []lock.Lease{permit(2, 7)}, 1},
		{"the next one has its slot", 7, []lock.Lease{permit(2, 7), permit(1, 7)}, 1},
		{"a batch grants it to others", 9, []lock.Lease{permit(1, 8), permit(3, 9)}, 2},
		{"it is granted alone", 10, []lock.Lease{permit(1, 10)}, 0},
	} {
		v := f.look(t, "a")
		s := swapOf(v, v.change("a", func(r *lock.Record) { r.Token, r.Leases, r.Revision = c.token, c.leases, r.Revision+1 }))
		s.Latest = s.Latest.Add(time.Minute) // a busy machine may take long
		if f.run(t, s); !s.Changes[0].Written {
			t.Fatalf("%s: not written", c.does)
		}
		if n := pgtest.Number(t, f.outside, "select count(*) from paddock.parts"); n != c.parts {
			t.Errorf("%s: there are %d parts, not %d", c.does, n, c.parts)
		}
		r := f.look(t, "a").Rows["a"]
		if r.Err != nil || len(r.Record.Leases) != len(c.leases) {
			t.Fatalf("%s: read %+v, %v", c.does, r.Record, r.Err)
		}
		for _, l := range r.Record.Leases {
			if !slices.ContainsFunc(c.leases, func(o lock.Lease) bool { return o.Slot == l.Slot && o.ID == l.ID && o.Token == l.Token }) {
				t.Errorf("%s: read the lease %+v", c.does, l)
			}
			one, b := lock.Record{Name: "a", Token: c.token}, &pgx.Batch{}
			QueueSlot(b, "", "a", l.Slot, &one)
			if err := f.conn.SendBatch(t.Context(), b).Close(); err != nil {
				t.Fatal(err)
			}
			if len(one.Leases) != 1 || one.Leases[0].ID != l.ID || one.Leases[0].Token != l.Token {
				t.Errorf("%s: slot %d has %+v", c.does, l.Slot, one.Leases)
			}
		}
	}
}
