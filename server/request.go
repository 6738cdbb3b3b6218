package server

import (
	"context"
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/access"
)

// ServeHTTP answers the request. It assigns a random request id, shown in X-Request-Id, in problems and in the log; an
// id sent by the client is ignored. It logs one line per request, without bodies and query.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start, path, recorder := time.Now(), r.URL.Path, &responseRecorder{ResponseWriter: w}
	route := s.routings.Get().(*chi.Context)
	q := &request{Context: r.Context(), route: route, decoders: &s.decoders, id: [1]string{newRequestID()}}
	q.route.Reset()
	w.Header()["X-Request-Id"] = q.id[:]
	defer func() {
		if level := accessLevel(recorder); s.log.Enabled(q, level) {
			s.log.LogAttrs(q, level, "request", recorder.logAttrs(q, r.Method, path, start)...)
		}
		s.routings.Put(q.route)
	}()
	s.router.ServeHTTP(recorder, r.WithContext(q))
}

// A request is the context of an HTTP request and holds everything known about it. One context instead of several
// saves copies of the http.Request. It has no reference to the response writer, because a timer may keep it alive
// after the answer.
type request struct {
	context.Context // of the client and the Server; with the key once it is known
	route           *chi.Context
	decoders        *sync.Pool // of *wire.Decoder
	id              [1]string  // the values of the X-Request-Id header
}

type requestKey struct{}

// Value returns q for requestKey, and the routing context for chi, which otherwise creates one.
func (q *request) Value(key any) any {
	switch key {
	case requestKey{}:
		return q
	case chi.RouteCtxKey:
		return q.route
	}
	return q.Context.Value(key)
}

// requestOf returns the request that is r's context, or nil before ServeHTTP.
func requestOf(r *http.Request) *request {
	q, _ := r.Context().Value(requestKey{}).(*request)
	return q
}

// requestID returns the id that ServeHTTP assigned, or "" before that.
func requestID(r *http.Request) string {
	if q := requestOf(r); q != nil {
		return q.id[0]
	}
	return ""
}

// clientContext returns the request's context without the request timeout: it ends when the client disconnects or the
// Server stops.
func clientContext(r *http.Request) context.Context {
	if q := requestOf(r); q != nil {
		return q
	}
	return r.Context()
}

// newRequestID returns a random UUID. It is not a secret, so a fast generator is enough.
func newRequestID() string {
	id := uuid.UUID{}
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}

// accessLevel logs requests with an API key at Info. Anonymous requests are logged at Debug, because anyone could
// flood the log. countFailure logs bad keys, at a bounded rate.
func accessLevel(c *responseRecorder) slog.Level {
	if c.key == "" {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// A responseRecorder counts what a handler writes, for the access log.
type responseRecorder struct {
	http.ResponseWriter
	status int // zero until the answer begins
	bytes  int64
	key    string // the id of the request's API key; empty: no valid key
}

// recordKey adds the key's id to the access log.
func recordKey(w http.ResponseWriter, key access.Key) {
	if c, ok := w.(*responseRecorder); ok {
		c.key = key.ID
	}
}

// logAttrs returns the attributes of the access log.
func (c *responseRecorder) logAttrs(q *request, method, path string, start time.Time) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("request_id", q.id[0]),
		slog.String("method", method),
		slog.String("route", q.route.RoutePattern()),
		slog.String("path", path),
		slog.Int("status", c.Status()),
		slog.Int64("bytes", c.bytes),
		slog.Duration("duration", time.Since(start)),
		slog.String("key", c.key),
	}
	if c.key == "" {
		return attrs[:len(attrs)-1]
	}
	return attrs
}

// Status returns the status of the answer, or 200 if the handler has set none.
func (c *responseRecorder) Status() int {
	if c.status == 0 {
		return http.StatusOK
	}
	return c.status
}

func (c *responseRecorder) WriteHeader(status int) {
	if c.status == 0 && status >= http.StatusOK {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *responseRecorder) Write(p []byte) (int, error) {
	c.status = c.Status()
	n, err := c.ResponseWriter.Write(p)
	c.bytes += int64(n)
	return n, err
}

// Unwrap gives http.ResponseController access to the connection.
func (c *responseRecorder) Unwrap() http.ResponseWriter { return c.ResponseWriter }
