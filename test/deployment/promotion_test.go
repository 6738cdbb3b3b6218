package deployment_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// TestConnectionCutDuringPromotionDoesNotBlockTheQueue releases the lock and cuts the connection of its only waiter
// at about the same time. Either the waiter has received the grant, or the lock is free at once: it is never held,
// for its TTL of an hour, by a client that does not know.
func TestConnectionCutDuringPromotionDoesNotBlockTheQueue(t *testing.T) {
	t.Parallel()
	s := newFixture(t, pgtest.URL(t))
	holder := s.mustAcquire(s.replicas[0], lock.Acquire{Holder: "holder"})
	took, most, received, away := time.Duration(0), 0, 0, map[string]bool{}
	for i := range 100 {
		w := s.dial(s.replicas[i%2], fmt.Sprintf("waiter %d", i+1))
		s.listener.kind(lock.Queued, w.Holder)
		cut := time.AfterFunc(rand.N(2*took+time.Millisecond), w.cut)
		start := time.Now()
		s.release(s.replicas[i/2%2], holder.ID)
		took = (3*took + time.Since(start)) / 4
		if w.hasGrant() {
			received++
			s.release(s.replicas[i%2], w.LeaseID)
		}
		away[w.Holder] = !w.granted
		cut.Stop()
		tries := 0
		holder, tries = s.triesUntilGranted(s.replicas[i/2%2])
		most = max(most, tries)
	}
	s.release(s.replicas[0], holder.ID)
	skipped := func(e lock.Event) bool { return away[e.Holder] }
	s.checkPromotions(s.checkEvents(verify.Rules{Away: skipped, AllowWaiters: true}), received, most)
}

// checkPromotions logs how often each side won the race.
func (s *fixture) checkPromotions(events []lock.Event, received, most int) {
	n := map[lock.Kind]int{}
	for _, e := range events {
		n[e.Kind]++
	}
	s.Logf("%d grants received, %d places ended, %d grants withdrawn; the lock was free after at most %d tries",
		received, n[lock.Dequeued], n[lock.Withdrawn], most)
}

// triesUntilGranted tries every 10 ms, a bounded number of times.
func (s *fixture) triesUntilGranted(via lock.Service) (lock.Grant, int) {
	s.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for try := 1; ; try++ {
		g, err := via.Acquire(s.Context(), s.complete(lock.Acquire{Holder: "holder"}))
		switch {
		case err == nil:
			return g, try
		case !errors.Is(err, lock.ErrHeld) || try == 200:
			s.Fatalf("at try %d: %v", try, err)
		}
		<-again.C
	}
}

// A waitingConn is the connection of a waiting acquire.
type waitingConn struct {
	*fixture
	lock.Acquire
	conn    *net.TCPConn
	done    chan struct{} // closed when nothing more comes
	granted bool          // a grant was received
	err     error
}

// dial sends a waiting acquire to the replica on its own connection.
func (s *fixture) dial(via replica, holder string) *waitingConn {
	s.Helper()
	address := strings.TrimPrefix(via.base, "http://")
	conn, err := net.Dial("tcp", address)
	s.must(err)
	w := &waitingConn{fixture: s, Acquire: s.complete(lock.Acquire{Holder: holder}), conn: conn.(*net.TCPConn),
		done: make(chan struct{})}
	r, err := (&postRequest{fixture: s, Acquire: w.Acquire}).request(via)
	s.must(err)
	s.must(r.Write(conn))
	go func() {
		defer close(w.done)
		w.granted, w.err = readGrant(conn, r)
	}()
	s.Cleanup(func() {
		mustClose(s.T, conn)
		<-w.done
	})
	return w
}

// readGrant reads the answer, and reports whether it arrived and was a grant.
func readGrant(conn net.Conn, r *http.Request) (bool, error) {
	res, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		return false, nil // It was cut off.
	}
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode == http.StatusCreated && !bytes.Contains(body, []byte(`"fencing_token"`)) {
		err = fmt.Errorf("a grant without a token: %s", body)
	}
	return err == nil && res.StatusCode == http.StatusCreated, errors.Join(err, res.Body.Close())
}

// cut closes the sending half of the connection, which the replica notices. What the replica has already sent can
// still be read, so the test knows what the client received.
func (w *waitingConn) cut() {
	if err := w.conn.CloseWrite(); err != nil {
		w.Errorf("cutting a connection: %v", err)
	}
}

// hasGrant waits until the replica closes the connection, and reports whether a grant was received.
func (w *waitingConn) hasGrant() bool {
	w.Helper()
	select {
	case <-w.done:
	case <-time.After(proctest.Patience):
		w.Fatalf("the call of %s was not answered", w.Holder)
	}
	w.must(w.err)
	return w.granted
}
