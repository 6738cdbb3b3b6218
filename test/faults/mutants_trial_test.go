package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/pgserver"
	"github.com/paddock-lock/paddock/migrations"
	"github.com/paddock-lock/paddock/verify"
	"github.com/paddock-lock/paddock/verify/workload"
)

// An arena is where trials are held, two at a time.
type arena struct {
	server *pgserver.Server
	places chan struct{}
}

func newArena(t *testing.T) *arena {
	t.Helper()
	return &arena{server: newServer(t), places: make(chan struct{}, 2)}
}

// newServer starts a PostgreSQL with a database paddock. It is gone when the test is
// over.
func newServer(t *testing.T) *pgserver.Server {
	t.Helper()
	server, err := pgserver.Start(t.Context(), pgserver.Options{Database: "paddock", Settings: map[string]string{
		"max_connections": "200",
		// The log is written when somebody waits for that, and else hardly ever.
		"wal_writer_delay": "10s", "wal_writer_flush_after": "1GB",
	}})
	if err != nil {
		t.Fatal(err)
	}
	atTheEnd(t, func() error { return server.Stop(context.Background()) })
	if err := migrations.Up(t.Context(), server.URL("paddock")); err != nil {
		t.Fatal(err)
	}
	return server
}

// enter waits for a place until the end of the test.
func (a *arena) enter(t *testing.T) {
	a.places <- struct{}{}
	t.Cleanup(func() { <-a.places })
}

// A manner is how a program is used in a trial.
type manner int

const (
	provoked manner = iota // rows are locked from outside, locks are looked at all the time, and see cross
	crashed                // PostgreSQL crashes
	orderly                // all wait until they are served, so that nobody may be passed over
	restored               // PostgreSQL is put back to a snapshot, and another application writes to it
	bereft                 // the limit on waiters is low, and a replica is killed while calls wait there
)

// A trial is of one program: two replicas on a database of their own.
type trial struct {
	*testing.T
	program     string
	how         manner
	server      *pgserver.Server // to crash, if it is to
	restorable  *restorable      // to restore, if how is restored
	databaseURL string
	services    []workload.Replica
	replicas    []*child
	calls       int   // so far
	unasked     error // the last answer that nothing asks for
}

func (a *arena) trial(t *testing.T, program string, how manner) *trial {
	t.Helper()
	x := &trial{T: t, program: program, how: how}
	switch how {
	case crashed:
		x.server = newServer(t)
		x.databaseURL = x.server.URL("paddock")
	case restored:
		x.restorable = newRestorable(t)
		x.databaseURL = x.restorable.replicaURL()
		x.must(migrations.Up(t.Context(), x.databaseURL))
	default:
		x.databaseURL = a.database(t)
	}
	for range 2 {
		x.start()
	}
	return x
}

// start starts another replica.
func (x *trial) start() {
	x.Helper()
	args := []string{"serve", "--listen", "127.0.0.1:0"}
	if x.how == bereft {
		args = append(args, fmt.Sprintf("--max-waiters-per-lock=%d", fewWaiters))
	}
	c, err := launch(&journal{}, []string{"PADDOCK_DATABASE_URL=" + x.databaseURL}, x.program, args...)
	x.must(err)
	atTheEnd(x.T, func() error { return c.end(syscall.SIGKILL) })
	address, err := c.await(x.Context(), `"msg":"listening","address":"([^"]+)"`)
	x.must(err)
	locks, err := client.New(client.Options{BaseURL: "http://" + address})
	x.must(err)
	x.replicas = append(x.replicas, c)
	x.services = append(x.services, workload.Replica{Via: address, Locks: locks, Stream: workload.StreamOf(locks.Stream)})
}

func (x *trial) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

// database returns the URL of a new database with Paddock's tables.
func (a *arena) database(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("trial_%d", rand.Uint64())
	conn, err := pgx.Connect(t.Context(), a.server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), "create database "+name+" template paddock")
	if err := errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return a.server.URL(name)
}

// restoredRound is how long a round with a restore takes: some load before it, the restore, the time
// in which nothing is granted, and some load after it.
const restoredRound = 7 * time.Second

// callsPerTrial is how many calls there are in a round, about; callsPerCrash is the same
// where PostgreSQL crashes: most of them only try a lock in the lull before that.
const callsPerTrial, callsPerCrash = 1000, 2500

// round has clients use the service while it is provoked, and checks what they were
// told.
func (x *trial) round(number int) verify.Report {
	x.Helper()
	if x.how == restored {
		x.must(x.restorable.snapshot(x.Context()))
	}
	prefix, rec := fmt.Sprintf("trial:%d", number), verify.NewRecorder()
	if x.how == bereft && number > 0 {
		x.replicas, x.services = x.replicas[:1], x.services[:1] // the other is dead
		x.start()
	}
	p := provocation{trial: x, rec: rec, prefix: prefix, lulls: make(chan time.Time)}
	ctx, cancel := context.WithCancel(x.Context())
	defer cancel()
	all, during := errgroup.WithContext(ctx)
	for _, annoy := range p.all() {
		all.Go(func() error { return annoy(during) })
	}
	all.Go(func() error {
		defer cancel()
		o := x.options(prefix, uint64(number))
		o.Lulls = p.lulls
		stats, err := workload.Run(during, rec, o)
		x.calls += stats.Total()
		if err != nil {
			x.Log(err)
			x.unasked = err
		}
		return nil
	})
	x.must(all.Wait())
	h := rec.History()
	if x.how == restored {
		return h.Check(verify.CheckOptions{Restored: true})
	}
	var err error
	h.Events, err = verify.Collect(x.Context(), x.services[0].Locks, prefix+":")
	x.must(err)
	check := verify.CheckOptions{AllowOvertaking: x.how != orderly, AllowWaiters: true}
	if x.how == bereft {
		check.WaitersPerLock = fewWaiters
	}
	return h.Check(check)
}

// options returns how the clients use the service. Of the orderly all use one replica,
// for one that was silent for a while may have its waiters passed over by another.
func (x *trial) options(prefix string, seed uint64) workload.Options {
	o := workload.Options{
		Services: x.services, Prefix: prefix, Clients: 24, Locks: locksPerTrial, Operations: callsPerTrial, For: patience,
		TTL: 200 * time.Millisecond, Seed: seed, Subscribers: true,
	}
	switch x.how {
	case crashed:
		o.Operations = callsPerCrash
	case orderly:
		o.Services, o.NeverCancel = x.services[:1], true
	case restored:
		// Leases outlive the restore, and the load goes on when grants are possible again.
		o.TTL, o.Operations, o.For = workload.DefaultTTL, 0, restoredRound
	case bereft: // long leases, so that clients wait, and names that outlive the places of the dead
		o.AbandonLostWaits, o.Clients, o.Locks, o.Operations, o.TurnsPerName = true, 12, 3, 0, 1_000_000
		o.TTL, o.For, o.Subscribers = 2*time.Second, bereftFor, false
	}
	return o
}
