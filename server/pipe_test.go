package server_test

import (
	"context"
	"crypto/tls"
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

// dialTLS returns a new connection after the handshake.
func (p *pipeListener) dialTLS(ctx context.Context, trust *tls.Config) (net.Conn, error) {
	plain, err := p.Dial(ctx, "", "")
	if err != nil {
		return nil, err
	}
	c := tls.Client(plain, trust)
	return c, c.HandshakeContext(ctx)
}

// servePiped serves o in a bubble. The returned function ends Serve and returns its error.
func servePiped(t *testing.T, o server.Options) (harness, *pipeListener, func() error) {
	t.Helper()
	return servePipedServer(t, server.New(o))
}

// servePipedServer is servePiped for a given Server.
func servePipedServer(t *testing.T, served *server.Server) (harness, *pipeListener, func() error) {
	t.Helper()
	p := newPipeListener()
	transport := &http.Transport{DialContext: p.Dial, DisableKeepAlives: true}
	s := harness{t: t, url: "http://pipe", client: &http.Client{Transport: contract{t, transport}}}
	return s, p, serveListener(t, served, p)
}

// servePipedTLS is servePiped with TLS and HTTP/2. The caller closes the idle connections of the harness's client.
func servePipedTLS(t *testing.T, o server.Options, serving, trust *tls.Config) (harness, *pipeListener, func() error) {
	t.Helper()
	p := newPipeListener()
	transport := &http.Transport{ForceAttemptHTTP2: true, DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return p.dialTLS(ctx, trust)
	}}
	s := harness{t: t, url: "https://" + trust.ServerName, client: &http.Client{Transport: transport}}
	return s, p, serveListener(t, server.New(o), tls.NewListener(p, serving))
}

func serveListener(t *testing.T, s *server.Server, l net.Listener) func() error {
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	return func() error { end(); return <-served }
}
