package noop

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// The lease that every acquire and renewal returns, before and after its token.
const (
	before = `{"name":"distinct-64:017:042","lease_id":"5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11","fencing_token":`
	after  = `,"slot":0,"mode":"exclusive","holder":"bench","ttl_ms":30000,"grace_ms":0,` +
		`"acquired_at":"2026-01-02T03:04:05.678901Z","expires_at":"2026-01-02T03:04:35.678901Z","expires_in_ms":29997}`
)

// Serve serves on the address until the context ends.
func Serve(ctx context.Context, address string) error {
	s := &http.Server{Addr: address, Handler: &handler{}, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })() // ListenAndServe returns
	if err := s.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}

// A handler counts requests for its tokens.
type handler struct{ last atomic.Int64 }

// ServeHTTP reads the request and writes a response like Paddock's.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/release") {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer := append(strconv.AppendInt(append(make([]byte, 0, 512), before...), h.last.Add(1), 10), after...)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	if strings.HasSuffix(r.URL.Path, "/acquire") {
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = w.Write(answer) // fails only if the client has disconnected
}
