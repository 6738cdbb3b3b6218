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

// A database is the PostgreSQL server of a deployment. It listens only on a socket and requires a
// password, because the proxies' ports are open to every user of the machine.
type database struct {
	host     *pgserver.Host
	password string
	settings []string // additional settings, as name=value
}

// maxConnections is PostgreSQL's limit: enough for three replicas, and few enough that an outsider can
// use them up.
const maxConnections = 120

const openToUs, openToPasswords = "local all all trust\n", "local all,replication all scram-sha-256\n"

// newDatabase starts a server with additional settings, each as name=value.
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

// start starts the server and returns once it accepts connections.
func (db *database) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	args := []string{"-c", "listen_addresses=", "-c", "port=5432",
		"-c", "unix_socket_directories=" + `"` + db.host.SocketDir() + `"`,
		"-c", "hba_file=" + db.host.Path("hba.conf"),
		"-c", fmt.Sprint("max_connections=", maxConnections),
		// Write the log only when a commit waits for it.
		"-c", "wal_writer_delay=10s", "-c", "wal_writer_flush_after=1GB"}
	for _, setting := range db.settings {
		args = append(args, "-c", setting)
	}
	if err := db.host.Launch(ctx, nil, args...); err != nil {
		return err
	}
	return db.answers(ctx)
}

// answers waits until the server accepts connections.
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
			return fmt.Errorf("PostgreSQL does not answer: %w\n%s", err, db.host.LogTail())
		}
		if !db.host.Running() {
			return fmt.Errorf("PostgreSQL has ended: %s", db.host.LogTail())
		}
	}
}

// connect connects as a client other than Paddock, without a proxy.
func (db *database) connect(ctx context.Context, name string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(db.url(url.Values{
		"host": {db.host.SocketDir()}, "port": {"5432"}, "application_name": {"outsider"},
		"connect_timeout": {fmt.Sprint(int(stepTimeout.Seconds()))},
	}, "", name))
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config)
}

// once runs one statement on a new connection.
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
	u := url.URL{Scheme: "postgres", User: url.UserPassword("paddock", db.password), Host: at, Path: "/" + name,
		RawQuery: query.Encode()}
	return u.String()
}

// socket returns the path of the server's socket.
func (db *database) socket() string { return filepath.Join(db.host.SocketDir(), ".s.PGSQL.5432") }

// killBackend kills the nth process that serves Paddock. PostgreSQL then ends all others and recovers.
func (db *database) killBackend(ctx context.Context, n int) (err error) {
	conn, err := db.connect(ctx, "paddock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	rows, err := conn.Query(ctx,
		"select pid from pg_catalog.pg_stat_activity where application_name = 'paddock' order by pid")
	if err != nil {
		return err
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil || len(pids) == 0 {
		return errors.Join(err, errors.New("Paddock has no connection"))
	}
	return syscall.Kill(pids[n%len(pids)], syscall.SIGKILL)
}
