package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

// ServeHTTP answers the request. It gives it a random id, shown in X-Request-Id, in
// problems and in the log; one that came from outside is not looked at. When the request
// is over it logs a line, which holds nothing of bodies and of the query.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start, path, seen := time.Now(), r.URL.Path, &responseRecorder{ResponseWriter: w}
	q := &request{Context: r.Context(), route: s.routings.Get().(*chi.Context), decoders: &s.decoders, id: [1]string{newRequestID()}}
	q.route.Reset()
	w.Header()["X-Request-Id"] = q.id[:]
	defer func() {
		if level := accessLevel(seen); s.log.Enabled(q, level) {
			s.log.LogAttrs(q, level, "request", seen.logAttrs(q, r.Method, path, start)...)
		}
		s.routings.Put(q.route)
	}()
	s.router.ServeHTTP(seen, r.WithContext(q))
}

// logAttrs returns what the log says of the request.
func (c *responseRecorder) logAttrs(q *request, method, path string, start time.Time) []slog.Attr {
	line := []slog.Attr{
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
		return line[:len(line)-1]
	}
	return line
}

// accessLevel has the log tell which key did what. What nobody answers for is for those who
// look for it: anybody could fill the log, and without keys tens of thousands of lines a second
// would tell no more than the events do. How often bad keys are shown is logged apart, by
// failed, as often as an address may show one.
func accessLevel(seen *responseRecorder) slog.Level {
	if seen.key == "" {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// withRecovery answers a panic with a problem and logs it with its stack. An answer
// that had begun is cut off instead, so that nobody takes it for whole.
func (s *Server) withRecovery(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			fault := recover()
			if fault == nil {
				return
			}
			if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(fault)
			}
			err := &lock.Error{Code: lock.ErrInternal, Cause: fmt.Errorf("panic: %v\n%s", fault, debug.Stack())}
			if seen, ok := w.(*responseRecorder); ok && seen.status != 0 {
				s.logRefusal(r, err, err)
				panic(http.ErrAbortHandler)
			}
			s.refuse(w, r, err)
		}()
		next.ServeHTTP(w, r)
	})
}

// A responseRecorder counts what a handler writes.
type responseRecorder struct {
	http.ResponseWriter
	status int // zero until the answer begins
	bytes  int64
	key    string // the id of the API key that was shown; empty: none that is good
}

// recordKey has the line in the log name the key, by its id.
func recordKey(w http.ResponseWriter, key access.Key) {
	if seen, ok := w.(*responseRecorder); ok {
		seen.key = key.ID
	}
}

// Status returns the status that the answer has in the end.
func (c *responseRecorder) Status() int {
	if c.status == 0 {
		return http.StatusOK // what net/http makes of it
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

// Unwrap lets http.ResponseController reach the connection.
func (c *responseRecorder) Unwrap() http.ResponseWriter { return c.ResponseWriter }
