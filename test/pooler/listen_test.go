package pooler_test

import (
	"io"
	"log/slog"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/internal/testkit/tcpproxy"
	"github.com/paddock-lock/paddock/store"
	"github.com/paddock-lock/paddock/test/internal/pgbouncer"
)

// proxied returns the address of a proxy to the server in the database URL, which may be at a Unix socket.
func proxied(t *testing.T, databaseURL string) string {
	t.Helper()
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	return tcpproxy.NewChanging(t, network, address, func(client io.Writer, server io.Reader) {
		_, _ = io.Copy(client, server) // until either is cut
	}).Address
}

// TestAPoolerThatComesLaterIsNoticed puts a pooler in transaction mode between a store and its
// database, takes it away, and puts it there again.
func TestAPoolerThatComesLaterIsNoticed(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	direct, pooled := proxied(t, databaseURL), proxied(t, pgbouncer.Start(t, databaseURL, "transaction", 20))
	route, log := tcpproxy.New(t, direct), new(proctest.Transcript)
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host, u.RawQuery = route.Address, "sslmode=disable"
	s, err := store.Open(t.Context(), u.String(), store.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	const deaf = `level=ERROR msg="notifications do not arrive; is there a pooler in transaction mode? start with --pooler-mode=transaction"`
	for times := 1; times <= 2; times++ {
		route.Redirect(pooled)
		route.Restore() // closes the connections
		await.Until(t, "the pooler is noticed", func() bool { return log.Count(deaf) == times })
		route.Redirect(direct)
		route.Restore()
		await.Until(t, "the store hears itself", func() bool { return log.Count("notifications resumed") == times })
	}
}
