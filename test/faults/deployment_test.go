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

// ways are how the replicas differ: in their wall clocks, in how many batches run side
// by side, in whether they hear of each other. Nothing of that may matter.
var ways = []struct {
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
	atTheEnd(t, db.host.Close)
	d := &deployment{database: db, meter: &meter{}, lulls: make(chan time.Time)}
	for i, way := range ways {
		r := &replica{number: i + 1, program: b.usual, skew: way.skew, flags: way.flags, said: &journal{}}
		if r.skew != 0 {
			r.program = b.skewed
		}
		d.connect(t, r)
		d.replicas = append(d.replicas, r)
		atTheEnd(t, r.kill)
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

// connect lays the lines of a replica.
func (d *deployment) connect(t *testing.T, r *replica) {
	t.Helper()
	r.front = layLine(t, "clients to "+r.String())
	r.back = layLine(t, r.String()+" to PostgreSQL")
	r.back.leadTo("unix", d.database.socket())
	r.database = d.database.url(url.Values{}, r.back.near(), "paddock")
}

func layLine(t *testing.T, from string) *line {
	t.Helper()
	l, err := newLine(from)
	if err != nil {
		t.Fatal(err)
	}
	atTheEnd(t, l.close)
	return l
}

// atTheEnd has the test do so when it is over, however it ends.
func atTheEnd(t *testing.T, do func() error) {
	t.Helper()
	t.Cleanup(func() {
		if err := do(); err != nil {
			t.Error(err)
		}
	})
}
