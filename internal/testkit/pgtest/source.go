package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/paddock-lock/paddock/internal/pgserver"
)

const (
	urlVariable = "PADDOCK_TEST_DATABASE_URL"
	// image is the newest PostgreSQL that Paddock is tested with.
	image = "postgres:17"
)

// A server is where a test process makes its databases.
type server struct {
	what     string // for people
	admin    string // connection string of a database that is always there
	lasting  bool   // it outlives the process
	stop     func(context.Context) error
	template func() (name string, err error)
}

// find takes the first source there is. An installed server that does not
// start is an error, not a reason to look further.
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
			what:    "using the server of " + urlVariable,
			admin:   url,
			lasting: true,
			stop:    func(context.Context) error { return nil },
		}, nil
	}
	s, err := startPrivate(ctx)
	if !errors.Is(err, pgserver.ErrNotFound) {
		return s, err
	}
	s, errContainer := container(ctx)
	if errContainer != nil {
		return nil, fmt.Errorf("%w (or set %s; and Docker is no way out here: %w)", err, urlVariable, errContainer)
	}
	return s, nil
}

// startPrivate starts a server from the installed programs.
func startPrivate(ctx context.Context) (*server, error) {
	s, err := pgserver.Start(ctx, pgserver.Options{Settings: settings()})
	if err != nil {
		return nil, err
	}
	return &server{
		what:  fmt.Sprintf("started a private PostgreSQL %s in %s", s.Version(), s.Dir()),
		admin: s.URL("postgres"),
		stop:  s.Stop,
	}, nil
}
