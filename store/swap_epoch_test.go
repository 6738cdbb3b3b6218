package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/lock"
)

// TestWhatHasChangedOfTheEpochIsSeen: nothing is decided from memory in another epoch, or on
// other terms, and what is decided then is right.
func TestWhatHasChangedOfTheEpochIsSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change string
		want   error // of an acquire
		after  bool  // whether the next is from memory
	}{
		"another has begun": {`insert into paddock.epochs (epoch, began_at, system_identifier, timeline, reason, longest_ms)
			select epoch + 1, clock_timestamp(), system_identifier, timeline, 'test', longest_ms from paddock.epochs`, nil, true},
		"it is closed":                 {"update paddock.epochs set closed_until = clock_timestamp() + interval '1 hour'", lock.ErrUnavailable, false},
		"it was closed":                {"update paddock.epochs set closed_until = clock_timestamp() - interval '1 hour'", nil, true},
		"it has forgotten the longest": {"update paddock.epochs set longest_ms = 1, began_at = clock_timestamp()", lock.ErrUnavailable, false},
		"it knows of a longer":         {"update paddock.epochs set longest_ms = longest_ms + 1", nil, true},
		"there must be a standby":      {"update paddock.epochs set quorum = true", lock.ErrUnavailable, false},
		"nobody knows which it is":     {"delete from paddock.epochs", lock.ErrUnavailable, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newSite(t)
			s := x.store()
			x.releases(s, x.acquires(s, wants("a")))
			x.wrote("a", 1, 1)
			x.exec(c.change)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			g, err := s.Acquire(ctx, wants("a"))
			if c.want != nil {
				if !errors.Is(err, c.want) && !errors.Is(err, lock.ErrUnknownOutcome) {
					t.Errorf("acquiring gave %v, want %v", err, c.want)
				}
				x.wrote("a", 1, 1)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			swapped, not := x.swaps("a")
			x.releases(s, g)
			if after, _ := x.swaps("a"); c.after != (after > swapped) || swapped+not != 3 {
				t.Errorf("%d from memory of %d, and then %d", swapped, swapped+not, after)
			}
		})
	}
}

// TestALongerLeaseThanRememberedGoesTheLongWay: its length is to be noted first.
func TestALongerLeaseThanRememberedGoesTheLongWay(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	s := x.store()
	g := x.acquires(s, wants("a"))
	longer, err := s.Renew(t.Context(), lock.Renew{Name: "a", LeaseID: g.ID, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	x.wrote("a", 0, 2)
	var noted int64
	if err := x.outside.QueryRow(t.Context(), "select longest_ms from paddock.epochs").Scan(&noted); err != nil || noted < longer.TTL.Milliseconds() {
		t.Errorf("%d ms are noted, %v", noted, err)
	}
	x.renews(s, g)
	x.wrote("a", 1, 2)
}

// TestASchemaWithoutTheTypeWorks, and so does one that was taken down and up again under
// connections that know the type by its old number.
func TestASchemaWithoutTheTypeWorks(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	s := x.store()
	x.releases(s, x.acquires(s, wants("a")))
	x.wrote("a", 1, 1)
	var definition string
	const columns = `select 'create type paddock.swap as (' || string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum) || ')'
		from pg_attribute where attrelid = 'paddock.swap'::regclass`
	if err := x.outside.QueryRow(t.Context(), columns).Scan(&definition); err != nil {
		t.Fatal(err)
	}
	x.exec("drop type paddock.swap")
	x.releases(s, x.acquires(s, wants("a")))
	x.releases(s, x.acquires(s, wants("a")))
	x.wrote("a", 1, 5)
	late := x.store()
	x.releases(late, x.acquires(late, wants("a")))
	x.recents(late, func(_ *pgxpool.Conn, r *recents) {
		if !r.ended {
			t.Error("a connection that cannot remember tries each time")
		}
	})
	x.exec(definition)
	x.releases(s, x.acquires(s, wants("a")))
	x.wrote("a", 1, 9)
	s.deciding.Reset()
	x.releases(s, x.acquires(s, wants("a")))
	x.wrote("a", 2, 10)
}
