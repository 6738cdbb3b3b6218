package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
)

// Serve answers the connections that l accepts, until ctx ends. Then it is not
// ready any more, closes l, lets the requests that run finish for up to 10 s,
// ends those that have not, and returns nil. It returns an error when l fails
// earlier. A Server is served once.
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
	err := s.drain(base, h)
	if err != nil {
		s.log.Warn("requests were cut off at the end", "after", drainTimeout, "error", err)
		err = h.Close()
	}
	if last := <-served; !errors.Is(last, http.ErrServerClosed) {
		err = errors.Join(err, last)
	}
	return err
}

func (s *Server) httpServer(base context.Context) *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderSize,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
}

func (s *Server) drain(ctx context.Context, h *http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	return h.Shutdown(ctx)
}
