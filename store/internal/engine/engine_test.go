package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/engine"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/row"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t *testing.T, url string) *engine.Engine {
	t.Helper()
	db, err := database.Open(t.Context(), database.At(url), "", false, nil, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	guard := epoch.New(db)
	if err := guard.Look(); err != nil {
		t.Fatal(err)
	}
	e := engine.New(engine.Options{DB: db, Epochs: guard, Self: 7, Workers: 1, Publish: func([]*row.Outcome) {}})
	t.Cleanup(func() { db.Stop(); e.Wait(); db.Close() })
	return e
}

func acquire(name string, mode lock.Mode) lock.Acquire {
	return lock.Acquire{Name: name, LeaseID: lock.LeaseID(uuid.New()), Holder: "h", Mode: mode, TTL: time.Minute}
}

func TestAcquireRenewRelease(t *testing.T) {
	t.Parallel()
	e := open(t, pgtest.URL(t))
	ctx := context.Background()
	a := acquire("orders", lock.Exclusive)
	for i := range 3 {
		out, err := e.Do(ctx, a)
		if err != nil || out.Lease.Token == 0 || out.Replayed != (i > 0) {
			t.Fatalf("acquire %d: %+v, %v", i, out, err)
		}
	}
	if _, err := e.Do(ctx, acquire("orders", lock.Exclusive)); !errors.Is(err, lock.ErrHeld) {
		t.Fatal(err)
	}
	if _, err := e.Do(ctx, lock.Renew{Name: "orders", LeaseID: a.LeaseID}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := e.Do(ctx, lock.Release{Name: "orders", LeaseID: a.LeaseID}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Do(ctx, a); !errors.Is(err, lock.ErrLeaseLost) {
		t.Fatal(err)
	}
	if _, err := e.Do(ctx, lock.Renew{Name: "orders", LeaseID: a.LeaseID}); !errors.Is(err, lock.ErrLeaseLost) {
		t.Fatal(err)
	}
	for i := range 5 {
		a := acquire("readers", lock.Shared)
		if _, err := e.Do(ctx, a); err != nil {
			t.Fatal(i, err)
		}
	}
}

func TestContention(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	engines := []*engine.Engine{open(t, url), open(t, url)}
	var all sync.WaitGroup
	for i := range 16 {
		e := engines[i%2]
		all.Go(func() {
			for n := range 50 {
				name := fmt.Sprintf("lock:%d", n%4)
				a := acquire(name, lock.Exclusive)
				_, err := e.Do(context.Background(), a)
				if errors.Is(err, lock.ErrHeld) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := e.Do(context.Background(), lock.Release{Name: name, LeaseID: a.LeaseID}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
