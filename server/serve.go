package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Serve answers the connections that l accepts, until ctx ends. Then it is not
// ready any more; after Options.DrainDelay it ends the streams, calls
// Options.Drain, closes l and lets the requests that run finish. Those that take
// longer than a request may, or 20 s, are told that their time is over. It returns
// nil then, and an error when l fails earlier. A Server is served once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	// What runs when ctx ends is to finish: requests do not live under ctx itself.
	base, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	h := s.httpServer(base)
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	select {
	case err := <-served:
		return errors.Join(fmt.Errorf("serve %v: %w", l.Addr(), err), h.Close())
	case <-ctx.Done():
	}
	s.draining.Store(true)
	select {
	case err := <-served:
		return errors.Join(fmt.Errorf("serve %v: %w", l.Addr(), err), h.Close())
	case <-time.After(s.drainDelay):
	}
	s.stop()
	s.drain()
	err := shutdown(h, min(s.timeout+drainMargin, maxDrain))
	if err != nil {
		s.log.Warn("requests are cut off at the end", "error", err)
		end()
		err = shutdown(h, drainMargin)
	}
	if err != nil {
		err = h.Close()
	}
	if last := <-served; !errors.Is(last, http.ErrServerClosed) {
		err = errors.Join(err, last)
	}
	return err
}

func (s *Server) httpServer(base context.Context) *http.Server {
	return &http.Server{
		Handler: s,
		// "OPTIONS *" is no address of this service, and goes the way of all others.
		DisableGeneralOptionsHandler: true,

		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderSize,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxHTTP2Streams, WriteByteTimeout: writeTimeout},
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          log.New(httpErrorLog{s.log}, "", 0),
	}
}

// The httpErrorLog are what net/http has to say of connections. That a handshake failed anybody
// could have it say without end, so it is for those who look for it, at debug level.
type httpErrorLog struct{ log *slog.Logger }

// Write logs one of them.
func (c httpErrorLog) Write(p []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.HasPrefix(p, []byte("http: TLS handshake error")) {
		level = slog.LevelDebug
	}
	c.log.Log(context.Background(), level, "net/http complains", "says", string(bytes.TrimSpace(p)))
	return len(p), nil
}

// shutdown closes the listeners and waits for the requests that run.
func shutdown(h *http.Server, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return h.Shutdown(ctx)
}
