package faults_test

import (
	"errors"
	"io"
	"net"
	"sync"
)

// An entrance is an address that stays the same while what it leads to comes and
// goes, and may be another kind of address: a Unix socket. While there is nothing to
// be reached it hangs up.
type entrance struct {
	address  string // host:port
	listener net.Listener
	all      sync.WaitGroup

	mu      sync.Mutex
	network string
	to      string
	open    map[net.Conn]bool // nil once it is closed
}

func newEntrance() (*entrance, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &entrance{address: listener.Addr().String(), listener: listener, open: map[net.Conn]bool{}}
	e.all.Go(e.serve)
	return e, nil
}

// leadTo has new connections lead to that address; to none if it is empty.
func (e *entrance) leadTo(network, address string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.network, e.to = network, address
}

func (e *entrance) serve() {
	for {
		near, err := e.listener.Accept()
		if err != nil {
			return // it is closed
		}
		e.all.Go(func() { e.admit(near) })
	}
}

func (e *entrance) admit(near net.Conn) {
	defer e.hangUp(near)
	e.mu.Lock()
	network, to := e.network, e.to
	e.mu.Unlock()
	if to == "" {
		return
	}
	far, err := net.Dial(network, to)
	if err != nil {
		return // nobody is there, and the caller learns that from the end of its connection
	}
	defer e.hangUp(far)
	if !e.keep(near, far) {
		return
	}
	var halves sync.WaitGroup
	halves.Go(func() { e.carry(far, near) })
	halves.Go(func() { e.carry(near, far) })
	halves.Wait()
}

// keep has both ends of a connection be closed with the entrance.
func (e *entrance) keep(near, far net.Conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open == nil {
		return false
	}
	e.open[near], e.open[far] = true, true
	return true
}

// carry copies until either side has ended, and ends both.
func (e *entrance) carry(to, from net.Conn) {
	_, _ = io.Copy(to, from) // that it has ended is all there is to know
	e.hangUp(to)
	e.hangUp(from)
}

func (e *entrance) hangUp(c net.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.open, c)
	_ = c.Close() // it may be closed already
}

func (e *entrance) close() error {
	err := e.listener.Close()
	e.mu.Lock()
	for c := range e.open {
		err = errors.Join(err, c.Close())
	}
	e.open = nil
	e.mu.Unlock()
	e.all.Wait()
	return err
}
