package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// A proxy is a toxiproxy on which network faults can be injected.
type proxy struct {
	*relay    // forwards to the target
	toxiproxy *toxiproxy.Proxy
}

// A direction is that of the data in a connection.
type direction string

// The directions with toxiproxy's names: from the client, and to the client.
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

// listenAddress returns the proxy's address, host:port.
func (l *proxy) listenAddress() string { return l.toxiproxy.Listen }

func (l *proxy) close() error {
	l.toxiproxy.Stop()
	return l.relay.close()
}

// A toxic is one of toxiproxy's network faults, with its attributes.
type toxic struct {
	kind       string
	direction  direction
	attributes map[string]int
}

// sliced is a toxic that the relay implements. The slicer of toxiproxy may wait forever if a connection ends while it
// is removed. average_size is in bytes.
const sliced = "sliced"

// addToxic adds the toxic to the proxy; the undoFunc removes it.
func (l *proxy) addToxic(x toxic) (undoFunc, error) {
	if x.kind == sliced {
		size := &l.requests
		if x.direction == answers {
			size = &l.answers
		}
		size.Store(int64(x.attributes["average_size"]))
		return func(context.Context) error { size.Store(0); return nil }, nil
	}
	name := x.kind + " of " + string(x.direction)
	described, err := json.Marshal(map[string]any{
		"name": name, "type": x.kind, "stream": string(x.direction), "toxicity": 1, "attributes": x.attributes,
	})
	if err != nil {
		return nil, err
	}
	if _, err := l.toxiproxy.Toxics.AddToxicJson(bytes.NewReader(described)); err != nil {
		return nil, fmt.Errorf("%s on the proxy of %s: %w", name, l.toxiproxy.Name, err)
	}
	return func(ctx context.Context) error { return l.toxiproxy.Toxics.RemoveToxic(ctx, name) }, nil
}

// A relay forwards connections from an address that stays the same to a target that may change, and may be a
// Unix socket. Without a target it closes connections.
type relay struct {
	address  string // host:port
	listener net.Listener
	all      sync.WaitGroup
	requests atomic.Int64 // average size of the pieces, in bytes; zero: as they come
	answers  atomic.Int64

	mu      sync.Mutex
	network string
	target  string
	conns   map[net.Conn]bool // nil once the relay is closed
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

// setTarget sets the target of new connections; an empty address means none.
func (e *relay) setTarget(network, address string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.network, e.target = network, address
}

func (e *relay) serve() {
	for {
		near, err := e.listener.Accept()
		if err != nil {
			return // closed
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
		return // the client sees its connection close
	}
	defer e.closeConn(far)
	if !e.track(near, far) {
		return
	}
	var halves sync.WaitGroup
	halves.Go(func() { e.copy(far, near, &e.requests) })
	halves.Go(func() { e.copy(near, far, &e.answers) })
	halves.Wait()
}

// track registers both connections, which close closes. It reports false if the relay is closed.
func (e *relay) track(near, far net.Conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conns == nil {
		return false
	}
	e.conns[near], e.conns[far] = true, true
	return true
}

// copy copies until either side ends, and closes both.
func (e *relay) copy(to, from net.Conn, size *atomic.Int64) {
	_, _ = io.Copy(slicer{to, size}, from) // the reason does not matter
	e.closeConn(to)
	e.closeConn(from)
}

// A slicer writes pieces of random size, with a pause of up to 0.3 ms before each, unless their average size is zero.
type slicer struct {
	to   io.Writer
	size *atomic.Int64
}

func (s slicer) Write(b []byte) (written int, err error) {
	for len(b) > 0 && err == nil {
		n := len(b)
		if average := int(s.size.Load()); average > 0 {
			n = min(n, 1+rand.IntN(2*average))
			time.Sleep(rand.N(300 * time.Microsecond))
		}
		n, err = s.to.Write(b[:n])
		written, b = written+n, b[n:]
	}
	return written, err
}

// cut closes all connections.
func (e *relay) cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.conns {
		_ = c.Close() // may be closed already
	}
}

func (e *relay) closeConn(c net.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.conns, c)
	_ = c.Close() // may be closed already
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
