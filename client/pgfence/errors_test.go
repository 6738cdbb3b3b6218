package pgfence_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client/pgfence"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

func TestAnUnusableFenceSaysWhatToDo(t *testing.T) {
	t.Parallel()
	stranger := "stranger_" + strings.ToLower(rand.Text())
	for name, c := range map[string]struct {
		before string
		params map[string]string
		want   string
	}{
		"no fence at all": {"", nil, "run paddock fence install"},
		"a fence off the search_path": {
			"create schema s; set search_path = s;" + paddock.InstallFence,
			nil, "put the schema that it is in into the search_path",
		},
		"a schema that was renamed": {
			"create schema s; set search_path = s;" + paddock.InstallFence + "alter schema s rename to t;",
			map[string]string{"search_path": "t"}, "run paddock fence install again",
		},
		"a role without rights": {
			paddock.InstallFence + "create role " + stranger + ";",
			map[string]string{"role": stranger}, "grant it select, insert and update",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := pgxpool.ParseConfig(pgtest.EmptyURL(t))
			if err != nil {
				t.Fatal(err)
			}
			runSQL(t, config.ConnConfig, c.before)
			for key, value := range c.params {
				config.ConnConfig.RuntimeParams[key] = value
			}
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			err = pgfence.Tx(t.Context(), pool, "accounts", 7, func(pgx.Tx) error { return errors.New("begun") })
			if pg := new(pgconn.PgError); err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &pg) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// runSQL runs SQL on a connection, which is closed after the test. A role that it
// makes belongs to the server, and goes with it.
func runSQL(t *testing.T, config *pgx.ConnConfig, sql string) {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

func TestAnUnreachableDatabaseIsAConnectError(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/nothing?connect_timeout=5")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	err = pgfence.Tx(t.Context(), pool, "accounts", 7, func(pgx.Tx) error { return nil })
	if refused := new(pgconn.ConnectError); !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}
