//go:build unix

package pgserver

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
)

// superuser is the one role of a private server.
const superuser = "paddock"

func (o Options) env(name string) (value string, ok bool) {
	if o.Env == nil {
		return os.LookupEnv(name)
	}
	return o.Env(name)
}

// A Server is a private PostgreSQL server. Its methods are safe for concurrent use.
type Server struct {
	opts    Options
	bin     string
	dataDir *dataDir

	mu      sync.Mutex
	process *process
	version string
	stopped bool
}

// startServer starts a server on a claimed directory, which it initialises if necessary.
func startServer(ctx context.Context, d *dataDir, bin string, opts Options) (*Server, error) {
	s := &Server{opts: opts, bin: bin, dataDir: d}
	major, err := d.major()
	if err == nil && major == "" {
		initialise := d.initialise
		if opts.Cached {
			initialise = d.initialiseCached
		}
		err = initialise(ctx, bin)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.dir, err)
	}
	if err := s.launch(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// URL returns the connection string of a database of this server. It depends only on Dir.
func (s *Server) URL(database string) string {
	// PostgreSQL does not decode a plus sign as a space.
	host := strings.ReplaceAll(url.QueryEscape(s.dataDir.socketDir()), "+", "%20")
	u := url.URL{
		Scheme:   "postgres",
		User:     url.User(superuser),
		Path:     "/" + database,
		RawQuery: "host=" + host + "&port=5432&sslmode=disable",
	}
	return u.String()
}

// Version returns the server's version, such as 17.2.
func (s *Server) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Dir returns the absolute path of the server's directory.
func (s *Server) Dir() string { return s.dataDir.dir }

// Data returns the same as Dir.
func (s *Server) Data() string { return s.dataDir.dir }

// Done returns a channel that is closed when the server has ended for any reason. Restart replaces it.
func (s *Server) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process.exited
}
