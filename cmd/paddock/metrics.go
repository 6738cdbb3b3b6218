package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/paddock-lock/paddock/internal/wire"
)

const (
	// metricsTimeout bounds the request and the answer of a scrape.
	metricsTimeout = 10 * time.Second
	// metricsIdle is how long a connection may be idle between two scrapes.
	metricsIdle = 5 * time.Minute
)

// A metricsServer serves the metrics on --metrics-listen. It is nil without that flag.
type metricsServer struct {
	http     http.Server
	listener net.Listener
}

const metricsFlag = "--metrics-listen"

// metricsAddress returns the checked address of --metrics-listen, empty without the flag. An empty host means
// loopback, since the metrics need no key there.
func (s settings) metricsAddress(ctx context.Context) (string, error) {
	address := s.MetricsListen
	if address == "" {
		return "", nil
	}
	if host, port, err := net.SplitHostPort(address); err == nil && host == "" {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	return checkAddress(ctx, metricsFlag, address, true)
}

// bindMetrics listens on --metrics-listen. It returns nil without the flag.
func (s settings) bindMetrics(ctx context.Context) (*metricsServer, error) {
	address, err := s.metricsAddress(ctx)
	if err != nil || address == "" {
		return nil, err
	}
	listener, err := bind(ctx, metricsFlag, address)
	if err != nil {
		return nil, err
	}
	return &metricsServer{listener: listener}, nil
}

// serve answers scrapes in the background, until close.
func (m *metricsServer) serve(metrics http.Handler, log *slog.Logger) {
	if m == nil {
		return
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { // tells paddockAnswers whose address it is
		w.Header().Set(wire.HeaderAPI, wire.APIVersion)
		http.Error(w, "only /metrics is served here", http.StatusNotFound)
	})
	m.http.Handler, m.http.ErrorLog = mux, slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	m.http.ReadTimeout, m.http.WriteTimeout, m.http.IdleTimeout = metricsTimeout, metricsTimeout, metricsIdle
	log.Info("serving metrics", "address", addressOf(m.listener.Addr()))
	go func() {
		if err := m.http.Serve(m.listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics are not served any more", "error", err)
		}
	}()
}

// close ends it. A scrape that is being answered is cut off.
func (m *metricsServer) close() {
	if m != nil {
		_ = m.http.Close()
		_ = m.listener.Close() // unless serve was called, the http.Server does not know it
	}
}
