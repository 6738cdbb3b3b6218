package pgtest

import (
	"context"
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

// find returns the first available server. One that is found and does not start is an error.
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
	return startOwn(ctx)
}

// startOwn starts a server that ends with this process.
func startOwn(ctx context.Context) (*server, error) {
	db, err := pgserver.Open(ctx, pgserver.Options{Settings: settings(), Otherwise: otherwise})
	if err != nil {
		return nil, err
	}
	return &server{
		description: fmt.Sprintf("started a private PostgreSQL %s in %s", db.Version(), db.Data()),
		admin:       db.URL("postgres"),
		stop:        db.Stop,
	}, nil
}

// otherwise says how tests take a server that runs elsewhere.
const otherwise = "set " + urlVariable + " to the URL of a server whose role may create databases and roles"
