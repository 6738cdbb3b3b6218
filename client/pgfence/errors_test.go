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
	role := "role_" + strings.ToLower(rand.Text())
	for name, c := range map[string]struct {
		before string
		params map[string]string
		want   string
	}{
		"no fence": {"", nil, "run paddock fence install"},
		"a fence outside the search_path": {
			"create schema s; set search_path = s;" + paddock.InstallFence,
			nil, "add the function's schema to the search_path",
		},
		"a renamed schema": {
			"create schema s; set search_path = s;" + paddock.InstallFence + "alter schema s rename to t;",
			map[string]string{"search_path": "t"}, "run paddock fence install again",
		},
		"a role without rights": {
			paddock.InstallFence + "create role " + role + ";",
			map[string]string{"role": role}, "grant it select, insert and update",
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

// runSQL runs SQL on a connection of its own, which is closed after the test. Roles that it creates
// are not dropped; they disappear with the test server.
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
	pool, err := pgxpool.New(t.Context(), "postgres://nouser@127.0.0.1:1/nothing?connect_timeout=5")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	err = pgfence.Tx(t.Context(), pool, "accounts", 7, func(pgx.Tx) error { return nil })
	if refused := new(pgconn.ConnectError); !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}
