package waiters

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/row"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }

var (
	connect = pgtest.Connect
	exec    = pgtest.Exec
	number  = pgtest.Number
	until   = await.Until
)

// describe is Hooks.Describe of a process that starts now.
func describe() paddock.ReplicaInfo { return paddock.ReplicaInfo{StartedAt: time.Now()} }

// patience is how long ended waits, on a machine however slow.
const patience = 2 * time.Minute

// An engine decides the commands of several replicas, in memory.
type engine struct {
	mu        sync.Mutex
	locks     map[string]lock.Record
	token     lock.Token
	replicas  lock.Replica   // the newest one
	paused    time.Time      // grants are paused until then
	submitted []lock.Command // everything that was submitted
	// before and after are called for each command, before and after the decision; their error is the answer. Set them
	// before the first command.
	before, after func(lock.Command) error
}

func newEngine() *engine { return &engine{locks: make(map[string]lock.Record)} }

// A replica is a Registry whose commands the engine decides.
type replica struct {
	*Registry
	engine *engine
}

// replica returns a replica without tasks. It is stopped after the test.
func (e *engine) replica(t *testing.T, url string, limit int) *replica {
	t.Helper()
	db := openDB(t, url, slog.New(slog.NewTextHandler(t.Output(), nil)))
	r := &replica{engine: e}
	e.replicas++
	r.Registry = New(db, e.replicas, limit, func(_ context.Context, cmd lock.Command) (*row.Outcome, error) {
		return r.submit(cmd, true)
	})
	return r
}

func openDB(t *testing.T, url string, log *slog.Logger) *database.DB {
	t.Helper()
	db, err := database.Open(t.Context(), database.At(url), "", false, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Stop(); db.Close() })
	return db
}

// submit decides, and tells the promoted waiters if notify is set.
func (r *replica) submit(cmd lock.Command, notify bool) (*row.Outcome, error) {
	e := r.engine
	e.mu.Lock()
	e.submitted = append(e.submitted, cmd)
	e.mu.Unlock()
	if e.before != nil {
		if err := e.before(cmd); err != nil {
			return nil, err
		}
	}
	out := r.decide(cmd, notify)
	if e.after != nil {
		if err := e.after(cmd); err != nil {
			return nil, err
		}
	}
	return out, out.Err
}

func (r *replica) decide(cmd lock.Command, notify bool) *row.Outcome {
	e := r.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	draw := func() lock.Token { e.token++; return e.token }
	v := lock.View{Now: now, Self: r.self, GrantsPausedUntil: e.paused, Tokens: draw}
	for _, name := range cmd.Names() {
		record := e.locks[name]
		record.Name = name
		record.Queue = slices.Clone(record.Queue)
		for i, w := range record.Queue {
			alive := *w
			alive.AliveUntil = now.Add(time.Hour)
			record.Queue[i] = &alive
		}
		v.Locks = append(v.Locks, record)
	}
	out := &row.Outcome{Decision: cmd.Apply(v), Began: now}
	for _, record := range out.Locks {
		e.locks[record.Name] = record
	}
	if out.Queued {
		queue := out.Locks[0].Queue
		out.Place = queue[len(queue)-1].Place
	}
	if notify {
		r.Notify([]*row.Outcome{out})
	}
	return out
}

// lock returns the lock.
func (e *engine) lock(name string) lock.Record {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.locks[name]
}

// leaves returns the Leaves that were submitted.
func (e *engine) leaves() (leaves []lock.Leave) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, cmd := range e.submitted {
		if l, ok := cmd.(lock.Leave); ok {
			leaves = append(leaves, l)
		}
	}
	return leaves
}

// wants returns an Acquire that waits as long as allowed.
func wants(t *testing.T, name, holder string) lock.Acquire {
	t.Helper()
	bounds, err := lock.Bounds{}.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	a := lock.Acquire{Locks: lock.One(name), Holder: holder, LeaseID: lock.LeaseID(uuid.New()), Wait: lock.MaxWait}
	a, err = a.Resolve(bounds)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// An answer is how an Acquire ended.
type answer struct {
	out *row.Outcome
	err error
}

// hold acquires the lock.
func (r *replica) hold(t *testing.T, name string) lock.Lease {
	t.Helper()
	out, err := r.Acquire(t.Context(), new(wants(t, name, "first")))
	if err != nil {
		t.Fatal(err)
	}
	return out.Leases[0]
}

func (r *replica) release(t *testing.T, l lock.Lease) {
	t.Helper()
	if _, err := r.submit(lock.Release{Locks: []string{l.Name}, LeaseID: l.ID}, true); err != nil {
		t.Fatalf("release %s of %s: %v", l.Name, l.Holder, err)
	}
}

// waits starts an Acquire and returns when it has joined the queue.
func (r *replica) waits(ctx context.Context, t *testing.T, a lock.Acquire) <-chan answer {
	t.Helper()
	ended := make(chan answer, 1)
	go func() {
		out, err := r.Acquire(ctx, &a)
		ended <- answer{out, err}
	}()
	until(t, a.Holder+" waits", func() bool {
		queued := func(w *lock.Waiter) bool { return w.Lease.ID == a.LeaseID && w.Attachment != 0 }
		return slices.ContainsFunc(r.engine.lock(a.Locks[0].Name).Queue, queued)
	})
	return ended
}

// ended returns how the call ended.
func ended(t *testing.T, call <-chan answer) answer {
	t.Helper()
	select {
	case a := <-call:
		return a
	case <-time.After(patience):
		t.Fatal("the call waits without end")
		return answer{}
	}
}
