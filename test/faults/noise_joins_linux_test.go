package faults_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-lock/paddock/lock"
)

// The joins of one noisy client: all within the limits that a replica has unless flags say otherwise.
const (
	noisyLocks  = 11
	noisyWires  = 110
	noisyJoins  = noisyWires * perWire // 9,900: 900 for each lock, 10,000 may wait
	noisyWithin = 1400 * time.Millisecond
)

// A joining is many calls that wait for locks which are held.
type joining struct {
	t       *exposed
	wires   []*wire
	locks   []string
	wait    time.Duration
	pending atomic.Int64 // calls that are not answered

	mu    sync.Mutex
	codes map[lock.Code]int // what the calls were answered
	err   error
}

// newJoining holds the locks and opens connections to the replicas in turn.
func newJoining(replicas []*exposed, prefix string, locks, wires int, wait time.Duration) *joining {
	e := replicas[0]
	e.t.Helper()
	j := &joining{t: e, wait: wait, codes: map[lock.Code]int{}}
	owner := e.client("")
	for i := range locks {
		j.locks = append(j.locks, fmt.Sprintf("%s:%02d", prefix, i))
		_, err := owner.Acquire(e.t.Context(), lock.Acquire{Name: j.locks[i], LeaseID: lock.LeaseID(uuid.New()), Holder: "owner", TTL: time.Hour})
		e.must(err)
	}
	for i := range wires {
		w, err := replicas[i%len(replicas)].wire()
		e.must(err)
		j.wires = append(j.wires, w)
		e.t.Cleanup(func() { _ = w.Close() }) // it may be closed
	}
	return j
}

// start sends n calls on each of the connections, which begin one after the other within a time.
// It returns when all are sent. Answers are counted meanwhile and later.
func (j *joining) start(ctx context.Context, wires []*wire, n int, within time.Duration) error {
	var sending errgroup.Group
	for i, w := range wires {
		j.pending.Add(int64(n))
		go j.hear(w, n)
		sending.Go(func() error {
			if !passes(ctx, within*time.Duration(i)/time.Duration(len(wires))) {
				return context.Cause(ctx)
			}
			return j.send(w, i*n, n)
		})
	}
	return sending.Wait()
}

// send sends n calls in one piece: two small writes for each call would cost more than the service
// needs to answer.
func (j *joining) send(w *wire, first, n int) error {
	out := &corked{Conn: w.Conn}
	w.mu.Lock()
	w.Conn = out
	w.mu.Unlock()
	for i := range n {
		name := j.locks[(first+i)%len(j.locks)]
		body := fmt.Sprintf(`{"lease_id": "%s", "holder": "joins %d", "wait_ms": %d}`, uuid.New(), first+i, j.wait.Milliseconds())
		if _, err := w.open(http.MethodPost, "/v1/locks/"+name+"/acquire", "", body, true); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Conn = out.Conn
	_, err := out.text.WriteTo(out.Conn)
	return err
}

// A corked connection keeps what is written to it.
type corked struct {
	net.Conn
	text bytes.Buffer
}

func (c *corked) Write(b []byte) (int, error) { return c.text.Write(b) }

var errAllAnswered = errors.New("all calls are answered")

// hear counts the answers to n calls.
func (j *joining) hear(w *wire, n int) {
	err := w.each(func(_ uint32, body []byte, whole bool) error {
		told, err := answer{text: body}.told()
		if err != nil || !whole {
			return fmt.Errorf("a call that waits is answered %q, whole: %t", body, whole)
		}
		j.mu.Lock()
		j.codes[told.Code]++
		j.mu.Unlock()
		j.pending.Add(-1)
		if n--; n == 0 {
			return errAllAnswered
		}
		return nil
	})
	if !errors.Is(err, errAllAnswered) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.err = errors.Join(j.err, err)
	}
}

// waiting returns how many calls wait in queues, as the database has it.
func (j *joining) waiting() int {
	j.t.t.Helper()
	return j.t.count("select count(*) from paddock.waiters")
}

// joined waits until so many calls wait, or until ctx ends, and returns how many do.
func (j *joining) joined(ctx context.Context, want int, every time.Duration) int {
	j.t.t.Helper()
	for {
		if n := j.waiting(); n >= want || !passes(ctx, every) {
			return n
		}
	}
}

// answered waits until every call is answered.
func (j *joining) answered(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, j.wait+2*patience)
	defer cancel()
	return until(ctx, func() error {
		j.mu.Lock()
		defer j.mu.Unlock()
		if n := j.pending.Load(); n > 0 && j.err == nil {
			return fmt.Errorf("%d calls are not answered", n)
		}
		return nil
	})
}

// result returns what the calls were answered.
func (j *joining) result() (map[lock.Code]int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.codes, j.err
}
