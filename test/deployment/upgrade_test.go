package deployment_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/schema4"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/migrations"
)

// TestUpgradeFromSchema4UnderLoad migrates a database on which replicas of schema 4 grant locks. The database refuses
// them from then on, and a new replica goes on with the same leases, tokens and events. The old replicas are their
// statements, see package schema4.
func TestUpgradeFromSchema4UnderLoad(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	if err := migrations.Down(t.Context(), databaseURL, int(migrations.Latest())-4); err != nil {
		t.Fatal(err)
	}
	old := schema4.NewReplica(t, databaseURL)
	lasting, event, err := old.Grant(t.Context(), "jobs:nightly", lock.LeaseID(uuid.New()), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	load := startOldLoad(t, databaseURL)
	load.await(200)
	p := paddock.Start(t, "migrate", "up", "--database-url", databaseURL)
	if code := p.Exit(t); code != 0 {
		t.Fatalf("the migration ended with %d", code)
	}
	load.running.Wait()

	_, base := paddock.Serve(t, databaseURL)
	for _, want := range append(load.newest(), lasting) {
		again := acquire(t, base, lock.Acquire{Name: want.Name, Holder: want.Holder, LeaseID: want.ID, TTL: want.TTL})
		if !again.Replayed || again.Token != want.Token || !again.ExpiresAt.Equal(want.ExpiresAt) {
			t.Errorf("the lease is %+v after the upgrade; want %+v", again.Lease, want)
		}
	}
	service := connect(t, base)
	renewed, err := service.Renew(t.Context(), lock.Renew{Name: lasting.Name, LeaseID: lasting.ID})
	if err != nil || renewed.Token != lasting.Token {
		t.Errorf("renewed as %+v, %v", renewed, err)
	}
	if err := service.Release(t.Context(), lock.Release{Name: lasting.Name, LeaseID: lasting.ID}); err != nil {
		t.Error(err)
	}
	next := acquire(t, base, lock.Acquire{Name: lasting.Name, Holder: "new"})
	for _, l := range load.newest() {
		if l.Token >= next.Token {
			t.Errorf("the token %d was granted after %d", next.Token, l.Token)
		}
	}
	page, err := service.Events(t.Context(), lock.EventQuery{Name: lasting.Name})
	if err != nil || len(page.Items) != 3 || page.Items[0].ID != event.ID || page.Items[0].Token != event.Token {
		t.Errorf("the events of the lock are %+v, %v; want %+v first", page.Items, err, event)
	}
}

// An oldLoad is replicas of schema 4 that grant locks until they are refused.
type oldLoad struct {
	t       *testing.T
	running sync.WaitGroup
	granted chan struct{}
	mu      sync.Mutex
	leases  map[string]lock.Lease // the newest of each lock
}

func startOldLoad(t *testing.T, databaseURL string) *oldLoad {
	l := &oldLoad{t: t, granted: make(chan struct{}, 1000), leases: map[string]lock.Lease{}}
	for range 3 {
		r := schema4.NewReplica(t, databaseURL)
		l.running.Go(func() { l.run(t.Context(), r) })
	}
	return l
}

func (l *oldLoad) run(ctx context.Context, r *schema4.Replica) {
	for n := 0; ; n++ {
		lease, _, err := r.Grant(ctx, fmt.Sprintf("jobs:%d", n%20), lock.LeaseID(uuid.New()), time.Hour)
		switch pg := (*pgconn.PgError)(nil); {
		case err == nil:
			l.note(lease)
		case errors.As(err, &pg) && (pg.Code == "55P03" || pg.Code == "40P01"): // waited too long for a lock
		case ctx.Err() != nil: // the test has failed
			return
		case errors.As(err, &pg) && pg.Code == "57P03" && strings.Contains(pg.Message, "start the new release"):
			return
		default:
			l.t.Errorf("a replica of schema 4 failed: %v", err)
			return
		}
	}
}

func (l *oldLoad) note(lease lock.Lease) {
	l.mu.Lock()
	if lease.Token > l.leases[lease.Name].Token {
		l.leases[lease.Name] = lease
	}
	l.mu.Unlock()
	select {
	case l.granted <- struct{}{}:
	default:
	}
}

// await waits until n leases were granted.
func (l *oldLoad) await(n int) {
	for range n {
		<-l.granted
	}
}

// newest returns the newest lease of each lock, once all replicas were refused.
func (l *oldLoad) newest() (all []lock.Lease) {
	for _, lease := range l.leases {
		all = append(all, lease)
	}
	return all
}
