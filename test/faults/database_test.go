package faults_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/pgserver"
)

// A database is the PostgreSQL server of a deployment. It listens on a socket only,
// and asks for a password there, for lines lead to it from ports that every user of
// this machine can reach.
type database struct {
	host     *pgserver.Host
	password string
	settings []string // further ones, as name=value
}

// maxConnections is how many PostgreSQL takes: enough for three replicas, and few
// enough to be used up by somebody.
const maxConnections = 120

const openToUs, openToPasswords = "local all all trust\n", "local all,replication all scram-sha-256\n"

// newDatabase starts a server with further settings, each as name=value.
func newDatabase(ctx context.Context, settings ...string) (*database, error) {
	host, err := pgserver.NewHost(ctx)
	if err != nil {
		return nil, err
	}
	db := &database{host: host, password: rand.Text(), settings: settings}
	if err := db.initialise(ctx); err != nil {
		return nil, errors.Join(err, host.Close())
	}
	return db, nil
}

func (db *database) initialise(ctx context.Context) error {
	if err := errors.Join(db.host.Initialise(ctx), db.host.WriteFile("hba.conf", openToUs)); err != nil {
		return err
	}
	if err := db.start(ctx); err != nil {
		return err
	}
	for _, statement := range []string{
		"alter role paddock password '" + db.password + "'",
		"create database paddock template postgres",
	} {
		if err := db.once(ctx, "postgres", statement); err != nil {
			return err
		}
	}
	if err := db.host.WriteFile("hba.conf", openToPasswords); err != nil {
		return err
	}
	return db.once(ctx, "postgres", "select pg_reload_conf()")
}

// start starts the server and returns once it takes connections.
func (db *database) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	args := []string{"-c", "listen_addresses=", "-c", "port=5432",
		"-c", "unix_socket_directories=" + `"` + db.host.SocketDir() + `"`,
		"-c", "hba_file=" + db.host.Path("hba.conf"),
		"-c", fmt.Sprint("max_connections=", maxConnections),
		// The log is written when a commit waits for that, and else hardly ever.
		"-c", "wal_writer_delay=10s", "-c", "wal_writer_flush_after=1GB"}
	for _, setting := range db.settings {
		args = append(args, "-c", setting)
	}
	if err := db.host.Launch(ctx, nil, args...); err != nil {
		return err
	}
	return db.answers(ctx)
}

// answers waits until the server takes connections.
func (db *database) answers(ctx context.Context) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		conn, err := db.connect(ctx, "postgres")
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL does not answer: %w\n%s", err, db.host.Said())
		}
		if !db.host.Running() {
			return fmt.Errorf("PostgreSQL has ended: %s", db.host.Said())
		}
	}
}

// connect connects past all lines, as somebody outside of the service.
func (db *database) connect(ctx context.Context, name string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(db.url(url.Values{
		"host": {db.host.SocketDir()}, "port": {"5432"}, "application_name": {"outsider"}, "connect_timeout": {fmt.Sprint(int(stepTimeout.Seconds()))},
	}, "", name))
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config)
}

// once runs a statement.
func (db *database) once(ctx context.Context, name, statement string, args ...any) error {
	conn, err := db.connect(ctx, name)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement, args...)
	return errors.Join(err, conn.Close(ctx))
}

// url returns the connection string of a database on this server.
func (db *database) url(query url.Values, at, name string) string {
	query.Set("sslmode", "disable")
	u := url.URL{Scheme: "postgres", User: url.UserPassword("paddock", db.password), Host: at, Path: "/" + name, RawQuery: query.Encode()}
	return u.String()
}

// socket returns the path of the server's socket.
func (db *database) socket() string { return filepath.Join(db.host.SocketDir(), ".s.PGSQL.5432") }

// killBackend has the kernel kill one of the processes that serve Paddock, the nth,
// upon which PostgreSQL ends all others and recovers.
func (db *database) killBackend(ctx context.Context, n int) (err error) {
	conn, err := db.connect(ctx, "paddock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	rows, err := conn.Query(ctx, "select pid from pg_catalog.pg_stat_activity where application_name = 'paddock' order by pid")
	if err != nil {
		return err
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil || len(pids) == 0 {
		return errors.Join(err, errors.New("no backend serves Paddock"))
	}
	return syscall.Kill(pids[n%len(pids)], syscall.SIGKILL)
}
