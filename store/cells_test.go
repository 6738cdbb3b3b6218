package store_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/testkit/locktest"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// register registers the databases as the cells.
func register(t *testing.T, all ...store.CellDatabase) {
	t.Helper()
	if err := store.RegisterCells(t.Context(), "", all); err != nil {
		t.Fatal(err)
	}
}

// twoCells returns the cells main and spare of a new deployment.
func twoCells(t *testing.T) (main, spare store.CellDatabase) {
	t.Helper()
	main, spare = store.CellDatabase{Name: "main", URL: pgtest.URL(t)}, store.CellDatabase{Name: "spare", URL: pgtest.URL(t)}
	register(t, main, spare)
	return main, spare
}

// cell returns a store on the cell's database.
func cell(t *testing.T, c store.CellDatabase) *store.Store {
	t.Helper()
	return replica.Store(t, c.URL, store.Options{Cell: c.Name})
}

// homeIn returns a group whose home is the cell.
func homeIn(t *testing.T, s *store.Store, cell string) string {
	t.Helper()
	for _, group := range strings.Fields("a b c d e f g h i j k l m n o p q r s t") {
		if placement.Home(group, s.Placement().Cells) == cell {
			return group
		}
	}
	t.Fatalf("no group is at home in %s", cell)
	return ""
}

// isElsewhere reports whether the call was refused because the group is in the cell.
func isElsewhere(err error, group, cell string, leaving bool) bool {
	e := (*placement.ElsewhereError)(nil)
	return errors.As(err, &e) && *e == placement.ElsewhereError{Group: group, Cell: cell, Leaving: leaving} && errors.Is(err, lock.ErrUnavailable)
}

// TestACellOfOneConforms uses a cell that is the home of all groups: what it grants has the ids of its position.
func TestACellOfOneConforms(t *testing.T) {
	t.Parallel()
	only := store.CellDatabase{Name: "main", URL: pgtest.URL(t)}
	register(t, only)
	locktest.Run(t, cell(t, only), replica.Store(t, only.URL, store.Options{Cell: "main", BatchWorkers: 4}))
	if n := number(t, connect(t, only.URL), "select count(*) from paddock.event_batches where id % 64 <> 0"); n != 0 {
		t.Errorf("%d ids of event batches are not those of position 0", n)
	}
}

// TestOnlyTheCellOfAGroupDecides calls everything that is about a group, at the cell that does not have it.
func TestOnlyTheCellOfAGroupDecides(t *testing.T) {
	t.Parallel()
	main, spare := twoCells(t)
	here, there := cell(t, main), cell(t, spare)
	group := homeIn(t, here, "spare")
	name := group + ":x"
	g := mustAcquire(t, there, acquire(name))
	ctx := t.Context()
	id := newID()
	for what, call := range map[string]func(s *store.Store) error{
		"acquire": func(s *store.Store) error { _, err := s.Acquire(ctx, acquire(name)); return err },
		"wait": func(s *store.Store) error {
			a := acquire(name)
			a.Wait = lock.MaxWait
			_, err := s.Acquire(ctx, a)
			return err
		},
		"renew": func(s *store.Store) error {
			_, err := s.Renew(ctx, lock.Renew{Locks: []string{name}, LeaseID: g.ID})
			return err
		},
		"release": func(s *store.Store) error { return s.Release(ctx, lock.Release{Locks: []string{name}, LeaseID: id}) },
		"revoke": func(s *store.Store) error {
			_, err := s.Revoke(ctx, lock.Revoke{Name: name, Token: g.Token, Reason: "r"})
			return err
		},
		"batch": func(s *store.Store) error {
			return s.Batch(ctx, []lock.Command{acquire(homeIn(t, here, "main") + ":x"), acquire(name)})[1].Err
		},
		"lock":  func(s *store.Store) error { _, err := s.Lock(ctx, name); return err },
		"queue": func(s *store.Store) error { _, err := s.Queue(ctx, name); return err },
		"watch": func(s *store.Store) error {
			_, err := s.Watch(ctx, paddock.Watch{Name: name, Wait: lock.MaxWait})
			return err
		},
		"history": func(s *store.Store) error {
			_, err := s.Events(ctx, paddock.EventQuery{Names: []string{name}})
			return err
		},
		"follow one": func(s *store.Store) error {
			_, err := s.Events(ctx, paddock.EventQuery{Names: []string{name}, Cursor: paddock.CursorNow, Wait: lock.MaxWait})
			return err
		},
		"verify": func(s *store.Store) error {
			_, err := s.VerifyToken(ctx, lock.Verify{Name: name, Token: g.Token})
			return err
		},
		"report stale": func(s *store.Store) error {
			_, err := s.ReportStale(ctx, lock.ReportStale{Name: name, Token: 1})
			return err
		},
		"write fenced": func(s *store.Store) error {
			_, err := s.WriteFenced(ctx, lock.FencedWrite{Key: "key", Lock: name, Token: g.Token, Value: []byte("1")})
			return err
		},
		"write fenced, key": func(s *store.Store) error {
			_, err := s.WriteFenced(ctx, lock.FencedWrite{Key: name, Lock: homeIn(t, here, "main"), Token: 1, Value: []byte("1")})
			return err
		},
		"read fenced":  func(s *store.Store) error { _, err := s.ReadFenced(ctx, name); return err },
		"declare tree": func(s *store.Store) error { _, err := s.DeclareTree(ctx, name); return err },
		"remove tree":  func(s *store.Store) error { return s.RemoveTree(ctx, name) },
		"freeze": func(s *store.Store) error {
			_, err := s.Freeze(ctx, lock.FreezeRequest{Scope: lock.Scope(group + ":"), Reason: "r"})
			return err
		},
		"thaw":   func(s *store.Store) error { return s.Thaw(ctx, lock.ThawRequest{Scope: lock.Scope(name)}) },
		"frozen": func(s *store.Store) error { _, err := s.Frozen(ctx, lock.Scope(name)); return err },
		"set rule": func(s *store.Store) error {
			_, err := s.SetRule(ctx, lock.Rule{Scope: lock.Scope(name), MaxTTL: time.Hour})
			return err
		},
		"remove rule": func(s *store.Store) error {
			return s.RemoveRule(ctx, lock.Scope(name))
		},
	} {
		if err := call(here); !isElsewhere(err, group, "spare", false) {
			t.Errorf("%s at the other cell: %v", what, err)
		}
	}
	if n := number(t, connect(t, main.URL), `select (select count(*) from paddock.records where name like $1) + (select count(*) from paddock.fenced)
		+ (select count(*) from paddock.trees) + (select count(*) from paddock.freezes) + (select count(*) from paddock.rules)`, group+"%"); n != 0 {
		t.Errorf("the other cell has %d rows of the group", n)
	}
	if _, err := there.Renew(ctx, lock.Renew{Locks: []string{name}, LeaseID: g.ID}); err != nil {
		t.Errorf("the cell that has the group: %v", err)
	}
}

// place writes a row of the placement into the database, as a move does.
func place(t *testing.T, conn *pgx.Conn, r placement.Row) {
	t.Helper()
	exec(t, conn, `begin; lock table paddock.records in exclusive mode; update paddock.epochs set policy = policy + 1;`)
	exec(t, conn, `insert into paddock.placement values ($1, $2, $3, $4) on conflict (group_name) do update
		set cell = excluded.cell, generation = excluded.generation, state = excluded.state`, r.Group, r.Cell, r.Generation, string(r.State))
	exec(t, conn, "commit")
}

// TestCallsThatWaitEndWhenTheirGroupLeaves waits in each way in which a call can wait for one lock.
func TestCallsThatWaitEndWhenTheirGroupLeaves(t *testing.T) {
	t.Parallel()
	main, _ := twoCells(t)
	s, conn := cell(t, main), connect(t, main.URL)
	group := homeIn(t, s, "main")
	name := group + ":x"
	mustAcquire(t, s, acquire(name))
	var answered sync.WaitGroup
	begin := func(what string, wait func(context.Context) error) {
		answered.Go(func() {
			began := time.Now()
			if err := wait(t.Context()); !isElsewhere(err, group, "spare", true) || time.Since(began) > lock.MaxWait-10*time.Second {
				t.Errorf("%s returned %v after %v", what, err, time.Since(began))
			}
		})
	}
	begin("acquire", func(ctx context.Context) error {
		a := acquire(name)
		a.Wait = lock.MaxWait
		_, err := s.Acquire(ctx, a)
		return err
	})
	until(t, "the call waits", func() bool {
		q, err := s.Queue(t.Context(), name)
		return err == nil && len(q.Waiters) > 0
	})
	seen, err := s.Lock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	begin("watch", func(ctx context.Context) error {
		_, err := s.Watch(ctx, paddock.Watch{Name: name, Seen: seen.Version(), Wait: lock.MaxWait})
		return err
	})
	begin("events", func(ctx context.Context) error {
		_, err := s.Events(ctx, paddock.EventQuery{Names: []string{name}, Cursor: paddock.CursorNow, Wait: lock.MaxWait})
		return err
	})
	place(t, conn, placement.Row{Group: group, Cell: "spare", Generation: 2, State: placement.Leaving})
	answered.Wait()
	if n := number(t, conn, "select count(*) from paddock.parts where place > 0"); n != 1 {
		t.Errorf("%d waiters are left to be moved, want 1", n)
	}
	if err := s.Release(t.Context(), lock.Release{Locks: []string{name}, LeaseID: newID()}); !isElsewhere(err, group, "spare", true) {
		t.Errorf("a release of a lock that leaves: %v", err)
	}
	place(t, conn, placement.Row{Group: group, Cell: "main", Generation: 3, State: placement.Here})
	if l, err := s.Lock(t.Context(), name); err != nil || l.State != lock.Held {
		t.Errorf("a lock that has stayed: %+v, %v", l, err)
	}
}

// TestAReplicaThatKnowsNothingOfAMoveDecidesNothing caches a lock on a replica, which is not told that the lock leaves.
func TestAReplicaThatKnowsNothingOfAMoveDecidesNothing(t *testing.T) {
	t.Parallel()
	main, _ := twoCells(t)
	s, conn := cell(t, main), connect(t, main.URL)
	group := homeIn(t, s, "main")
	name := group + ":x"
	g := mustAcquire(t, s, acquire(name))
	for _, state := range []placement.State{placement.Leaving, placement.Gone, placement.Refused} {
		place(t, conn, placement.Row{Group: group, Cell: "spare", Generation: 2, State: state})
		before := number(t, conn, "select count(*) from paddock.event_batches")
		_, err := s.Renew(t.Context(), lock.Renew{Locks: []string{name}, LeaseID: g.ID})
		if !isElsewhere(err, group, "spare", state == placement.Leaving) {
			t.Errorf("%s: a renewal is answered %v", state, err)
		}
		if err := s.Release(t.Context(), lock.Release{Locks: []string{name}, LeaseID: g.ID}); !isElsewhere(err, group, "spare", state == placement.Leaving) {
			t.Errorf("%s: a release is answered %v", state, err)
		}
		if after := number(t, conn, "select count(*) from paddock.event_batches"); after != before {
			t.Errorf("%s: events were written", state)
		}
		place(t, conn, placement.Row{Group: group, Cell: "main", Generation: 2, State: placement.Here})
		if _, err = s.Renew(t.Context(), lock.Renew{Locks: []string{name}, LeaseID: g.ID}); err != nil {
			t.Errorf("after it came back: %v", err)
		}
	}
}

func TestIDsAndTokensOfCellsNeverMeet(t *testing.T) {
	t.Parallel()
	main, spare := twoCells(t)
	for position, c := range []store.CellDatabase{main, spare} {
		s := cell(t, c)
		group := homeIn(t, s, c.Name)
		before := lock.Token(0)
		for range 3 {
			g := mustAcquire(t, s, acquire(group))
			if batch := int(g.Token) / 256; batch%64 != position || g.Token <= before {
				t.Errorf("in %s the token %d followed %d", c.Name, g.Token, before)
			}
			before = g.Token
			mustRelease(t, s, g)
		}
		if err := store.BeginEpoch(t.Context(), c.URL, "", "put back", 1000*256*64+17); err != nil {
			t.Fatal(err)
		}
		if err := func() error { _, err := store.OpenEpoch(t.Context(), c.URL, "", "nobody works"); return err }(); err != nil {
			t.Fatal(err)
		}
		if g := mustAcquire(t, s, acquire(group)); int(g.Token)/256%64 != position || g.Token < before+1<<34 {
			t.Errorf("in %s an epoch continues with the token %d", c.Name, g.Token)
		}
	}
}

// TestADatabaseIsServedAsTheCellThatItIs opens databases under other names.
func TestADatabaseIsServedAsTheCellThatItIs(t *testing.T) {
	t.Parallel()
	main, spare := twoCells(t)
	alone := pgtest.URL(t)
	for _, c := range []struct{ url, cell, want string }{
		{spare.URL, "main", "is the cell spare; correct the URLs"},
		{main.URL, "", "is the cell main of a deployment with several"},
		{alone, "main", "is not registered as the cell main"},
	} {
		s, err := store.Open(t.Context(), c.url, store.Options{Cell: c.cell})
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("opened as %q: %v, want %q", c.cell, err, c.want)
		}
		if err := store.Check(t.Context(), c.url, store.Options{Cell: c.cell}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("checked as %q: %v, want %q", c.cell, err, c.want)
		}
	}
}
