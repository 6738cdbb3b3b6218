package main

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// A passage is what becomes of the connections through a gate.
type passage int

const (
	wide   passage = iota // all goes through
	shut                  // they are closed at once
	mute                  // they are taken, and nothing is ever said
	oneWay                // what is asked goes through; instead of answering it they are closed
)

// A gate stands between paddock and a service.
type gate struct {
	*testing.T
	listener net.Listener
	to       string
	arrived  chan struct{} // one for each connection, until there are too many to count

	mu    sync.Mutex
	how   passage
	conns []net.Conn
}

// newGate returns a gate to the service at base.
func newGate(t *testing.T, base string, how passage) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{T: t, listener: listener, to: strings.TrimPrefix(base, "http://"), arrived: make(chan struct{}, 100), how: how}
	var stood sync.WaitGroup
	stood.Go(g.stand)
	t.Cleanup(func() {
		closed(t, listener)
		g.becomes(shut)
		stood.Wait()
	})
	return g
}

func (g *gate) url() string { return "http://" + g.listener.Addr().String() }

// becomes has later connections pass so, and cuts those that there are.
func (g *gate) becomes(how passage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.how = how
	for _, c := range g.conns {
		closed(g.T, c)
	}
	g.conns = nil
}

// next has connections after those that there are pass so.
func (g *gate) next(how passage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.how = how
}

// stand lets connections pass until the gate is closed.
func (g *gate) stand() {
	var passing sync.WaitGroup
	defer passing.Wait()
	for {
		from, err := g.listener.Accept()
		if err != nil {
			return // closed
		}
		g.mu.Lock()
		how := g.how
		g.conns = append(g.conns, from)
		g.mu.Unlock()
		select {
		case g.arrived <- struct{}{}:
		default:
		}
		passing.Go(func() { g.pass(from, how) })
	}
}

func (g *gate) pass(from net.Conn, how passage) {
	defer closed(g.T, from)
	switch how {
	case shut:
	case mute:
		_, _ = io.Copy(io.Discard, from) // until it is cut, or the caller has had enough
	default:
		to, err := net.Dial("tcp", g.to)
		if err != nil {
			g.Error(err)
			return
		}
		defer closed(g.T, to)
		go func() {
			_, _ = io.Copy(to, from)
			closed(g.T, to)
		}()
		if how == oneWay {
			_, _ = to.Read(make([]byte, 1))
		} else {
			_, _ = io.Copy(from, to)
		}
	}
}
