package faults_test

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/client"
)

// A deployment is three replicas on one PostgreSQL, and lines between all that can
// break.
type deployment struct {
	database *database
	replicas []*replica
	meter    *meter         // of what clients are answered
	lulls    chan time.Time // each value begins a lull of the load
}

// replicaVariants are how the replicas differ: in their wall clocks, in how many batches run side
// by side, in whether they hear of each other. Nothing of that may matter.
var replicaVariants = []struct {
	skew  time.Duration
	flags []string
}{
	{0, nil},
	{time.Hour, []string{"--batch-workers=4"}},
	{-time.Hour, []string{"--pooler-mode=transaction"}},
}

// deploy starts all that belongs to a deployment. It is gone when the test is over.
func deploy(t *testing.T, b builds) *deployment {
	t.Helper()
	db, err := newDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cleanup(t, db.host.Close)
	d := &deployment{database: db, meter: &meter{}, lulls: make(chan time.Time)}
	for i, way := range replicaVariants {
		r := &replica{number: i + 1, program: b.normal, skew: way.skew, flags: way.flags, log: &logBuffer{}}
		if r.skew != 0 {
			r.program = b.skewed
		}
		d.newProxies(t, r)
		d.replicas = append(d.replicas, r)
		cleanup(t, r.kill)
	}
	var all sync.WaitGroup
	for _, r := range d.replicas {
		all.Go(func() {
			if err := r.start(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	if all.Wait(); t.Failed() {
		t.FailNow()
	}
	return d
}

// newProxies lays the lines of a replica.
func (d *deployment) newProxies(t *testing.T, r *replica) {
	t.Helper()
	r.clientProxy = startProxy(t, "clients to "+r.String())
	r.databaseProxy = startProxy(t, r.String()+" to PostgreSQL")
	r.databaseProxy.setTarget("unix", d.database.socket())
	r.database = d.database.url(url.Values{}, r.databaseProxy.listenAddress(), "paddock")
}

func startProxy(t *testing.T, from string) *proxy {
	t.Helper()
	l, err := newProxy(from)
	if err != nil {
		t.Fatal(err)
	}
	cleanup(t, l.close)
	return l
}

// cleanup has the test do so when it is over, however it ends.
func cleanup(t *testing.T, do func() error) {
	t.Helper()
	t.Cleanup(func() {
		if err := do(); err != nil {
			t.Error(err)
		}
	})
}

// A replica is a place in the deployment where one process of paddock serve runs
// after the other, always at the same address.
type replica struct {
	number        int // from 1
	program       string
	skew          time.Duration // how far its wall clock is off
	flags         []string      // of paddock serve, besides those that all have
	database      string        // the URL of it
	clientProxy   *proxy        // from its clients to it
	databaseProxy *proxy        // from it to PostgreSQL
	log           *logBuffer    // by all its processes
	process       *child        // nil before the first
}

func (r *replica) String() string { return fmt.Sprint("replica ", r.number) }

// client returns a client that finds the replica at its address.
func (r *replica) client() (*client.Client, error) {
	return client.New(client.Options{BaseURL: "http://" + r.clientProxy.listenAddress()})
}

// start starts a process and returns once it serves.
func (r *replica) start(ctx context.Context) error {
	env := []string{fmt.Sprint(skewVariable, "=", int(r.skew.Seconds())), "PADDOCK_DATABASE_URL=" + r.database}
	args := append([]string{"serve", "--migrate", "--listen", "127.0.0.1:0"}, r.flags...)
	started, err := launch(r.log, env, r.program, args...)
	if err != nil {
		return err
	}
	r.process = started
	at, err := started.awaitOutput(ctx, `"msg":"listening","address":"([^"]+)"`)
	if err != nil {
		return fmt.Errorf("%v: %w", r, err)
	}
	r.clientProxy.setTarget("tcp", at)
	return nil
}

// kill ends the process as a crash does.
func (r *replica) kill() error {
	if r.process == nil {
		return nil
	}
	return r.process.stop(syscall.SIGKILL)
}

// stop tells the process to stop and expects it to end well.
func (r *replica) stop() error {
	err := r.process.stop(syscall.SIGTERM)
	if err != nil {
		return err
	}
	if code := r.process.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%v was told to stop and ended with code %d:\n%s", r, code, r.process.output.bytes())
	}
	return nil
}
