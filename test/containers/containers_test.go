package containers_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"

	"github.com/paddock-lock/paddock/internal/testkit/locktest"
	"github.com/paddock-lock/paddock/migrations"
	"github.com/paddock-lock/paddock/store"
)

var image = flag.String("containers.image", "postgres:17", "the image to test with")

// requireDocker is the variable that makes the tests fail where Docker does not run.
const requireDocker = "PADDOCK_REQUIRE_DOCKER"

// startTime is how long Docker may take to get the image and start it.
const startTime = 5 * time.Minute

// TestMain turns off the helper container that removes forgotten containers: it is one more image to fetch, and the
// test removes its container itself.
func TestMain(m *testing.M) {
	if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestOfficialImageConforms(t *testing.T) {
	t.Parallel()
	url := startPostgres(t)
	if err := migrations.Up(t.Context(), url, "", nil); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), url, store.Options{AllowHold: true, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	locktest.Run(t, s)
}

// startPostgres starts the image and returns its database URL.
func startPostgres(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	if err := fetchImage(ctx); err != nil {
		const problem = "the conformance suite does not run on the image %s: %v; start Docker, or name an image that it has " +
			"with -containers.image"
		if os.Getenv(requireDocker) != "" {
			t.Fatalf(problem, *image, err)
		}
		t.Skipf(problem, *image, err)
	}
	c, err := postgres.Run(ctx, *image,
		postgres.WithDatabase("paddock"), postgres.WithUsername("paddock"), postgres.WithPassword("paddock"),
		testcontainers.WithCmd("postgres", "-c", "max_connections=200"))
	testcontainers.CleanupContainer(t, c)
	if err != nil {
		t.Fatal(err)
	}
	port, err := c.MappedPort(ctx, "5432/tcp")
	if err != nil {
		t.Fatal(err)
	}
	host, err := c.Host(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// In a container the library takes the gateway for Docker's host, though Docker may run beside the tests.
	return awaitPostgres(ctx, t, databaseURL(host, port.Port()), databaseURL("localhost", port.Port()))
}

// databaseURL limits the time to connect: Docker may accept a connection before PostgreSQL does, and not answer it.
func databaseURL(host, port string) string {
	return "postgres://paddock:paddock@" + net.JoinHostPort(host, port) + "/paddock?sslmode=disable&connect_timeout=2"
}

// fetchImage makes sure that Docker runs and has the image.
func fetchImage(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil { // the library panics where it finds no Docker
			err = fmt.Errorf("docker: %v", p)
		}
	}()
	docker, err := testcontainers.NewDockerProvider()
	if err != nil {
		return err
	}
	if err := docker.Health(ctx); err != nil {
		return err
	}
	if _, err := docker.Client().ImageInspect(ctx, *image); err == nil {
		return nil
	}
	return docker.PullImage(ctx, *image)
}

// awaitPostgres waits for the server and returns the first URL at which it answers. PostgreSQL starts twice there, and
// listens on the network only the second time.
func awaitPostgres(ctx context.Context, t *testing.T, urls ...string) string {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		var failures []error
		for _, url := range urls {
			conn, err := pgx.Connect(ctx, url)
			if err == nil {
				err = conn.Close(ctx)
			}
			if err == nil {
				return url
			}
			failures = append(failures, err)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the container does not answer: %v", errors.Join(failures...))
		case <-tick.C:
		}
	}
}
