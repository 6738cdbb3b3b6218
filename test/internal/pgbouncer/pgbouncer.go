//go:build unix

// Package pgbouncer runs a PgBouncer in front of a PostgreSQL. Only tests may import it.
//
// The program is an installed one or is fetched, see package tools. A test that cannot get it fails; it is never
// skipped.
package pgbouncer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/freeport"
	"github.com/paddock-lock/paddock/test/internal/tools"
)

// startTimeout is how long a PgBouncer may take until it accepts connections.
const startTimeout = 30 * time.Second

// Config is the configuration of a PgBouncer.
type Config struct {
	Dir      string   // of its files; only its account can read it
	Port     int      // on 127.0.0.1
	Mode     string   // pool_mode: session or transaction
	PoolSize int      // maximum number of server connections for each database
	Settings []string // further lines of the section pgbouncer
}

// File returns the path of the configuration file.
func (c Config) File() string { return filepath.Join(c.Dir, "pgbouncer.ini") }

// Write writes the configuration of a PgBouncer for the server at databaseURL. Every client gets the role of that
// URL. PgBouncer reads the file at its start and after SIGHUP.
func (c Config) Write(databaseURL string) error {
	server, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`[databases]
* = host=%s port=%d user=%s%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = %d
max_client_conn = 500
server_login_retry = 1
log_connections = 0
log_disconnections = 0
%s
`, quoted(server.Host), server.Port, quoted(server.User), password(server.Password), c.Port, c.Mode, c.PoolSize, strings.Join(c.Settings, "\n"))
	if err := os.WriteFile(c.File(), []byte(text), 0o600); err != nil || os.Geteuid() != 0 {
		return err
	}
	return errors.Join(chown(c.Dir), chown(c.File()))
}

func password(text string) string {
	if text == "" {
		return ""
	}
	return " password=" + quoted(text)
}

func quoted(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }

// account is the user that PgBouncer runs as if the test runs as root.
const account = "postgres"

// chown makes account the owner of a file.
func chown(path string) error {
	u, err := user.Lookup(account)
	if err != nil {
		return err
	}
	uid, errUID := strconv.Atoi(u.Uid)
	gid, errGID := strconv.Atoi(u.Gid)
	return errors.Join(errUID, errGID, os.Chown(path, uid, gid))
}

// Command returns the command that runs a PgBouncer with the configuration in the foreground.
func (c Config) Command() ([]string, error) {
	path, err := tools.Find(context.Background(), "pgbouncer")
	if err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return []string{path, c.File()}, nil
	}
	return []string{
		"setpriv",
		"--reuid=" + account,
		"--regid=" + account,
		"--clear-groups",
		"--pdeathsig=KILL",
		path,
		c.File(),
	}, nil
}

// New returns a Config with its own directory and port. The directory is removed after the test.
func New(t testing.TB, mode string, poolSize int) Config {
	t.Helper()
	c := Config{Dir: t.TempDir(), Mode: mode, PoolSize: poolSize}
	if err := os.Chmod(filepath.Dir(c.Dir), 0o711); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.Port, err = freeport.Find(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c Config) address() string { return freeport.Address(c.Port) }

// Through returns databaseURL with the address of the PgBouncer.
func (c Config) Through(t testing.TB, databaseURL string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = c.address()
	query := u.Query()
	for _, name := range []string{"host", "port"} { // these would override u.Host
		query.Del(name)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// Start runs a PgBouncer in front of the server at databaseURL until the test ends, and returns the URL through it.
func Start(t testing.TB, databaseURL, mode string, poolSize int, settings ...string) string {
	t.Helper()
	c := New(t, mode, poolSize)
	c.Settings = settings
	if err := c.Write(databaseURL); err != nil {
		t.Fatal(err)
	}
	command, err := c.Command()
	if err != nil {
		t.Fatal(err)
	}
	output := &bytes.Buffer{}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
		if t.Failed() {
			t.Logf("PgBouncer logged:\n%s", output)
		}
	})
	if err := c.awaitReady(ended); err != nil {
		t.Fatal(err)
	}
	return c.Through(t, databaseURL)
}

// awaitReady waits until the PgBouncer accepts connections.
func (c Config) awaitReady(ended <-chan struct{}) error {
	timeout := time.After(startTimeout)
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for {
		conn, err := net.Dial("tcp", c.address())
		if err == nil {
			return conn.Close()
		}
		select {
		case <-retry.C:
		case <-ended:
			return errors.New("PgBouncer ended before it accepted connections")
		case <-timeout:
			return fmt.Errorf("PgBouncer does not accept connections: %w", err)
		}
	}
}
