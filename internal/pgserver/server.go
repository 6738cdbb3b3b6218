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

// Options say where a server keeps its data and how it is set. The zero value
// is a server with PostgreSQL's defaults in a temporary directory.
type Options struct {
	// Dir holds the data directory and what belongs to it; it is made when
	// missing. Empty means a temporary directory, which Stop removes.
	Dir string

	// Database is created at the first start. Empty leaves it at postgres.
	Database string

	// Settings are parameters as in postgresql.conf. Those that say where the
	// server listens are not theirs to change.
	Settings map[string]string

	// Stderr gets the server's log. Where it is nil, the errors of Start alone
	// quote the end of the log.
	Stderr io.Writer
}

// A Server is a private PostgreSQL server. Its methods may be called from
// several goroutines.
type Server struct {
	opts    Options
	bin     string
	dataDir *dataDir

	mu      sync.Mutex
	process *process
	version string
	stopped bool
}

// Start returns a server that accepts connections. ctx bounds the starting,
// not the server's life: there is no other limit, a slow machine may take its
// time. The error wraps ErrNotFound when no server is installed, and ErrInUse
// when a living process has Dir.
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

// open claims the directory and chooses the programs.
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
		err = s.dataDir.initialise(ctx, s.bin)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.dataDir.dir, errors.Join(err, s.dataDir.close()))
	}
	return nil
}

// URL returns the connection string of a database of this server, which stays
// the same for one Dir.
func (s *Server) URL(database string) string {
	// PostgreSQL's URLs know %20 for a space, and no plus sign.
	host := strings.ReplaceAll(url.QueryEscape(s.dataDir.socketDir()), "+", "%20")
	u := url.URL{
		Scheme:   "postgres",
		User:     url.User(superuser),
		Path:     "/" + database,
		RawQuery: "host=" + host + "&port=5432&sslmode=disable",
	}
	return u.String()
}

// Version is the server's version, such as 17.2.
func (s *Server) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Dir is where the server keeps its data, as an absolute path.
func (s *Server) Dir() string { return s.dataDir.dir }

// Done is closed when the server has ended, by whatever cause. After Restart
// there is a new one.
func (s *Server) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process.exited
}
