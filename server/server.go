package server

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// Options say what a Server serves. Locks is needed, the rest may be zero.
type Options struct {
	// Locks is asked by every call. Where there are Keys it checks what the key in
	// the context may do, as access.Guard does.
	Locks lock.Service
	// Keys are those that callers must show; nil: everybody may do anything.
	Keys *access.Keyring
	// Attempts bounds how often an address may show bad keys; nil: the usual bound.
	Attempts *access.Attempts
	// SecureCookies has the page's cookie travel over TLS only, and browsers told to
	// stay with it, although requests come without: for a proxy that ends TLS.
	SecureCookies bool
	// Ready says whether requests should be sent here; nil: as long as the Server
	// is not shutting down. Its error is logged and not shown. It is asked once a
	// second at most.
	Ready func(context.Context) error
	// UI serves the paths that begin with /ui/, and sees them whole. Nil: no page.
	// With Keys it has a form at /ui/login that posts key and back to that address.
	UI      http.Handler
	Log     *slog.Logger // nil: nothing is logged
	Version Version
	// RequestTimeout is how long the Service may take for a request; zero:
	// UsualRequestTimeout.
	RequestTimeout time.Duration
	// MaxStreams is how many streams may be open at once, and StreamsPerKey how many
	// of them with one key; zero: UsualMaxStreams and UsualStreamsPerKey.
	MaxStreams, StreamsPerKey int
	// DrainDelay is for how long the Server goes on, but says that it is not
	// ready, before it ends: the time that a balancer needs to notice.
	DrainDelay time.Duration
	// Drain has the Service answer the calls that wait with lock.ErrUnavailable,
	// now and from now on. Serve calls it once, after the DrainDelay. It must not
	// block. Nil: such calls are waited for as others are.
	Drain func()
	// LocalNames has requests refused whose Host is a name other than localhost.
	// Set it where everybody on this machine may do anything: a web page elsewhere
	// can have its own name lead here, and then its requests pass for local.
	LocalNames bool
}

// A Version says what runs here.
type Version struct {
	Version string // empty: "devel"
	Commit  string // empty: not shown
	Go      string // empty: the version of Go that built this binary
}

// A Server answers HTTP requests by asking a lock.Service. It is an
// http.Handler, safe for concurrent use; Serve adds the limits and the graceful
// end that a handler cannot have.
type Server struct {
	locks    lock.Service
	keys     *access.Keyring
	attempts *access.Attempts
	ready    *readiness
	log      *slog.Logger
	version  Version
	timeout  time.Duration
	router   *chi.Mux
	draining atomic.Bool

	decoders sync.Pool // of *wire.Decoder
	routings sync.Pool // of *chi.Context

	drainDelay time.Duration
	drain      func()
	localNames bool
	hasSignIn  bool // whether there is a page, and readers sign in to it

	secureCookies bool
	headers       []headerField

	batchSlots chan struct{} // has a value for each large batch in memory
	streams    *streamLimiter
	events     *eventCache     // of what streams tell
	stopped    context.Context // ends, by stop, when the streams are to
	stop       context.CancelFunc
}

// New returns a Server that does what o says.
func New(o Options) *Server {
	s := &Server{locks: o.Locks, ready: &readiness{probe: o.Ready, busy: make(chan struct{}, 1)}, log: o.Log, version: o.Version, timeout: o.RequestTimeout,
		drainDelay: o.DrainDelay, drain: o.Drain, localNames: o.LocalNames,
		keys: o.Keys, attempts: o.Attempts, hasSignIn: o.UI != nil && o.Keys != nil, secureCookies: o.SecureCookies, headers: defaultHeaders(),
		batchSlots: make(chan struct{}, maxLargeBatches),
		streams:    newStreamLimiter(cmp.Or(o.MaxStreams, DefaultMaxStreams), cmp.Or(o.StreamsPerKey, DefaultStreamsPerKey)),
		events:     &eventCache{encode: sseEvent}}
	s.stopped, s.stop = context.WithCancel(context.Background())
	s.decoders.New = func() any { return new(wire.Decoder) }
	s.routings.New = func() any { return chi.NewRouteContext() }
	if s.ready.probe == nil {
		s.ready.probe = func(context.Context) error { return nil }
	}
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
	s.ready.timeout = s.timeout
	s.router = s.routes(o.UI)
	return s
}
