package server_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/server"
)

// certified returns the TLS configurations of a server with HTTP/2 and of its clients. The server sends nothing after
// the handshake of its own accord.
func certified(t *testing.T) (serving, trust *tls.Config) {
	t.Helper()
	made := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(made.Close)
	roots := made.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return &tls.Config{Certificates: made.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}, SessionTicketsDisabled: true},
		&tls.Config{RootCAs: roots, ServerName: "example.com", NextProtos: []string{"h2"}}
}

// secured serves h over TLS and HTTP/2. It returns the address and a client configuration.
func secured(t *testing.T, h *server.Server) (address string, trust *tls.Config) {
	t.Helper()
	serving, trust := certified(t)
	return served(t, h, func(l net.Listener) net.Listener { return tls.NewListener(l, serving) }), trust
}

// served has h serve a port of its own until the end of the test, by the listener that over returns. It returns the
// address.
func served(t *testing.T, h *server.Server, over func(net.Listener) net.Listener) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx, end := context.WithCancel(t.Context())
	go func() { ended <- h.Serve(ctx, over(l)) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// TestIdleStreamOverHTTP2StaysOpen exists because over HTTP/2 a write deadline that passes ends the stream even while
// nothing is written.
func TestIdleStreamOverHTTP2StaysOpen(t *testing.T) {
	t.Parallel()
	serving, trust := certified(t)
	synctest.Test(t, func(t *testing.T) {
		h := new(fakeEvents)
		s, _, end := servePipedTLS(t, server.Options{Locks: &fake{events: h.events}}, serving, trust)
		stream := s.stream("/v1/events/stream", "")
		stream.want(synced("0"))
		time.Sleep((server.WriteTimeout + server.KeepAliveInterval) / 2)
		h.add(1)
		stream.want(news(1))
		stream.close()
		s.client.CloseIdleConnections()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestHTTP2StreamsPerConnectionAreBounded reads the limit from the server's first frame (RFC 9113, sections 3.4 and
// 6.5).
func TestHTTP2StreamsPerConnectionAreBounded(t *testing.T) {
	t.Parallel()
	address, trust := secured(t, server.New(server.Options{}))
	c, err := (&tls.Dialer{Config: trust}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	const settings, maxConcurrentStreams = 4, 3
	if _, err := io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 9)
	if _, err := io.ReadFull(c, head); err != nil || head[3] != settings {
		t.Fatalf("a frame of type %d, %v", head[3], err)
	}
	all := make([]byte, binary.BigEndian.Uint32(append([]byte{0}, head[:3]...)))
	if _, err := io.ReadFull(c, all); err != nil {
		t.Fatal(err)
	}
	for ; len(all) >= 6; all = all[6:] {
		if binary.BigEndian.Uint16(all) == maxConcurrentStreams {
			if got := binary.BigEndian.Uint32(all[2:]); got != server.MaxHTTP2Streams {
				t.Errorf("%d concurrent streams, want %d", got, server.MaxHTTP2Streams)
			}
			return
		}
	}
	t.Error("there is no limit")
}
