package server_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/paddock-lock/paddock/server"
)

// A pipeListener is an in-memory listener for synctest bubbles.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept returns the far end of what Dial returned.
func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close refuses further connections.
func (p *pipeListener) Close() error { p.once.Do(func() { close(p.closed) }); return nil }

// Addr returns a placeholder.
func (p *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// Dial returns a new connection.
func (p *pipeListener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// servePiped serves o in a bubble. The returned function ends Serve and returns its error.
func servePiped(t *testing.T, o server.Options) (harness, *pipeListener, func() error) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	p, served := newPipeListener(), make(chan error, 1)
	go func() { served <- server.New(o).Serve(ctx, p) }()
	transport := &http.Transport{DialContext: p.Dial, DisableKeepAlives: true}
	s := harness{t: t, url: "http://pipe", client: &http.Client{Transport: contract{t, transport}}}
	return s, p, func() error { end(); return <-served }
}
