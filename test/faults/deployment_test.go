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

// A deployment is three replicas on one PostgreSQL, with proxies between all components.
type deployment struct {
	database *database
	replicas []*replica
	meter    *meter         // counts answers to clients
	lulls    chan time.Time // each value starts a lull of the workload
}

// replicaVariants are the clocks and flags of the replicas. None of these differences may matter.
var replicaVariants = []struct {
	skew  time.Duration
	flags []string
}{
	{0, nil},
	{time.Hour, []string{"--batch-workers=4"}},
	{-time.Hour, []string{"--pooler-mode=transaction"}},
}

// deploy starts a deployment that ends with the test.
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

// newProxies starts the proxies of a replica.
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

// cleanup calls do when the test ends, and reports its error.
func cleanup(t *testing.T, do func() error) {
	t.Helper()
	t.Cleanup(func() {
		if err := do(); err != nil {
			t.Error(err)
		}
	})
}

// A replica is one of the deployment's replicas: at most one running process of paddock serve at an
// address that stays the same.
type replica struct {
	number        int // from 1
	program       string
	skew          time.Duration // offset of its wall clock
	flags         []string      // additional flags of paddock serve
	database      string        // its URL
	clientProxy   *proxy        // from clients to the replica
	databaseProxy *proxy        // from the replica to PostgreSQL
	log           *logBuffer    // of all its processes
	process       *child        // nil before the first
}

func (r *replica) String() string { return fmt.Sprint("replica ", r.number) }

// client returns a client of the replica's address.
func (r *replica) client() (*client.Client, error) {
	return client.New(client.Options{BaseURL: "http://" + r.clientProxy.listenAddress()})
}

// start starts a process and returns once it serves.
func (r *replica) start(ctx context.Context) error {
	env := []string{fmt.Sprint(skewVariable, "=", int(r.skew.Seconds())), "PADDOCK_DATABASE_URL=" + r.database}
	args := append([]string{"serve", "--migrate", "--allow-hold", "--listen", "127.0.0.1:0"}, r.flags...)
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

// kill kills the process.
func (r *replica) kill() error {
	if r.process == nil {
		return nil
	}
	return r.process.stop(syscall.SIGKILL)
}

// stop terminates the process, which must exit with code 0.
func (r *replica) stop() error {
	err := r.process.stop(syscall.SIGTERM)
	if err != nil {
		return err
	}
	if code := r.process.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%v was terminated and exited with code %d:\n%s", r, code, r.process.output.bytes())
	}
	return nil
}
