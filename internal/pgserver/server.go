package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
)

// superuser is the one role of a private server.
const superuser = "paddock"

// Options configure a server. The zero value is a server with PostgreSQL's defaults in a temporary directory.
type Options struct {
	// Dir contains the data directory, and is created if necessary. Empty means a temporary directory, which Stop
	// removes.
	Dir string

	// Database is created at the first start. Empty: only the database postgres exists.
	Database string

	// Settings are parameters as in postgresql.conf. They cannot change where the server listens.
	Settings map[string]string

	// Cached creates the data directory from a copy that is kept in the temporary directory, which is faster than
	// initdb. The servers have the same system identifier. It is meant for tests.
	Cached bool

	// Stderr receives the server's log. If it is nil, only the errors of Start quote the end of the log.
	Stderr io.Writer
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

// Start returns a server that accepts connections. ctx bounds the start, not the life of the server; there is no
// other time limit. The error wraps ErrNotFound if no server is installed, and ErrInUse if another process uses Dir.
func Start(ctx context.Context, opts Options) (*Server, error) {
	s := &Server{opts: opts}
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if err := s.launch(ctx); err != nil {
		return nil, fmt.Errorf("postgres: %w", errors.Join(err, s.dataDir.close()))
	}
	return s, nil
}

// open claims the directory, finds the programs, and creates the data directory if necessary.
func (s *Server) open(ctx context.Context) (err error) {
	dirs := installed(searchDirs())
	if _, err := choose(ctx, dirs, ""); err != nil {
		return err
	}
	if s.opts.Dir == "" {
		s.dataDir, err = openTemporary(ctx)
	} else {
		s.dataDir, err = openDataDir(s.opts.Dir)
	}
	if err != nil {
		return err
	}
	major, err := s.dataDir.major()
	if err == nil {
		s.bin, err = choose(ctx, dirs, major)
	}
	if err == nil && major == "" {
		initialise := s.dataDir.initialise
		if s.opts.Cached {
			initialise = s.dataDir.initialiseCached
		}
		err = initialise(ctx, s.bin)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.dataDir.dir, errors.Join(err, s.dataDir.close()))
	}
	return nil
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

// Done returns a channel that is closed when the server has ended for any reason. Restart replaces it.
func (s *Server) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process.exited
}
