package faults_test

import (
	"net/url"
	"sync"
	"testing"
	"time"
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
