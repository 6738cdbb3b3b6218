// Package tcpproxy is a TCP line for tests that can be made to swallow what is sent:
// connections stay open, new ones are made, and nothing comes through. That is what
// a dropped route looks like, and what a refused connection does not.
package tcpproxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// A Proxy goes from an address of its own to that of a server.
type Proxy struct {
	// Address is where the line begins, host:port.
	Address string

	to string

	mu          sync.Mutex
	stalled     bool
	accepted    int // how many connections there were
	stalledUpTo int // those up to this one are, for ever
	conns       []net.Conn
}

// New returns a Line to the server at that address, until the test ends.
func New(t testing.TB, to string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Proxy{Address: listener.Addr().String(), to: to}
	var all sync.WaitGroup
	all.Go(func() { l.serve(t, listener, &all) })
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		l.closeAll()
		all.Wait()
	})
	return l
}

func (l *Proxy) serve(t testing.TB, listener net.Listener, all *sync.WaitGroup) {
	for {
		near, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		far, err := net.Dial("tcp", l.to)
		if err != nil {
			t.Logf("the server does not answer: %v", err)
			l.track(near)
			continue
		}
		n := l.track(near, far)
		all.Go(func() { l.copy(n, far, near) })
		all.Go(func() { l.copy(n, near, far) })
	}
}

// track has both ends of a connection be closed at the end, and returns its number.
func (l *Proxy) track(conns ...net.Conn) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, conns...)
	l.accepted++
	return l.accepted
}

// copy copies what comes in on the nth connection while that is whole. An end of
// one side is passed on to the other only then: on a broken line nobody is told.
func (l *Proxy) copy(nth int, to io.WriteCloser, from io.Reader) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if l.isStalled(nth) {
			if err != nil {
				return
			}
			continue
		}
		if _, failed := to.Write(b[:n]); failed != nil || err != nil {
			_ = to.Close() // it is closed again at the end
			return
		}
	}
}

func (l *Proxy) isStalled(nth int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stalled || nth <= l.stalledUpTo
}

// StallExisting has the connections that there are swallow everything for ever, and leaves
// those that come whole, as a balancer does that forgets.
func (l *Proxy) StallExisting() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stalledUpTo = l.accepted
}

// Stall has the line swallow everything from now on.
func (l *Proxy) Stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stalled = true
}

// Restore has the line carry again. Connections of which something was swallowed are
// closed, as routers do.
func (l *Proxy) Restore() {
	l.closeAll()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stalled = false
}

func (l *Proxy) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close() // it may be closed already
	}
	l.conns = nil
}
