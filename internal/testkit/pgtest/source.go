package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/pgserver"
)

const urlVariable = "PADDOCK_TEST_DATABASE_URL"

// A server is where a test process creates its databases.
type server struct {
	description string // for people
	admin       string // connection string of a maintenance database
	persistent  bool   // outlives the test run
	stop        func(context.Context) error
	ended       <-chan struct{} // closed when the server has ended; nil if that cannot be told
	template    func() (name string, err error)

	checked  sync.Once // whether the URLs of databases lead there
	mismatch error     // the outcome

	mu   sync.Mutex
	idle []*pgx.Conn // to the maintenance database
}

// find returns the server of this process: the one that is named, or the one that the processes of a run share.
func find(ctx context.Context) (*server, error) {
	s, err := source(ctx)
	if err != nil {
		return nil, err
	}
	s.template = sync.OnceValues(func() (string, error) { return makeTemplate(ctx, s.admin) })
	return s, nil
}

func source(ctx context.Context) (*server, error) {
	if url := os.Getenv(urlVariable); url != "" {
		return &server{
			description: "using the server of " + urlVariable,
			admin:       url,
			persistent:  true,
			stop:        func(context.Context) error { return nil },
		}, nil
	}
	f, err := openFolder()
	if err != nil {
		return nil, err
	}
	return f.join(ctx)
}

// startOwn starts a server that ends with this process. An installed server that does not start is an error.
func startOwn(ctx context.Context, settings map[string]string) (*server, error) {
	s, err := startPrivate(ctx, settings)
	if !errors.Is(err, pgserver.ErrNotFound) {
		return s, err
	}
	return nil, fmt.Errorf("%w (or set %s)", err, urlVariable)
}

// startPrivate starts a server from the installed programs.
func startPrivate(ctx context.Context, settings map[string]string) (*server, error) {
	s, err := pgserver.Start(ctx, pgserver.Options{Settings: settings, Cached: true})
	if err != nil {
		return nil, err
	}
	return &server{
		description: fmt.Sprintf("private PostgreSQL %s in %s", s.Version(), s.Dir()),
		admin:       s.URL("postgres"),
		stop:        s.Stop,
		ended:       s.Done(),
	}, nil
}
