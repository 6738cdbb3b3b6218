package main

import (
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

func TestDatabasePasswordIsNeverPrinted(t *testing.T) {
	t.Parallel()
	const password = "hunter2"
	elsewhere, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere.User, elsewhere.Path = url.UserPassword("nobody", password), "/nothing"
	for name, c := range map[string]struct {
		url  string
		code int
	}{
		"a URL with a space": {"postgres://me:" + password + "@a b/c", exitUsage},
		"an invalid port":    {"postgres://me:" + password + "@host:port/c", exitUsage},
		"an invalid sslmode": {"postgres://me:" + password + "@host/c?sslmode=maybe", exitUsage},
		"an invalid sslmode and a password parameter": {"postgres://me@host/c?sslmode=maybe&password=" + password,
			exitUsage},
		"keywords and values":   {"host=there port=x password=" + password, exitUsage},
		"an unreachable server": {"postgres://me:" + password + "@127.0.0.1:1/c", exitUnreachable},
		"an unknown role":       {elsewhere.String(), exitUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := call(t, nil, "serve", "--log-level=debug", "--wait-database=10ms", "--database-url", c.url)
			if code != c.code || strings.Contains(stdout+stderr, password) {
				t.Errorf("exit code %d, want %d and no password in:\n%s%s", code, c.code, stdout, stderr)
			}
		})
	}
}

func TestPermanentDatabaseErrorFailsAtOnce(t *testing.T) {
	t.Parallel()
	missing, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	missing.Path = "/nothing"
	code, _, stderr := call(t, nil, "serve", "--wait-database=24h", "--database-url", missing.String())
	if code != exitUnreachable || !strings.Contains(stderr, `database "nothing" does not exist`) {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}

// TestConnectTimeoutIsThatOfTheURL, or five seconds: a database that is busy takes more than one.
func TestConnectTimeoutIsThatOfTheURL(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]time.Duration{
		"":                    5 * time.Second,
		"?connect_timeout=0":  5 * time.Second,
		"?connect_timeout=2":  2 * time.Second,
		"?connect_timeout=30": 30 * time.Second,
	} {
		config, err := database{URL: "postgres://db.example/paddock" + query}.config()
		if err != nil || config.ConnectTimeout != want {
			t.Errorf("%q: %+v, %v, want %v", query, config, err, want)
		}
	}
}

func mustClose(t *testing.T, c io.Closer) {
	if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Log(err)
	}
}
