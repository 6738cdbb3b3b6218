package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// A proxy is a way through toxiproxy on which things can go wrong.
type proxy struct {
	*relay    // the far end
	toxiproxy *toxiproxy.Proxy
}

// A direction is that of what is sent on a line.
type direction string

// The directions, as toxiproxy calls them: from who dials, and to who dials.
const (
	requests direction = "upstream"
	answers  direction = "downstream"
)

func newProxy(name string) (*proxy, error) {
	far, err := newRelay()
	if err != nil {
		return nil, err
	}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &proxy{relay: far, toxiproxy: toxiproxy.NewProxy(server, name, "127.0.0.1:0", far.address)}
	if err := l.toxiproxy.Start(); err != nil {
		return nil, errors.Join(err, far.close())
	}
	return l, nil
}

// listenAddress returns the address at which the line begins, host:port.
func (l *proxy) listenAddress() string { return l.toxiproxy.Listen }

func (l *proxy) close() error {
	l.toxiproxy.Stop()
	return l.relay.close()
}

// A toxic is what goes wrong on a line: one of toxiproxy's, with its attributes.
type toxic struct {
	kind       string
	direction  direction
	attributes map[string]int
}

// addToxic puts the toxic on the line. The cure takes it away.
func (l *proxy) addToxic(x toxic) (undoFunc, error) {
	name := x.kind + " of " + string(x.direction)
	described, err := json.Marshal(map[string]any{
		"name": name, "type": x.kind, "stream": string(x.direction), "toxicity": 1, "attributes": x.attributes,
	})
	if err != nil {
		return nil, err
	}
	if _, err := l.toxiproxy.Toxics.AddToxicJson(bytes.NewReader(described)); err != nil {
		return nil, fmt.Errorf("%s on the line of %s: %w", name, l.toxiproxy.Name, err)
	}
	return func(ctx context.Context) error { return l.toxiproxy.Toxics.RemoveToxic(ctx, name) }, nil
}

// An relay is an address that stays the same while what it leads to comes and
// goes, and may be another kind of address: a Unix socket. While there is nothing to
// be reached it hangs up.
type relay struct {
	address  string // host:port
	listener net.Listener
	all      sync.WaitGroup

	mu      sync.Mutex
	network string
	target  string
	conns   map[net.Conn]bool // nil once it is closed
}

func newRelay() (*relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &relay{address: listener.Addr().String(), listener: listener, conns: map[net.Conn]bool{}}
	e.all.Go(e.serve)
	return e, nil
}

// setTarget has new connections lead to that address; to none if it is empty.
func (e *relay) setTarget(network, address string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.network, e.target = network, address
}

func (e *relay) serve() {
	for {
		near, err := e.listener.Accept()
		if err != nil {
			return // it is closed
		}
		e.all.Go(func() { e.forward(near) })
	}
}

func (e *relay) forward(near net.Conn) {
	defer e.closeConn(near)
	e.mu.Lock()
	network, to := e.network, e.target
	e.mu.Unlock()
	if to == "" {
		return
	}
	far, err := net.Dial(network, to)
	if err != nil {
		return // nobody is there, and the caller learns that from the end of its connection
	}
	defer e.closeConn(far)
	if !e.track(near, far) {
		return
	}
	var halves sync.WaitGroup
	halves.Go(func() { e.copy(far, near) })
	halves.Go(func() { e.copy(near, far) })
	halves.Wait()
}

// track has both ends of a connection be closed with the entrance.
func (e *relay) track(near, far net.Conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conns == nil {
		return false
	}
	e.conns[near], e.conns[far] = true, true
	return true
}

// copy copies until either side has ended, and ends both.
func (e *relay) copy(to, from net.Conn) {
	_, _ = io.Copy(to, from) // that it has ended is all there is to know
	e.closeConn(to)
	e.closeConn(from)
}

func (e *relay) closeConn(c net.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.conns, c)
	_ = c.Close() // it may be closed already
}

func (e *relay) close() error {
	err := e.listener.Close()
	e.mu.Lock()
	for c := range e.conns {
		err = errors.Join(err, c.Close())
	}
	e.conns = nil
	e.mu.Unlock()
	e.all.Wait()
	return err
}
