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

// A Line goes from an address of its own to that of a server.
type Line struct {
	// Address is where the line begins, host:port.
	Address string

	to string

	mu       sync.Mutex
	broken   bool
	made     int // how many connections there were
	stranded int // those up to this one are, for ever
	conns    []net.Conn
}

// New returns a Line to the server at that address, until the test ends.
func New(t testing.TB, to string) *Line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Line{Address: listener.Addr().String(), to: to}
	var all sync.WaitGroup
	all.Go(func() { l.serve(t, listener, &all) })
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		l.hangUp()
		all.Wait()
	})
	return l
}

func (l *Line) serve(t testing.TB, listener net.Listener, all *sync.WaitGroup) {
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
			l.keep(near)
			continue
		}
		n := l.keep(near, far)
		all.Go(func() { l.carry(n, far, near) })
		all.Go(func() { l.carry(n, near, far) })
	}
}

// keep has both ends of a connection be closed at the end, and returns its number.
func (l *Line) keep(conns ...net.Conn) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, conns...)
	l.made++
	return l.made
}

// carry copies what comes in on the nth connection while that is whole. An end of
// one side is passed on to the other only then: on a broken line nobody is told.
func (l *Line) carry(nth int, to io.WriteCloser, from io.Reader) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if l.swallows(nth) {
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

func (l *Line) swallows(nth int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken || nth <= l.stranded
}

// Strand has the connections that there are swallow everything for ever, and leaves
// those that come whole, as a balancer does that forgets.
func (l *Line) Strand() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stranded = l.made
}

// Break has the line swallow everything from now on.
func (l *Line) Break() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = true
}

// Mend has the line carry again. Connections of which something was swallowed are
// closed, as routers do.
func (l *Line) Mend() {
	l.hangUp()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = false
}

func (l *Line) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close() // it may be closed already
	}
	l.conns = nil
}
