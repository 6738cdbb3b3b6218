//go:build unix

package pgtest

import (
	"context"
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

// startOwn starts a server that ends with this process. A server that is found and does not start is an error.
func startOwn(ctx context.Context, settings map[string]string) (*server, error) {
	db, err := pgserver.Open(ctx, pgserver.Options{Settings: settings, Cached: true, Otherwise: otherwise})
	if err != nil {
		return nil, err
	}
	return &server{
		description: fmt.Sprintf("private PostgreSQL %s in %s", db.Version(), db.Data()),
		admin:       db.URL("postgres"),
		stop:        db.Stop,
		ended:       db.Done(),
	}, nil
}

// otherwise says how tests take a server that runs elsewhere.
const otherwise = "set " + urlVariable + " to the URL of a server whose role may create databases and roles"
