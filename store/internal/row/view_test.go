package row

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
)

// TestALookCreatesWhatIsMissing, once, and returns what was there as it is.
func TestALookCreatesWhatIsMissing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.look(t, "b")
	v := f.look(t, "a", "b", "c")
	if len(v.Rows) != 3 || v.Rows["b"].Xmin != first.Rows["b"].Xmin || v.Rows["a"].Xmin == first.Rows["b"].Xmin {
		t.Errorf("the rows are %+v", v.Rows)
	}
	for name, r := range v.Rows {
		if r.Record.Name != name || r.Record.Revision != 0 || !r.Record.ChangedAt.IsZero() || r.Record.Leases != nil || !r.TID.Valid {
			t.Errorf("%s is %+v", name, r)
		}
	}
}

// TestALockingLookHoldsItsRows until the transaction ends, those that it has created, too.
func TestALockingLookHoldsItsRows(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.look(t, "a", "free")
	if _, err := (Look{Names: []string{"a", "b"}, Create: []string{"a", "b"}, Lock: true}).Run(t.Context(), f.conn); err != nil {
		t.Fatal(err)
	}
	check := func(wantLocked, wantMissing []string) {
		t.Helper()
		locked, missing, err := LockedElsewhere(t.Context(), f.db, []string{"a", "b", "free", "none"})
		if err != nil || !slices.Equal(locked, wantLocked) || !slices.Equal(missing, wantMissing) {
			t.Errorf("locked are %v, missing %v, %v; want %v, %v", locked, missing, err, wantLocked, wantMissing)
		}
	}
	check([]string{"a"}, []string{"b", "none"})
	if _, err := f.conn.Exec(t.Context(), "commit"); err != nil {
		t.Fatal(err)
	}
	check(nil, []string{"none"})
}

// TestAReplicaIsAliveAsItsRowSays, or the row of its waiter, or for as long as the database was not reachable.
func TestAReplicaIsAliveAsItsRowSays(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	v := f.look(t, "a")
	early, late := v.Epoch.Now.Add(-time.Hour), v.Epoch.Now.Add(time.Hour)
	waiter := func(place int64, replica lock.Replica, alive time.Time) *lock.Waiter {
		return &lock.Waiter{Place: place, Replica: replica, AliveUntil: alive, Lease: lock.Lease{ID: lock.LeaseID{byte(place)}, Name: "a"}}
	}
	c := v.change("a", func(r *lock.Record) {
		r.Queue = []*lock.Waiter{waiter(1, 1, early), waiter(2, 1, late), waiter(3, 2, early), waiter(4, 3, early)}
	})
	s := swapOf(v, c)
	s.Latest = s.Latest.Add(time.Minute)
	f.run(t, s)
	heartbeat := v.Epoch.Now.Add(time.Minute)
	f.exec(t, "insert into paddock.replicas (id, alive_until, waiting, watching) values (1, $1, 0, false), (2, $2, 0, false)", heartbeat, early)
	for assumeAlive, want := range map[time.Duration][4]time.Time{
		0:             {heartbeat, late, early, early},
		2 * time.Hour: {}, // zero: at least so long, with a row or without
	} {
		v, err := Look{Names: []string{"a"}, Create: []string{"a"}, AssumeAlive: assumeAlive}.Run(t.Context(), f.conn)
		if err != nil {
			t.Fatal(err)
		}
		only := Only("a")
		only.Queue = true
		r, err := only.ReadOne(t.Context(), f.conn, "", assumeAlive)
		if err != nil || len(v.Rows["a"].Record.Queue) != 4 || len(r.Record.Queue) != 4 {
			t.Fatalf("%+v, %+v, %v", v, r, err)
		}
		for i, w := range slices.Concat(v.Rows["a"].Record.Queue, r.Record.Queue) {
			i %= 4
			if want[i].IsZero() && w.AliveUntil.Before(v.Epoch.Now.Add(assumeAlive)) || !want[i].IsZero() && !w.AliveUntil.Equal(want[i]) {
				t.Errorf("with a assumeAlive of %v the replica at place %d is alive until %v, want %v", assumeAlive, i+1, w.AliveUntil, want[i])
			}
		}
	}
}

// TestPartsOfAnotherVersionAreNotMixedIn: a lock that changes between its record and its parts is read again.
func TestPartsOfAnotherVersionAreNotMixedIn(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"the record changes": "update paddock.records set parts = parts; insert into paddock.parts select place + 1, slot, mode, unclaimed, token, ttl_ms, attachment, replica, acquired_at, expires_at, lease_id, name, holder, rest from paddock.parts",
		"it has as many":     "update paddock.records set parts = parts; update paddock.parts set place = place + 1",
		"it is deleted":      "delete from paddock.parts; delete from paddock.records",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			v := f.look(t, "a")
			s := swapOf(v, v.change("a", func(r *lock.Record) {
				r.Queue = []*lock.Waiter{{Place: 1, Lease: lock.Lease{ID: lock.LeaseID{1}, Name: "a"}}}
			}))
			s.Latest = s.Latest.Add(time.Minute)
			f.run(t, s)
			read := View{Rows: map[string]*Row{}}
			b := &pgx.Batch{}
			b.Queue(sqlLook.In(""), []string{"a"}, nil, nil, nil).Query(read.scanRows)
			if err := f.conn.SendBatch(t.Context(), b).Close(); err != nil {
				t.Fatal(err)
			}
			f.exec(t, sql)
			if err := read.readParts(t.Context(), f.conn, 0); err != nil || !errors.Is(read.Rows["a"].Err, ErrChanged) {
				t.Errorf("got %v and %v, want ErrChanged of the lock", err, read.Rows["a"].Err)
			}
		})
	}
}
