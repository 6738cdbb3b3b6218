package faults_test

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// slowEach is the number of slow connections of each kind.
const slowEach = 200

// slowKinds are the ways to keep a connection open while sending as little as possible.
var slowKinds = []struct {
	name   string
	within time.Duration // timeout of the service
	secure bool          // with a TLS handshake
	begin  string        // sent at once; KEY stands for a valid key
	drip   bool          // then send one byte a second
	status int           // of the answer; zero: no answer
}{
	{"nothing at all", 5 * time.Second, false, "", false, 0},
	{"half a handshake", 5 * time.Second, false, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", true, 0},
	{"a handshake and nothing more", 5 * time.Second, true, "", false, 0},
	{"half a header", 5 * time.Second, true, "GET /v1/locks HTTP/1.1\r\nHost: p\r\nX-Slow: ", true, 0},
	{"half a body", 10 * time.Second, true,
		"POST /v1/locks/slow/acquire HTTP/1.1\r\nHost: p\r\nAuthorization: Bearer KEY\r\n" +
			"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", true, http.StatusBadRequest},
}

// slowConns are all slow connections of a flood.
type slowConns struct {
	*securedReplica
	work errgroup.Group // done when the service has closed all

	mu      sync.Mutex
	drips   []net.Conn
	longest []time.Duration // longest time that a connection was open, by kind
}

// openSlow opens slow connections of all kinds.
func (e *securedReplica) openSlow() *slowConns {
	e.t.Helper()
	s := &slowConns{securedReplica: e, longest: make([]time.Duration, len(slowKinds))}
	var opening errgroup.Group
	opening.SetLimit(32)
	for kind := range slowKinds {
		for range slowEach {
			opening.Go(func() error { return s.open(kind) })
		}
	}
	e.must(opening.Wait())
	go s.drip()
	return s
}

func (s *slowConns) open(kind int) (err error) {
	k := slowKinds[kind]
	var c net.Conn
	if k.secure {
		c, err = s.dialTLS("http/1.1")
	} else {
		c, err = s.dial()
	}
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := io.WriteString(c, strings.ReplaceAll(k.begin, "KEY", s.secrets["late"])); err != nil {
		return errors.Join(err, c.Close())
	}
	if k.drip {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drips = append(s.drips, c)
	}
	s.work.Go(func() error {
		err := s.awaitClose(c, k.within+stepTimeout, k.status)
		s.note(kind, time.Since(began))
		if err != nil {
			err = fmt.Errorf("a connection with %s: %w", k.name, err)
		}
		return err
	})
	return nil
}

// awaitClose waits until the service closes the connection, for at most most, and checks that it sent the
// answer first.
func (s *slowConns) awaitClose(c net.Conn, most time.Duration, status int) error {
	defer func() { _ = c.Close() }() // already closed
	if err := c.SetReadDeadline(time.Now().Add(most)); err != nil {
		return err
	}
	text, err := io.ReadAll(c)
	if isTimeout(err) {
		return errors.New("the service does not close it")
	}
	if want := fmt.Sprintf("HTTP/1.1 %d ", status); status != 0 && !strings.HasPrefix(string(text), want) {
		return fmt.Errorf("answered %.300q, want %s", text, want)
	}
	return nil
}

// isTimeout reports whether a connection was still open at its deadline.
func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

func (s *slowConns) note(kind int, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.longest[kind] = max(s.longest[kind], took)
}

// drip sends one byte a second on each connection of a kind that drips, until all are closed.
func (s *slowConns) drip() {
	next := time.NewTicker(time.Second)
	defer next.Stop()
	for len(s.drips) > 0 {
		select {
		case <-next.C:
		case <-s.t.Context().Done():
			return
		}
		s.drips = slices.DeleteFunc(s.drips, func(c net.Conn) bool {
			_, err := io.WriteString(c, "x")
			return err != nil
		})
	}
}

// awaitAllClosed waits until the service has closed all, and logs how long that took.
func (s *slowConns) awaitAllClosed() {
	s.t.Helper()
	s.must(s.work.Wait())
	for i, k := range slowKinds {
		s.t.Logf("connections with %s were closed after at most %v, the timeout is %v", k.name,
			s.longest[i].Round(time.Millisecond), k.within)
	}
}

const (
	unreadEach    = 20      // unread connections of HTTP/1.1, and as many of HTTP/2
	unreadCalls   = 200     // calls on each HTTP/1.1 connection; each answer has about ten kilobytes
	smallBuffer   = 4 << 10 // bytes of the kernel's receive buffer
	settingWindow = 4       // HTTP/2 setting of the initial window of a stream
)

// shrinkReadBuffer makes the kernel buffer little of what is sent to the connection.
func shrinkReadBuffer(c net.Conn) error {
	return c.(*tls.Conn).NetConn().(*net.TCPConn).SetReadBuffer(smallBuffer)
}

// openUnread opens connections that request a lot and never read an answer.
func (e *securedReplica) openUnread() []io.Closer {
	e.t.Helper()
	conns := make([]io.Closer, 2*unreadEach)
	var opening errgroup.Group
	for i := range unreadEach {
		opening.Go(func() (err error) {
			conns[i], err = e.openUnreadConn()
			return err
		})
		opening.Go(func() (err error) {
			conns[unreadEach+i], err = e.openUnreadHTTP2()
			return err
		})
	}
	e.must(opening.Wait())
	return conns
}

func (e *securedReplica) openUnreadConn() (io.Closer, error) {
	c, err := e.httpConn()
	if err != nil {
		return nil, err
	}
	go func() { // until the service stops reading
		_ = c.send(strings.Repeat(e.request(http.MethodGet, "/openapi.yaml", "rude", ""), unreadCalls))
	}()
	return c, shrinkReadBuffer(c.Conn)
}

func (e *securedReplica) openUnreadHTTP2() (io.Closer, error) {
	w, err := e.http2Conn()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	err = w.write(frameSettings, 0, 0, binary.BigEndian.AppendUint32([]byte{0, settingWindow}, wholeWindow))
	w.mu.Unlock()
	err = errors.Join(err, shrinkReadBuffer(w.Conn))
	for range streamsPerConn {
		_, ask := w.open(http.MethodGet, "/openapi.yaml", e.secrets["rude"], "", true)
		err = errors.Join(err, ask)
	}
	return w, err
}
