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
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-lock/paddock/lock"
)

// The joins of one noisy client, all within the default limits of a replica.
const (
	joinLocks  = 11
	joinConns  = 110
	joinCalls  = joinConns * streamsPerConn // 9,900: 900 for each lock; the limit is 10,000
	joinWindow = 1400 * time.Millisecond
)

// A joinBurst is many calls that wait for locks which are held.
type joinBurst struct {
	t       *securedReplica
	conns   []*http2Conn
	locks   []string
	wait    time.Duration
	pending atomic.Int64 // unanswered calls

	mu    sync.Mutex
	codes map[lock.Code]int // answers by code
	err   error
}

// newJoinBurst acquires the locks and opens connections to the replicas in turn.
func newJoinBurst(replicas []*securedReplica, prefix string, locks, conns int, wait time.Duration) *joinBurst {
	e := replicas[0]
	e.t.Helper()
	j := &joinBurst{t: e, wait: wait, codes: map[lock.Code]int{}}
	owner := e.client("")
	for i := range locks {
		j.locks = append(j.locks, fmt.Sprintf("%s:%02d", prefix, i))
		_, err := owner.Acquire(e.t.Context(),
			lock.Acquire{Name: j.locks[i], LeaseID: lock.LeaseID(uuid.New()), Holder: "owner", TTL: time.Hour})
		e.must(err)
	}
	for i := range conns {
		w, err := replicas[i%len(replicas)].http2Conn()
		e.must(err)
		j.conns = append(j.conns, w)
		e.t.Cleanup(func() { _ = w.Close() }) // it may be closed
	}
	return j
}

// start sends n calls on each connection; the connections start one after the other within a time. It
// returns when all calls are sent. Answers are counted concurrently.
func (j *joinBurst) start(ctx context.Context, conns []*http2Conn, n int, within time.Duration) error {
	var sending errgroup.Group
	for i, w := range conns {
		j.pending.Add(int64(n))
		go j.countAnswers(w, n)
		sending.Go(func() error {
			if !sleepFor(ctx, within*time.Duration(i)/time.Duration(len(conns))) {
				return context.Cause(ctx)
			}
			return j.send(w, i*n, n)
		})
	}
	return sending.Wait()
}

// send sends n calls in one write: two small writes per call would cost more than the service needs to
// answer.
func (j *joinBurst) send(w *http2Conn, first, n int) error {
	out := &bufferedConn{Conn: w.Conn}
	w.mu.Lock()
	w.Conn = out
	w.mu.Unlock()
	for i := range n {
		name := j.locks[(first+i)%len(j.locks)]
		body := fmt.Sprintf(`{"lease_id": "%s", "holder": "joins %d", "wait_ms": %d}`, uuid.New(), first+i,
			j.wait.Milliseconds())
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

// A bufferedConn buffers what is written to it.
type bufferedConn struct {
	net.Conn
	text bytes.Buffer
}

func (c *bufferedConn) Write(b []byte) (int, error) { return c.text.Write(b) }

var errAllAnswered = errors.New("all calls are answered")

// countAnswers counts the answers to n calls.
func (j *joinBurst) countAnswers(w *http2Conn, n int) {
	err := w.each(func(_ uint32, body []byte, whole bool) error {
		parsed, err := answer{text: body}.fields()
		if err != nil || !whole {
			return fmt.Errorf("a waiting call is answered %q, complete: %t", body, whole)
		}
		j.mu.Lock()
		j.codes[parsed.Code]++
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

// waiting returns how many calls wait, according to the database.
func (j *joinBurst) waiting() int {
	j.t.t.Helper()
	return j.t.count("select count(*) from paddock.parts where place > 0 and attachment <> 0") // the others are disconnected
}

// awaitWaiting waits until that many calls wait, or until ctx ends, and returns the number.
func (j *joinBurst) awaitWaiting(ctx context.Context, want int, every time.Duration) int {
	j.t.t.Helper()
	for {
		if n := j.waiting(); n >= want || !sleepFor(ctx, every) {
			return n
		}
	}
}

// awaitAnswers waits until every call is answered.
func (j *joinBurst) awaitAnswers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, j.wait+2*stepTimeout)
	defer cancel()
	return retry(ctx, func() error {
		j.mu.Lock()
		defer j.mu.Unlock()
		if n := j.pending.Load(); n > 0 && j.err == nil {
			return fmt.Errorf("%d calls are not answered", n)
		}
		return nil
	})
}

// result returns the answers by code.
func (j *joinBurst) result() (map[lock.Code]int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.codes, j.err
}

// Parameters of TestJoinRateDoesNotDependOnQueueLength.
const (
	rateJoins   = 300 // joins that are measured
	rateRounds  = 2   // the fastest counts, since the machine has other work
	rateWait    = 40 * time.Second
	fewWaiting  = 10
	manyWaiting = 1000
	// minRateShare is the part of the rate that must remain with manyWaiting.
	minRateShare = 0.5
)

// TestJoinRateDoesNotDependOnQueueLength measures how many calls a second join the queue of one lock that has few
// or many waiters. With -faults.noise the second rate must be at least half of the first.
func TestJoinRateDoesNotDependOnQueueLength(t *testing.T) {
	n := &noise{securedReplica: newSecured(t)}
	n.launch(program(t), fmt.Sprint("--max-waiters-per-lock=", manyWaiting+rateJoins))
	few, many := 0.0, 0.0
	for round := range rateRounds {
		few = max(few, n.joinRate(fmt.Sprint("few:", round), fewWaiting))
		many = max(many, n.joinRate(fmt.Sprint("many:", round), manyWaiting))
	}
	t.Logf("joins a second at one lock: %.0f with %d waiters, %.0f with %d: %.2f of the rate", few, fewWaiting, many,
		manyWaiting, many/few)
	if *flagNoise && many < minRateShare*few {
		t.Errorf("with %d waiters the rate of joins is %.2f of that with %d, want at least %.2f", manyWaiting,
			many/few, fewWaiting, minRateShare)
	}
}

// joinRate returns how many calls a second join a queue with that many waiters.
func (n *noise) joinRate(prefix string, waiting int) float64 {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), stepTimeout)
	defer cancel()
	chunks := (waiting + streamsPerConn - 1) / streamsPerConn
	j := newJoinBurst([]*securedReplica{n.securedReplica}, prefix, 1, chunks+rateJoins/streamsPerConn+1, rateWait)
	for i := range chunks {
		n.must(j.start(ctx, j.conns[i:i+1], min(streamsPerConn, waiting-i*streamsPerConn), 0))
	}
	j.awaitWaiting(ctx, waiting, 5*time.Millisecond)
	began := time.Now()
	for i, sent := chunks, 0; sent < rateJoins; i++ {
		some := min(streamsPerConn, rateJoins-sent)
		n.must(j.start(ctx, j.conns[i:i+1], some, 0))
		sent += some
	}
	joined := j.awaitWaiting(ctx, waiting+rateJoins, time.Millisecond)
	took := time.Since(began)
	for _, w := range j.conns {
		_ = w.Close() // removes the calls from the queue
	}
	n.must(retry(ctx, func() error { return checkCount("waiters", j.waiting(), 0) }))
	return float64(joined-waiting) / took.Seconds()
}
