package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/paddock-lock/paddock/internal/pgserver"
)

const urlVariable = "PADDOCK_TEST_DATABASE_URL"

// A server is where a test process creates its databases.
type server struct {
	description string // for people
	admin       string // connection string of a maintenance database
	persistent  bool   // outlives the process
	stop        func(context.Context) error
	template    func() (name string, err error)
}

// find returns the first available server. An installed server that does not start is an error.
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
	s, err := startPrivate(ctx)
	if !errors.Is(err, pgserver.ErrNotFound) {
		return s, err
	}
	return nil, fmt.Errorf("%w (or set %s)", err, urlVariable)
}

// startPrivate starts a server from the installed programs.
func startPrivate(ctx context.Context) (*server, error) {
	s, err := pgserver.Start(ctx, pgserver.Options{Settings: settings()})
	if err != nil {
		return nil, err
	}
	return &server{
		description: fmt.Sprintf("started a private PostgreSQL %s in %s", s.Version(), s.Dir()),
		admin:       s.URL("postgres"),
		stop:        s.Stop,
	}, nil
}
