package server

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-lock/paddock/lock"
)

// Options say what a Server serves. Locks is needed, the rest may be zero.
type Options struct {
	Locks lock.Service
	// Ready says whether requests should be sent here; nil: as long as the Server
	// is not shutting down. Its error is logged and not shown.
	Ready func(context.Context) error
	// UI serves the paths that begin with /ui/, and sees them whole. Nil: no page.
	UI      http.Handler
	Log     *slog.Logger // nil: nothing is logged
	Version Version
	// RequestTimeout is how long the Service may take for a request; zero:
	// UsualRequestTimeout.
	RequestTimeout time.Duration
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
	ready    func(context.Context) error
	log      *slog.Logger
	version  Version
	timeout  time.Duration
	router   *chi.Mux
	draining atomic.Bool

	drainDelay time.Duration
	drain      func()
	localNames bool

	streams chan struct{}   // has one for each that is open
	stopped context.Context // ends, by stop, when the streams are to
	stop    context.CancelFunc
}

// New returns a Server that does what o says.
func New(o Options) *Server {
	s := &Server{locks: o.Locks, ready: o.Ready, log: o.Log, version: o.Version, timeout: o.RequestTimeout,
		drainDelay: o.DrainDelay, drain: o.Drain, localNames: o.LocalNames, streams: make(chan struct{}, maxStreams)}
	s.stopped, s.stop = context.WithCancel(context.Background())
	if s.ready == nil {
		s.ready = func(context.Context) error { return nil }
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
	if s.timeout == 0 {
		s.timeout = UsualRequestTimeout
	}
	s.router = s.routes(o.UI)
	return s
}

// ServeHTTP answers the request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.router.ServeHTTP(w, r) }
