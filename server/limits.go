package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// What a client and the Service may take.
const (
	// DefaultRequestTimeout is how long the Service may take for a request where
	// Options say nothing else.
	DefaultRequestTimeout = 10 * time.Second
	// DefaultMaxStreams is how many streams may be open at once, and UsualStreamsPerKey
	// how many with one API key, where Options say nothing else.
	DefaultMaxStreams    = 2000
	DefaultStreamsPerKey = 200
	// MaxBodySize is the greatest size of a request's body, in bytes.
	MaxBodySize = wire.MaxBodySize
	// MaxBatchBodySize is that of a batch, in bytes; none of its items is greater than
	// MaxBodySize.
	MaxBatchBodySize = 1 << 20

	maxLargeBatches = 64 // in memory at once: those whose bodies have more than MaxBodySize

	headerTimeout = 5 * time.Second   // for a request's header to arrive
	readTimeout   = 10 * time.Second  // for the whole request to arrive
	writeTimeout  = 10 * time.Second  // for the answer to leave, after the Service's time; in a stream, for what is told at once
	idleTimeout   = 120 * time.Second // between two requests of one connection
	maxDrain      = 20 * time.Second  // for what runs to finish when the Server ends
	drainMargin   = 2 * time.Second   // when the Server ends: beyond a request's time, and for the last answers
	maxHeaderSize = 16 << 10          // of a request's header, in bytes, see headerSize

	streamPage    = 200      // events that a stream asks for at once
	maxStreamText = 64 << 10 // of these, in bytes, that a stream holds until its client has read them; one event at least

	keepAliveInterval = 15 * time.Second // between two signs of life of a stream
	maxStreamAttempts = 3                // of a stream with a Service that is unavailable, before it ends
	streamRetryDelay  = time.Second      // between two of these

	maxHTTP2Streams = 100 // requests in one connection of HTTP/2
)

// withWriteDeadline gives the answer its time to leave, after the Service's. It is a deadline
// of each request rather than the http.Server's, so that a call that waits, and a
// stream, can move it.
func (s *Server) withWriteDeadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.setWriteDeadline(w, r, s.timeout+writeTimeout)
		next.ServeHTTP(w, r)
	})
}

// setWriteDeadline has what is written be lost unless it leaves within the time. Where there
// is no connection, as in a recorder, there is no deadline.
func (s *Server) setWriteDeadline(w http.ResponseWriter, r *http.Request, within time.Duration) {
	err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(within))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.log.WarnContext(r.Context(), "the write deadline was not set", "request_id", requestID(r), "error", err)
	}
}

// withTimeout gives what is behind it the time of the Service, as answer does for the calls
// of the API.
func (s *Server) withTimeout(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// waitContext gives the Service its time beyond what the call waits, and the answer
// its time after that. It returns the context to ask the Service with, which ends
// when the client is gone.
func (s *Server) waitContext(w http.ResponseWriter, r *http.Request, wait time.Duration) (context.Context, context.CancelFunc) {
	limit := s.timeout + min(max(wait, 0), lock.MaxWait)
	if wait > 0 { // else it has its time already, see timed
		s.setWriteDeadline(w, r, limit+writeTimeout)
	}
	return context.WithTimeout(clientContext(r), limit)
}
