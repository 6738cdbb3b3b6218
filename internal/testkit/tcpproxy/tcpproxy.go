// Package tcpproxy is a TCP proxy for tests that can stall: connections stay open and new ones are accepted, but all
// data is discarded. So looks a network that drops packets, in contrast to a refused connection.
package tcpproxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// A Proxy forwards connections to a server.
type Proxy struct {
	// Address is where the proxy listens, host:port.
	Address string

	network, to string
	answers     func(client io.Writer, server io.Reader) // forwards what the server sends; nil: unchanged

	mu          sync.Mutex
	stalled     bool
	accepted    int // number of connections
	stalledUpTo int // connections up to this number stay stalled
	conns       []net.Conn
}

// New returns a proxy to the server at the address to. It closes when the test ends.
func New(t testing.TB, to string) *Proxy {
	t.Helper()
	return start(t, &Proxy{network: "tcp", to: to})
}

// NewChanging returns a proxy that forwards what the server sends by calling answers, which may change it and returns
// when either connection ends. It does not stall. The server is at an address of net.Dial.
func NewChanging(t testing.TB, network, to string, answers func(client io.Writer, server io.Reader)) *Proxy {
	t.Helper()
	return start(t, &Proxy{network: network, to: to, answers: answers})
}

func start(t testing.TB, p *Proxy) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.Address = listener.Addr().String()
	var all sync.WaitGroup
	all.Go(func() { p.serve(t, listener, &all) })
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		p.closeAll()
		all.Wait()
	})
	return p
}

func (p *Proxy) serve(t testing.TB, listener net.Listener, all *sync.WaitGroup) {
	for {
		near, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		p.mu.Lock()
		to := p.to
		p.mu.Unlock()
		far, err := net.Dial(p.network, to)
		if err != nil {
			t.Logf("cannot connect to the server: %v", err)
			p.track(near)
			continue
		}
		n := p.track(near, far)
		all.Go(func() { p.copy(n, far, near) })
		all.Go(func() {
			if p.answers == nil {
				p.copy(n, near, far)
				return
			}
			p.answers(near, far)
			_ = near.Close() // it is closed again at the end
		})
	}
}

// track records the connections for closeAll, and returns their number.
func (p *Proxy) track(conns ...net.Conn) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, conns...)
	p.accepted++
	return p.accepted
}

// copy copies data on the nth connection. While the connection is stalled, it discards the data, and does not pass on
// that one side has closed.
func (p *Proxy) copy(nth int, to io.WriteCloser, from io.Reader) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if p.isStalled(nth) {
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

func (p *Proxy) isStalled(nth int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stalled || nth <= p.stalledUpTo
}

// Redirect forwards new connections to another server.
func (p *Proxy) Redirect(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = to
}

// StallExisting stalls the existing connections for good, and forwards new ones, like a load balancer that has lost
// its state.
func (p *Proxy) StallExisting() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalledUpTo = p.accepted
}

// Stall stalls all connections, existing and new.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = true
}

// Restore ends Stall. It closes the existing connections, which have lost data.
func (p *Proxy) Restore() {
	p.closeAll()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = false
}

func (p *Proxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close() // it may be closed already
	}
	p.conns = nil
}
