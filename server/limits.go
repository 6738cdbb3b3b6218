package server

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// What a client and the Service may take.
const (
	// UsualRequestTimeout is how long the Service may take for a request where
	// Options say nothing else.
	UsualRequestTimeout = 10 * time.Second
	// MaxBodySize is the greatest size of a request's body, in bytes.
	MaxBodySize = 16 << 10

	headerTimeout = 5 * time.Second   // for a request's header to arrive
	readTimeout   = 10 * time.Second  // for the whole request to arrive
	writeTimeout  = 10 * time.Second  // for the answer to leave, after the Service's time
	idleTimeout   = 120 * time.Second // between two requests of one connection
	maxDrain      = 20 * time.Second  // for what runs to finish when the Server ends
	drainMargin   = 2 * time.Second   // when the Server ends: beyond a request's time, and for the last answers
	maxHeaderSize = 16 << 10          // of a request, in bytes
)

// timed gives the answer its time to leave. It is a deadline of each request
// rather than the http.Server's, so that a route which streams can move it. Where
// there is no connection, as in a recorder, there is no deadline.
func (s *Server) timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.timeout + writeTimeout))
		if err != nil && !errors.Is(err, http.ErrNotSupported) {
			s.log.WarnContext(r.Context(), "the write deadline was not set", "request_id", requestID(r), "error", err)
		}
		next.ServeHTTP(w, r)
	})
}

// limited gives the Service its time.
func (s *Server) limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
