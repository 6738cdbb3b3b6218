package pgconnect_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/pgconnect"
)

// TestAFailureSaysWhatToDo, and no more of the URL than its host, role and database.
func TestAFailureSaysWhatToDo(t *testing.T) {
	t.Parallel()
	foreign := answering(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	ssh := answering(t, func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.2\r\n") })
	closing := answering(t, func(net.Conn) {})
	silent := answering(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	noTLS := answering(t, func(c net.Conn) { _, _ = io.WriteString(c, "N") })
	for databaseURL, want := range map[string]string{
		"postgres://me:s3cret@db.invalid/x":                              "there is no host db.invalid; correct the host in the database URL",
		"postgres://me:s3cret@127.0.0.1:1/x":                             "nothing listens on 127.0.0.1:1; start PostgreSQL there, or correct host and port",
		"postgres://me:s3cret@127.0.0.1:1,127.0.0.1:2/x":                 "nothing listens on 127.0.0.1:2; start PostgreSQL there",
		"postgres://me:s3cret@/x?host=/nowhere":                          "there is no socket /nowhere/.s.PGSQL.5432; start PostgreSQL",
		"postgres://me:s3cret@" + foreign + "/x":                         "what answers on " + foreign + " is not PostgreSQL; correct host and port",
		"postgres://me:s3cret@" + ssh + "/x":                             "what answers on " + ssh + " is not PostgreSQL",
		"postgres://me:s3cret@" + closing + "/x":                         closing + " closed the connection before it answered",
		"postgres://me:s3cret@" + silent + "/x?connect_timeout=1":        silent + " does not answer within 1s; correct host and port",
		"postgres://me:s3cret@" + noTLS + "/x?sslmode=require":           "the database offers no TLS, and sslmode in the database URL requires it",
		"postgres://me:s3cret@127.0.0.1:1/x?sslmode=disable&user=nobody": "nothing listens on 127.0.0.1:1",
	} {
		t.Run(databaseURL, func(t *testing.T) {
			t.Parallel()
			config, err := pgconnect.Parse(databaseURL)
			if err != nil {
				t.Fatal(err)
			}
			_, err = pgx.ConnectConfig(t.Context(), config.ConnConfig)
			err = pgconnect.ExplainFailure(err)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") ||
				strings.Contains(err.Error(), "failed to connect") || !errors.As(err, new(*pgconn.ConnectError)) {
				t.Errorf("%v; want %q", err, want)
			}
		})
	}
	if err := pgconnect.ExplainFailure(io.EOF); !errors.Is(err, io.EOF) || err.Error() != "EOF" {
		t.Errorf("another error became %v", err)
	}
}

// answering returns the address of a server that answers each connection, and closes it.
func answering(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				_, _ = conn.Read(make([]byte, 8)) // of the request for TLS, or the start of a session
				answer(conn)
			}()
		}
	}()
	return listener.Addr().String()
}
