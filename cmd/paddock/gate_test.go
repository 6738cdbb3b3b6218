package main

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// A gateMode is what a gate does with connections.
type gateMode int

const (
	gateOpen   gateMode = iota // all goes through
	gateClosed                 // they are closed at once
	gateSilent                 // they are taken, and nothing is ever said
	oneWay                     // what is asked goes through; instead of answering it they are closed
)

// A gate is a proxy in front of a service.
type gate struct {
	*testing.T
	listener net.Listener
	to       string
	arrived  chan struct{} // one for each connection, until there are too many to count

	mu    sync.Mutex
	how   gateMode
	conns []net.Conn
}

// newGate returns a gate to the service at base.
func newGate(t *testing.T, base string, how gateMode) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{T: t, listener: listener, to: strings.TrimPrefix(base, "http://"), arrived: make(chan struct{}, 100),
		how: how}
	var stood sync.WaitGroup
	stood.Go(g.serve)
	t.Cleanup(func() {
		mustClose(t, listener)
		g.setMode(gateClosed)
		stood.Wait()
	})
	return g
}

func (g *gate) url() string { return "http://" + g.listener.Addr().String() }

// setMode sets the mode of later connections, and closes the current ones.
func (g *gate) setMode(how gateMode) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.how = how
	for _, c := range g.conns {
		mustClose(g.T, c)
	}
	g.conns = nil
}

// setModeForNew sets the mode of later connections.
func (g *gate) setModeForNew(how gateMode) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.how = how
}

// serve accepts connections until the gate is closed.
func (g *gate) serve() {
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
		passing.Go(func() { g.forward(from, how) })
	}
}

func (g *gate) forward(from net.Conn, how gateMode) {
	defer mustClose(g.T, from)
	switch how {
	case gateClosed:
	case gateSilent:
		_, _ = io.Copy(io.Discard, from) // until it is cut, or the caller has had enough
	default:
		to, err := net.Dial("tcp", g.to)
		if err != nil {
			g.Error(err)
			return
		}
		defer mustClose(g.T, to)
		go func() {
			_, _ = io.Copy(to, from)
			mustClose(g.T, to)
		}()
		if how == oneWay {
			_, _ = to.Read(make([]byte, 1))
		} else {
			_, _ = io.Copy(from, to)
		}
	}
}
