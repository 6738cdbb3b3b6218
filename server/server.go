package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"go.opentelemetry.io/otel/trace"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/observe"
	"github.com/paddock-lock/paddock/internal/wire/request"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// DefaultRequestTimeout is how long the Service may take for a request if Options do not set it.
	DefaultRequestTimeout = 10 * time.Second
	// DefaultMaxStreams bounds the streams open at once.
	DefaultMaxStreams = 2000
	// DefaultStreamsPerKey bounds the streams of one API key.
	DefaultStreamsPerKey = 200
	// MaxBodySize is the greatest size of a request's body, in bytes.
	MaxBodySize = request.MaxBodySize
	// MaxBatchBodySize is the greatest size of a batch's body, in bytes. Each item is limited to MaxBodySize.
	MaxBatchBodySize = 1 << 20
	// MaxWaitBodySize is the greatest size of the body of a call that waits for events, in bytes.
	MaxWaitBodySize = 5 << 18

	bufferSize      = 1 << 10  // of a pooled buffer at first: most bodies and leases fit
	maxLargeBodies  = 64       // bodies over MaxBodySize in memory at once
	maxHeaderSize   = 16 << 10 // bytes of a request's header, as headerSize counts them
	maxHTTP2Streams = 100      // concurrent requests on one HTTP/2 connection

	headerTimeout = 5 * time.Second   // for a request's header to arrive
	readTimeout   = 10 * time.Second  // for the whole request to arrive
	writeTimeout  = 10 * time.Second  // to write the answer, after the Service's time; for each write of a stream
	idleTimeout   = 120 * time.Second // between two requests of a connection
	maxDrain      = 20 * time.Second  // for requests in flight when Serve ends
	drainMargin   = 2 * time.Second   // to shut down: added to the request timeout, and after a cancellation
)

// Options configure a Server. Locks is required, all other fields are optional.
type Options struct {
	// Locks executes every call. If Keys is set, it must check the key in the context, as access.Guard does.
	Locks paddock.Service
	// Keys are the accepted API keys. Nil: every caller may do everything.
	Keys *access.Keyring
	// Attempts limits failed API keys per address. Nil: the default limits.
	Attempts *access.Attempts
	// SecureCookies treats requests that arrive without TLS as if they had TLS: the cookie is Secure, and HSTS is
	// set. Set it behind a proxy that terminates TLS.
	SecureCookies bool
	// Ready returns an error while this replica should receive no requests. The error is logged; callers are told the
	// detail of a *lock.Error, and nothing of others. It is called at most once a second. Nil: ready until shutdown.
	Ready func(context.Context) error
	// Cells returns the databases of a service that has several. It must not take long. Nil: there is one.
	Cells func(context.Context) []paddock.Cell
	// Info returns how the service is: see Info of package store. It must take a few seconds at most. Nil: nothing is
	// known.
	Info func(context.Context) paddock.ServiceInfo
	// Clients counts the clients of the Server. Nil: nothing else needs their number.
	Clients *Clients
	// UI serves paths under /ui/, and gets them with that prefix. Nil: no page. With Keys it must serve a form at
	// /ui/login that posts key and back to the same path.
	UI      http.Handler
	Log     *slog.Logger // nil: no log
	Version Version
	// RequestTimeout is how long the Service may take for a request. Zero: DefaultRequestTimeout.
	RequestTimeout time.Duration
	// MaxStreams limits the open event streams, StreamsPerKey those of one API key. Zero: DefaultMaxStreams and
	// DefaultStreamsPerKey.
	MaxStreams, StreamsPerKey int
	// DrainDelay is how long the Server keeps serving after it stops being ready, so that load balancers notice.
	DrainDelay time.Duration
	// Drain makes the Service answer current and future waiting calls with lock.ErrUnavailable. Serve calls it
	// once, after DrainDelay. It must not block. Nil: Serve waits for these calls as for any other.
	Drain func()
	// Metrics answers GET /metrics. With Keys, it needs a key with the role read for all names. Nil: no such path.
	Metrics http.Handler
	// Observer sees each request. It may be nil.
	Observer observe.Observer
	// Traces receives a span for each request under /v1/, which continues the trace of its traceparent header (W3C
	// Trace Context). Nil: none.
	Traces trace.TracerProvider
	// RequireLocalHost refuses requests whose Host is neither localhost nor an IP address. Set it when every caller on
	// this machine may do everything: through DNS rebinding, a remote page could otherwise send requests here.
	RequireLocalHost bool
	// CORSOrigins are the origins, as CheckOrigin accepts them, whose pages may call the API with an API key of their
	// own. Nil: only pages of this service's origin.
	CORSOrigins []string
}

// A Version identifies the running binary, and the locks that it serves.
type Version struct {
	Version string // empty: "devel"
	Commit  string // empty: omitted
	Go      string // empty: the Go version that built this binary
	Schema  string // of the database, where the locks are; empty: omitted
}

// A Server answers HTTP requests from a paddock.Service. It is an http.Handler, safe for concurrent use. Serve adds the
// connection limits and the graceful shutdown.
type Server struct {
	locks    paddock.Service
	traces   trace.TracerProvider // may be nil
	keys     *access.Keyring
	attempts *access.Attempts
	ready    *readiness
	cells    func(context.Context) []paddock.Cell // may be nil
	info     func(context.Context) paddock.ServiceInfo
	clients  *Clients
	log      *slog.Logger
	version  Version
	timeout  time.Duration
	router   *chi.Mux
	draining atomic.Bool

	buffers  sync.Pool // of *bytes.Buffer, for the bodies of requests and for leases
	routings sync.Pool // of *chi.Context

	drainDelay       time.Duration
	drain            func()
	observer         observe.Observer
	requireLocalHost bool
	hasSignIn        bool // users sign in: Options has both UI and Keys

	secureCookies bool
	headers       []headerField // of every answer
	corsOrigins   map[string]bool

	largeBodies chan struct{} // one value per large body in memory
	streams     *streamLimiter
	feeds       *feeds
	pace        pacer           // of the streams
	stopped     context.Context // stop cancels it to end the streams
	stop        context.CancelFunc
}

// New returns a Server with these options.
func New(o Options) *Server {
	s := &Server{
		locks: o.Locks, keys: o.Keys, attempts: o.Attempts, log: o.Log, version: o.Version, timeout: o.RequestTimeout,
		drainDelay: o.DrainDelay, drain: o.Drain, traces: o.Traces, requireLocalHost: o.RequireLocalHost,
		observer:  cmp.Or(o.Observer, observe.Nothing()),
		hasSignIn: o.UI != nil && o.Keys != nil, secureCookies: o.SecureCookies, headers: defaultHeaders(),
		largeBodies: make(chan struct{}, maxLargeBodies),
		streams:     newStreamLimiter(cmp.Or(o.MaxStreams, DefaultMaxStreams), cmp.Or(o.StreamsPerKey, DefaultStreamsPerKey)),
		pace:        newPacer(), corsOrigins: map[string]bool{},
	}
	for _, origin := range o.CORSOrigins {
		s.corsOrigins[origin] = true
	}
	s.feeds = &feeds{read: s.nextPage, open: map[feedID]*feed{}}
	s.stopped, s.stop = context.WithCancel(context.Background())
	s.buffers.New = func() any { return bytes.NewBuffer(make([]byte, 0, bufferSize)) }
	s.routings.New = func() any { return chi.NewRouteContext() }
	if s.drain == nil {
		s.drain = func() {}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.version.Version == "" {
		s.version.Version = "devel"
	}
	if s.version.Go == "" {
		s.version.Go = runtime.Version()
	}
	if s.attempts == nil {
		s.attempts = access.NewAttempts(0, 0)
	}
	if s.timeout == 0 {
		s.timeout = DefaultRequestTimeout
	}
	s.ready, s.cells, s.info, s.clients = newReadiness(o.Ready, s.timeout), o.Cells, o.Info, cmp.Or(o.Clients, new(Clients))
	if s.info == nil {
		s.info = func(context.Context) paddock.ServiceInfo { return paddock.ServiceInfo{} }
	}
	s.router = s.routes(o.UI, o.Metrics)
	return s
}

// routes returns the router: the operations of openapi.yaml, the metrics and the pages. Each handler may be nil.
func (s *Server) routes(ui, metrics http.Handler) *chi.Mux {
	r := chi.NewRouter()
	r.Use(s.withRecovery, s.withCORS, s.withRelativeAddresses,
		s.withSteps(s.setHeaders, s.limitWriting, checkHeaderSize, s.crossOriginCheck(), s.checkLocalHost, decodePath),
		s.withAuthentication)
	r.NotFound(s.noRoute)
	r.MethodNotAllowed(s.methodNotAllowed)
	r.Group(func(r chi.Router) {
		r.Use(s.withSteps(checkTarget, checkEncoding, checkNoBody))
		s.mountAPI(r)
	})
	if metrics != nil {
		r.With(s.withTimeout, s.withSteps(s.forAll(access.Read))).Method(http.MethodGet, "/metrics", metrics)
	}
	home := "/docs/"
	if ui != nil {
		home = "/ui/"
		r.Get("/ui", redirectTo("/ui/"))
		s.mountSignIn(r, ui)
		r.With(s.withTimeout, s.withSteps(checkEncoding)).Handle("/ui/*", ui)
	}
	r.Get("/", redirectTo(home))
	r.Get("/docs", redirectTo("/docs/"))
	mountDocs(r)
	return r
}

// mountSignIn adds the routes to sign in and out. Without keys there is no sign-in.
func (s *Server) mountSignIn(r chi.Router, ui http.Handler) {
	if s.keys == nil {
		r.Get(signInPath, redirectTo("/ui/"))
		return
	}
	r.With(s.withTimeout).Method(http.MethodGet, signInPath, ui)
	r.With(s.withTimeout, s.withSteps(checkEncoding)).Post(signInPath, s.signIn)
	r.With(s.withTimeout, s.withSteps(checkEncoding)).Post(signOutPath, s.signOut)
}

func (s *Server) noRoute(w http.ResponseWriter, r *http.Request) {
	s.refuse(w, r, ErrNoRoute)
}

// methodNotAllowed lists the path's methods in Allow. chi also calls it, for any path, if the method is unknown to it.
func (s *Server) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	allowed := s.allowed(r)
	if allowed == "" {
		s.noRoute(w, r)
		return
	}
	w.Header().Set("Allow", allowed)
	detail := r.Method + " is not allowed here. Use " + allowed + "."
	s.refuse(w, r, &lock.Error{Code: ErrMethodNotAllowed, Detail: detail})
}

// allowed returns the methods of r's path for an Allow header, or "" if there is no such path.
func (s *Server) allowed(r *http.Request) string {
	path, list := routePath(r), ""
	for _, m := range []struct{ method, listed string }{
		{http.MethodGet, "GET, HEAD"}, {http.MethodPost, "POST"}, {http.MethodPut, "PUT"},
		{http.MethodPatch, "PATCH"}, {http.MethodDelete, "DELETE"},
	} {
		if !s.router.Match(chi.NewRouteContext(), m.method, path) {
			continue
		}
		if list != "" {
			list += ", "
		}
		list += m.listed
	}
	return list
}

// Serve answers connections from l until ctx ends. Then /readyz fails. After DrainDelay, Serve ends the streams, calls
// Options.Drain, closes l and waits for requests in flight. 2 s after the request timeout, or after 20 s if that is
// shorter, it cancels their contexts. It returns nil after a shutdown, and an error if l fails earlier. Call it once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	// Requests in flight outlive ctx, so they get another context.
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
		s.log.Warn("drain timed out; canceling requests", "error", err)
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
		// The router must refuse "OPTIONS *", which net/http would otherwise answer itself.
		DisableGeneralOptionsHandler: true,

		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderSize,
		ConnState:         s.clients.connection,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxHTTP2Streams, WriteByteTimeout: writeTimeout},
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          log.New(httpErrorLog{s.log}, "", 0),
	}
}

// httpErrorLog logs what net/http reports of connections. It logs failed handshakes at Debug, because any client
// could flood the log with them.
type httpErrorLog struct{ log *slog.Logger }

// Write logs one message.
func (c httpErrorLog) Write(p []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.HasPrefix(p, []byte("http: TLS handshake error")) {
		level = slog.LevelDebug
	}
	c.log.Log(context.Background(), level, "net/http error", "error", string(bytes.TrimSpace(p)))
	return len(p), nil
}

// shutdown closes the listeners and waits for requests in flight.
func shutdown(h *http.Server, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return h.Shutdown(ctx)
}
