package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// ServeHTTP answers the request. It assigns a random request id, shown in X-Request-Id, in problems and in the log; an
// id sent by the client is ignored. It logs one line per request, without bodies and query.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start, path, recorder := time.Now(), r.URL.Path, &responseRecorder{ResponseWriter: w}
	route := s.routings.Get().(*chi.Context)
	ctx, span := s.startSpan(r)
	q := &requestContext{Context: ctx, route: route, buffers: &s.buffers, id: [1]string{newRequestID()}}
	q.route.Reset()
	w.Header()["X-Request-Id"] = q.id[:]
	defer func() {
		endSpan(span, q, r.Method, recorder.Status())
		if level := accessLevel(recorder); s.log.Enabled(q, level) {
			s.log.LogAttrs(q, level, "request", recorder.logAttrs(q, r.Method, path, start)...)
		}
		s.observer.Request(r.Method, q.route.RoutePattern(), recorder.Status(), time.Since(start))
		s.routings.Put(q.route)
	}()
	s.router.ServeHTTP(recorder, r.WithContext(q))
}

// A requestContext is the context of an HTTP request, with the values of all middleware. One context instead of
// several saves copies of the http.Request. It must not refer to the response writer: a timer may keep the context
// alive after the answer.
type requestContext struct {
	context.Context // ends with the connection or the Server; has the key after withAuthentication
	route           *chi.Context
	buffers         *sync.Pool // of *bytes.Buffer, for bodies
	id              [1]string  // the values of the X-Request-Id header
}

type requestContextKey struct{}

// Value returns q for requestContextKey, and q.route for chi, which would otherwise allocate a routing context.
func (q *requestContext) Value(key any) any {
	switch key {
	case requestContextKey{}:
		return q
	case chi.RouteCtxKey:
		return q.route
	}
	return q.Context.Value(key)
}

// requestContextOf returns the requestContext of r, or nil before ServeHTTP has set it.
func requestContextOf(r *http.Request) *requestContext {
	q, _ := r.Context().Value(requestContextKey{}).(*requestContext)
	return q
}

// requestID returns the id that ServeHTTP assigned, or "" before that.
func requestID(r *http.Request) string {
	if q := requestContextOf(r); q != nil {
		return q.id[0]
	}
	return ""
}

// clientContext returns the request's context without the request timeout: it ends when the client disconnects or the
// Server stops.
func clientContext(r *http.Request) context.Context {
	if q := requestContextOf(r); q != nil {
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

// accessLevel returns Info for requests with an API key. It returns Debug for anonymous requests, because any client
// could flood the log. countFailure logs invalid keys, at a limited rate.
func accessLevel(c *responseRecorder) slog.Level {
	if c.key == "" {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// A responseRecorder records the status and size of the answer, and the key, for the access log.
type responseRecorder struct {
	http.ResponseWriter
	status int // zero until the answer begins
	bytes  int64
	key    string // the id of the request's API key; empty: no valid key
}

// recordKey adds the key's id to the access log.
func recordKey(w http.ResponseWriter, key access.Key) {
	for {
		switch c := w.(type) {
		case *responseRecorder:
			c.key = key.ID
			return
		case interface{ Unwrap() http.ResponseWriter }:
			w = c.Unwrap()
		default:
			return
		}
	}
}

// logAttrs returns the attributes of the access log.
func (c *responseRecorder) logAttrs(q *requestContext, method, path string, start time.Time) []slog.Attr {
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

// Unwrap returns the wrapped writer, for http.ResponseController.
func (c *responseRecorder) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// withRecovery answers a panic with a problem and logs it with its stack. If the answer has begun, it closes the
// connection instead, so that the client sees a truncated answer.
func (s *Server) withRecovery(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			reason := recover()
			if reason == nil {
				return
			}
			if err, ok := reason.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(reason)
			}
			err := errPanic(reason)
			if c, ok := w.(*responseRecorder); ok && c.status != 0 {
				s.logRefusal(r, err, err)
				panic(http.ErrAbortHandler)
			}
			s.refuse(w, r, err)
		}()
		next.ServeHTTP(w, r)
	})
}

// errPanic returns the error for a panic with the reason, with the stack of its goroutine.
func errPanic(reason any) *lock.Error {
	return &lock.Error{Code: lock.ErrInternal, Cause: fmt.Errorf("panic: %v\n%s", reason, debug.Stack())}
}

// apiPolicy forbids a browser that shows an API answer to load, run or frame anything. The pages have their own
// policies.
const apiPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// hstsPolicy makes browsers use TLS only, for a year.
const hstsPolicy = "max-age=31536000"

// A headerField has its name in canonical form. The values are shared and must not be changed.
type headerField struct {
	name   string
	values []string
}

// defaultHeaders returns the headers of every answer, which handlers may override. With X-Request-Id and Content-Type
// these are eight, which is how many a map has room for before it grows.
func defaultHeaders() []headerField {
	return []headerField{
		{wire.HeaderAPI, []string{wire.APIVersion}},
		{"Cache-Control", []string{"no-store"}},
		{"X-Content-Type-Options", []string{"nosniff"}},
		{"Content-Security-Policy", []string{apiPolicy}},
		{"Referrer-Policy", []string{"no-referrer"}},
		{"Cross-Origin-Resource-Policy", []string{"same-origin"}},
	}
}

// A step prepares a request or its answer, or returns why the request is refused.
type step func(http.ResponseWriter, *http.Request) error

// withSteps takes the steps in order, up to the first that refuses. One handler for all keeps the stacks of waiting
// calls small.
func (s *Server) withSteps(steps ...step) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, step := range steps {
				if err := step(w, r); err != nil {
					s.refuse(w, r, err)
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// setHeaders sets the default headers and routes HEAD as GET; net/http drops the body. It sets no CORS headers:
// only withCORS lets pages of other origins read answers.
func (s *Server) setHeaders(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	for _, field := range s.headers {
		h[field.name] = field.values
	}
	if s.isSecure(r) {
		h.Set("Cross-Origin-Opener-Policy", "same-origin") // browsers warn about it over plain HTTP
	}
	if s.isSecure(r) && !isLocalName(r.Host) {
		h.Set("Strict-Transport-Security", hstsPolicy) // for localhost it would cover all ports
	}
	if isAmbiguouslyFramed(r) {
		h.Set("Connection", "close")
	}
	if r.Method == http.MethodHead {
		chi.RouteContext(r.Context()).RouteMethod = http.MethodGet
	}
	return nil
}

// isAmbiguouslyFramed reports whether a proxy and net/http may disagree about where the request ends. The bytes after
// it could then be a smuggled request (RFC 9112, section 6.1). r does not show this: net/http drops a Content-Length
// beside Transfer-Encoding, and a Transfer-Encoding in HTTP/1.0. So the result is true for all chunked and HTTP/1.0
// requests.
func isAmbiguouslyFramed(r *http.Request) bool {
	return r.ProtoMajor == 1 && (r.ProtoMinor == 0 || len(r.TransferEncoding) > 0)
}

// limitWriting limits the time to write the answer. It sets a deadline per request, not the http.Server's, so that
// waiting calls and streams can extend it.
func (s *Server) limitWriting(w http.ResponseWriter, r *http.Request) error {
	s.setWriteDeadline(w, r, s.timeout+writeTimeout)
	return nil
}

// setWriteDeadline makes writes fail after this time. It does nothing for a writer without deadlines, as in tests.
func (s *Server) setWriteDeadline(w http.ResponseWriter, r *http.Request, within time.Duration) {
	err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(within))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.log.WarnContext(r.Context(), "cannot set the write deadline", "request_id", requestID(r), "error", err)
	}
}

// withTimeout applies the request timeout to handlers outside the API; answer does so for API calls.
func (s *Server) withTimeout(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// waitContext returns a context for a call that may wait this long. Its timeout is the wait plus the request timeout;
// the write deadline moves accordingly. The context also ends when the client disconnects.
func (s *Server) waitContext(
	w http.ResponseWriter, r *http.Request, wait time.Duration,
) (context.Context, context.CancelFunc) {
	limit := s.timeout + min(max(wait, 0), lock.MaxWait)
	if wait > 0 { // without a wait, limitWriting has set this deadline
		s.setWriteDeadline(w, r, limit+writeTimeout)
	}
	return context.WithTimeout(clientContext(r), limit)
}

// fieldOverhead is the size of an HTTP/2 header field beyond its name and value, in bytes (RFC 9113, section 6.5.2).
const fieldOverhead = 32

// checkHeaderSize refuses a header of more than maxHeaderSize bytes. net/http has its own limit, which bounds memory
// while the header arrives, but is some kilobytes higher.
func checkHeaderSize(_ http.ResponseWriter, r *http.Request) error {
	if headerSize(r) > maxHeaderSize {
		return ErrHeaderTooLarge
	}
	return nil
}

// headerSize returns the size of r's header in bytes. HTTP/1: the request line, the fields and the empty line, without
// optional white space and Transfer-Encoding. HTTP/2: the size of the header list.
func headerSize(r *http.Request) int {
	perField := len(": \r\n")
	size := len(r.Method) + len("  HTTP/1.1\r\n") + len(r.RequestURI) + len("Host: \r\n") + len(r.Host) + len("\r\n")
	if r.ProtoMajor == 2 {
		perField = fieldOverhead
		size = len(":method:scheme:path:authority") + 4*perField +
			len(r.Method) + len("https") + len(r.RequestURI) + len(r.Host)
	}
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value) + perField
		}
	}
	return size
}

// crossOriginCheck returns the step that refuses writes that a browser sends from another site, unless withCORS allows
// its origin. A preflight request is refused, too: withCORS answers those of allowed origins. It has no API key, so an
// answer about the key would mislead.
func (s *Server) crossOriginCheck() step {
	guard := http.NewCrossOriginProtection()
	return func(_ http.ResponseWriter, r *http.Request) error {
		if !s.isAllowedOrigin(r) && (isPreflight(r) || guard.Check(r) != nil) {
			return ErrCrossOrigin
		}
		return nil
	}
}

// checkLocalHost implements Options.RequireLocalHost. The cross-origin check does not stop DNS rebinding: for the
// browser, the attacker's name is the origin of both the page and this service. The health paths tell no secret and
// are for every Host: a check in HTTP/1.0, as of a load balancer, has none.
func (s *Server) checkLocalHost(_ http.ResponseWriter, r *http.Request) error {
	if !s.requireLocalHost || isLocalName(r.Host) || r.URL.Path == livePath || r.URL.Path == readyPath {
		return nil
	}
	return &lock.Error{Code: ErrCrossOrigin, Detail: fmt.Sprintf(
		"This service accepts local requests only, not for the host %q. Use localhost or an IP address.", r.Host)}
}

// isLocalName reports whether the host, with or without a port, is localhost or an IP address.
func isLocalName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost")
}
