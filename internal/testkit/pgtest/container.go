package pgtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
)

// pullTime is how long Docker may take to get the image and start it.
const pullTime = 5 * time.Minute

// container starts a server in Docker. A daemon may be unable to pull the image, so it tries.
func container(ctx context.Context) (s *server, err error) {
	ctx, cancel := context.WithTimeout(ctx, pullTime)
	defer cancel()
	defer func() {
		if p := recover(); p != nil { // the library panics without Docker
			err = fmt.Errorf("docker: %v", p)
		}
	}()
	c, err := postgres.Run(ctx, image,
		postgres.WithDatabase("paddock"), postgres.WithUsername("paddock"), postgres.WithPassword("paddock"),
		testcontainers.WithCmd("postgres", "-c", "max_connections=200"))
	if err == nil {
		s, err = awaitContainer(ctx, c)
	}
	if err != nil && c != nil {
		err = errors.Join(err, testcontainers.TerminateContainer(c))
	}
	return s, err
}

// awaitContainer waits for the server in c. PostgreSQL starts twice there, and listens on the network only the second
// time.
func awaitContainer(ctx context.Context, c *postgres.PostgresContainer) (*server, error) {
	url, err := c.ConnectionString(ctx, "sslmode=disable")
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			stop := func(ctx context.Context) error {
				return testcontainers.TerminateContainer(c, testcontainers.StopContext(ctx))
			}
			return &server{description: "started a container of " + image, admin: url, stop: stop}, conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the container does not answer: %w", err)
		case <-tick.C:
		}
	}
}
