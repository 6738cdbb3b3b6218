// Package pgbouncer runs a PgBouncer in front of a PostgreSQL. Only tests may import it.
//
// It needs the program pgbouncer (Debian: apt-get install pgbouncer). A test that cannot find it
// fails; it is never skipped.
package pgbouncer

import (
	"bytes"
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
)

// startTimeout is how long a PgBouncer may take until it accepts connections.
const startTimeout = 30 * time.Second

// Config says where a PgBouncer listens, and how it pools.
type Config struct {
	Dir      string   // for its files; only its account can read it
	Port     int      // on 127.0.0.1
	Mode     string   // pool_mode: session or transaction
	PoolSize int      // connections to the server at most, for each database
	Settings []string // more lines of the section pgbouncer
}

// File is the path of the configuration that Write writes.
func (c Config) File() string { return filepath.Join(c.Dir, "pgbouncer.ini") }

// Write writes the configuration of a PgBouncer that leads to the server at databaseURL. It lets
// every client in as the role of that URL. PgBouncer reads it when it starts, and after SIGHUP.
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
	return errors.Join(own(c.Dir), own(c.File()))
}

func password(text string) string {
	if text == "" {
		return ""
	}
	return " password=" + quoted(text)
}

func quoted(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }

// account is the user that PgBouncer runs as for root, since it does not run as root.
const account = "postgres"

// own gives a file to account.
func own(path string) error {
	u, err := user.Lookup(account)
	if err != nil {
		return err
	}
	uid, errUID := strconv.Atoi(u.Uid)
	gid, errGID := strconv.Atoi(u.Gid)
	return errors.Join(errUID, errGID, os.Chown(path, uid, gid))
}

// Command returns the program and arguments that run a PgBouncer with that configuration in the
// foreground.
func (c Config) Command() ([]string, error) {
	path, err := exec.LookPath("pgbouncer")
	if errors.Is(err, exec.ErrNotFound) {
		path, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	if err != nil {
		return nil, fmt.Errorf("PgBouncer is needed here; install it with: apt-get install pgbouncer (%w)", err)
	}
	if os.Geteuid() != 0 {
		return []string{path, c.File()}, nil
	}
	return []string{"setpriv", "--reuid=" + account, "--regid=" + account, "--clear-groups", "--pdeathsig=KILL", path, c.File()}, nil
}

// New returns a Config with a directory and a port of its own. Both are free when the test is over.
func New(t testing.TB, mode string, poolSize int) Config {
	t.Helper()
	c := Config{Dir: t.TempDir(), Mode: mode, PoolSize: poolSize}
	if err := os.Chmod(filepath.Dir(c.Dir), 0o711); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", c.address())
	if err != nil {
		t.Fatal(err)
	}
	c.Port = listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c Config) address() string { return "127.0.0.1:" + strconv.Itoa(c.Port) }

// Through returns databaseURL, leading through the PgBouncer.
func (c Config) Through(t testing.TB, databaseURL string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = c.address()
	query := u.Query()
	for _, name := range []string{"host", "port"} { // these would win over u.Host
		query.Del(name)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// Start runs a PgBouncer in front of the server at databaseURL until the test is over. It returns
// the URL that leads through it.
func Start(t testing.TB, databaseURL, mode string, poolSize int, settings ...string) string {
	t.Helper()
	c := New(t, mode, poolSize)
	c.Settings = settings
	if err := c.Write(databaseURL); err != nil {
		t.Fatal(err)
	}
	words, err := c.Command()
	if err != nil {
		t.Fatal(err)
	}
	said := &bytes.Buffer{}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = said, said
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
			t.Logf("PgBouncer said:\n%s", said)
		}
	})
	if err := c.await(ended); err != nil {
		t.Fatal(err)
	}
	return c.Through(t, databaseURL)
}

// await returns when the PgBouncer accepts connections.
func (c Config) await(ended <-chan struct{}) error {
	enough := time.After(startTimeout)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		conn, err := net.Dial("tcp", c.address())
		if err == nil {
			return conn.Close()
		}
		select {
		case <-again.C:
		case <-ended:
			return errors.New("PgBouncer ended before it accepted connections")
		case <-enough:
			return fmt.Errorf("PgBouncer does not accept connections: %w", err)
		}
	}
}
