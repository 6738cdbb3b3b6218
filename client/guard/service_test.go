package guard_test

import (
	"context"
	"log/slog"
	"net/http/httptest"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/pgserver"
	"github.com/paddock-lock/paddock/migrations"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/store"
)

// service runs what paddock dev runs, for an example, and returns a client of it. It
// panics for want of a test that could fail.
func service() (locks *client.Client, stop func()) {
	ctx := context.Background()
	db, err := pgserver.Start(ctx, pgserver.Options{Database: "paddock"})
	must(err)
	must(migrations.Up(ctx, db.URL("paddock")))
	log := slog.New(slog.DiscardHandler)
	s, err := store.Open(ctx, db.URL("paddock"), store.Options{Log: log})
	must(err)
	web := httptest.NewServer(server.New(server.Options{Locks: s, Ready: s.Ready, Log: log}))
	locks, err = client.New(client.Options{BaseURL: web.URL})
	must(err)
	return locks, func() {
		web.Close()
		s.Close()
		must(db.Stop(ctx))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
