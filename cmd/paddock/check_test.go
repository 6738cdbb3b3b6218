package main

import (
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/migrations"
)

// TestCheckSaysWhatIsWrong breaks each thing that serve needs, one at a time: that line says what to do, and no other
// is wrong. Checks that depend on it do not run.
func TestCheckSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	good, other := a.issue("server", x509.ExtKeyUsageServerAuth), a.issue("other", x509.ExtKeyUsageServerAuth)
	expired, early := a.issueFor("expired", -2*time.Hour, -time.Hour, "127.0.0.1"), a.issueFor("early", time.Hour, 2*time.Hour, "127.0.0.1")
	elsewhere, nameless := a.issueFor("elsewhere", -time.Hour, time.Hour, "10.0.0.1"), a.issueFor("nameless", -time.Hour, time.Hour, "")
	keys := filepath.Join(t.TempDir(), "keys.json")
	addKey := func(file string, expires time.Time) {
		k, _, err := access.Issue("me", access.Admin, nil, time.Time{})
		if err == nil {
			k.CreatedAt, k.ExpiresAt = time.Now().Add(-2*time.Hour), expires
			err = access.Add(file, k)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	addKey(keys, time.Time{})
	oldKeys := filepath.Join(t.TempDir(), "keys.json")
	addKey(oldKeys, time.Now().Add(-time.Hour))
	broken := filepath.Join(t.TempDir(), "broken.pem")
	if err := os.WriteFile(broken, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	url, empty := pgtest.URL(t), pgtest.EmptyURL(t)
	denied, exec := newOwner(t)
	exec("revoke update on paddock.records from app")
	shut, execShut := newOwner(t)
	execShut("revoke connect on database " + strings.TrimPrefix(shut.Path, "/") + " from public")
	exec("create schema kept")
	reader, execReader := newOwner(t)
	execReader("alter role app set default_transaction_read_only = on")
	replica, base := startServe(t, url, "--metrics-listen", "127.0.0.1:0")
	running := strings.TrimPrefix(base, "http://")
	runningMetrics := replica.Stderr.Await(t, `"msg":"serving metrics","address":"([^"]+)"`)
	_, port, _ := strings.Cut(running, ":")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })

	settings := map[string]string{"database-url": url, "listen": "127.0.0.1:0", "auth-file": keys, "tls-cert": good.cert, "tls-key": good.key}
	for name, c := range map[string]struct {
		change map[string]string // of settings; without a value the setting is left out
		wrong  []string          // the beginnings of the lines that are wrong, one expression each
		ok     string            // part of another line
	}{
		"all right":                 {nil, nil, "ok     certificate  for localhost, 127.0.0.1"},
		"without keys and TLS":      {map[string]string{"auth-file": "", "tls-cert": "", "tls-key": ""}, nil, "ok     certificate  none"},
		"in use by Paddock":         {map[string]string{"listen": running}, nil, "where a Paddock runs now; a start needs it to be free"},
		"metrics in use by Paddock": {map[string]string{"metrics-listen": runningMetrics}, nil, "where a Paddock runs now; a start needs it to be free"},
		"in use by another":         {map[string]string{"listen": taken.Addr().String()}, []string{`listen .*in use by another process; stop it, or choose another address with --listen`}, ""},
		"metrics at --listen":       {map[string]string{"listen": running, "metrics-listen": running}, []string{`metrics .*is the address of --listen; give another one`}, ""},
		"metrics within --listen":   {map[string]string{"listen": ":" + port, "metrics-listen": running}, []string{`metrics .*is the address of --listen; give another one`}, ""},
		"metrics at another port":   {map[string]string{"metrics-listen": "127.0.0.1:0"}, nil, "ok     metrics      127.0.0.1:0"},
		"no port":                   {map[string]string{"listen": "127.0.0.1:abc"}, []string{`listen .*"abc" is no port; give a number from 0 to 65535`}, ""},
		"contradicting settings":    {map[string]string{"min-ttl": "2h", "max-ttl": "1h"}, []string{"settings .*--min-ttl is 2h, which is longer than --max-ttl, 1h"}, ""},
		"an address of another machine": {map[string]string{"listen": "198.51.100.7:80", "tls-cert": "", "tls-key": "", "plain-http": "true"},
			[]string{`listen .*cannot assign.*give another address with --listen`}, ""},
		"an open address without TLS": {map[string]string{"listen": ":0", "tls-cert": "", "tls-key": ""}, []string{`listen .*Give --tls-cert and --tls-key`}, ""},
		"metrics at no address":       {map[string]string{"metrics-listen": "nowhere"}, []string{`metrics .*give HOST:PORT`}, ""},
		"no file of keys":             {map[string]string{"auth-file": keys + ".none"}, []string{`API keys .*create it with paddock key new`}, ""},
		"a broken file of keys":       {map[string]string{"auth-file": broken}, []string{`API keys .*broken.pem`}, ""},
		"expired keys":                {map[string]string{"auth-file": oldKeys}, []string{`API keys .*no key in .* is valid.*paddock key new --auth-file `}, ""},
		"no certificate":              {map[string]string{"tls-cert": good.cert + ".none"}, []string{`certificate .*no such file`}, ""},
		"a broken certificate":        {map[string]string{"tls-cert": broken}, []string{`certificate .*broken.pem`}, ""},
		"the key of another":          {map[string]string{"tls-key": other.key}, []string{`certificate .*does not match`}, ""},
		"an expired certificate":      {map[string]string{"tls-cert": expired.cert, "tls-key": expired.key}, []string{`certificate .* expired on .*; renew it`}, ""},
		"a future certificate":        {map[string]string{"tls-cert": early.cert, "tls-key": early.key}, []string{`certificate .* is not valid before .*set the clock`}, ""},
		"a certificate without names": {map[string]string{"tls-cert": nameless.cert, "tls-key": nameless.key}, []string{`certificate .*names no host`}, ""},
		"a certificate for another host": {map[string]string{"tls-cert": elsewhere.cert, "tls-key": elsewhere.key, "listen": "localhost:0"},
			[]string{`certificate .* is for 10\.0\.0\.1, and not for localhost of --listen`}, ""},
		"no authorities":   {map[string]string{"tls-client-ca": broken}, []string{`certificate .*contains no PEM certificate`}, ""},
		"too many clients": {map[string]string{"max-connections": "2000000000"}, []string{`open files .*raise it .*or lower the flag`}, ""},
		"no database":      {map[string]string{"database-url": ""}, []string{`database .*set PADDOCK_DATABASE_URL`}, "-      schema       not checked: "},
		"an unreachable database": {map[string]string{"database-url": "postgres://me:s3cret@127.0.0.1:1/x"}, []string{
			`database .*cannot connect to the database: nothing listens on 127\.0\.0\.1:1; start PostgreSQL`}, "-      clock        not checked: "},
		"no right to connect": {map[string]string{"database-url": shut.String()}, []string{
			`database .*grant connect on database .* to `}, "-      rights       not checked: "},
		"a missing right":                 {map[string]string{"database-url": denied.String()}, []string{`rights .*grant update on paddock\.records to `}, ""},
		"no schema":                       {map[string]string{"database-url": empty}, []string{`schema .*run paddock migrate up --config \S+paddock\.toml$`}, "-      rights       not checked: "},
		"no schema, which serve migrates": {map[string]string{"database-url": empty, "migrate": "true"}, nil, fmt.Sprintf("the start migrates it to %d", migrations.Latest())},
		"no right to create the schema": {map[string]string{"database-url": denied.String(), "schema": "other", "migrate": "true"},
			[]string{`schema .*may not create the schema other; run as the owner of the database: grant create on database `}, "-      rights       not checked: "},
		"another owner's schema": {map[string]string{"database-url": denied.String(), "schema": "kept", "migrate": "true"},
			[]string{`schema .*may not migrate the schema kept; run paddock migrate up as its owner`}, "-      rights       not checked: "},
		"a role that may not write": {map[string]string{"database-url": reader.String()}, []string{`rights .*the database answers, and accepts no writes`}, ""},
		"too few connections":       {map[string]string{"batch-workers": "40"}, []string{`rights .*pool_max_conns`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var text strings.Builder
			for key, value := range settings {
				if changed, ok := c.change[key]; ok {
					value = changed
				}
				if value != "" {
					fmt.Fprintf(&text, "%s = %q\n", key, value)
				}
			}
			for key, value := range c.change {
				switch _, set := settings[key]; {
				case set:
				case value == "true" || key == "max-connections" || key == "batch-workers":
					fmt.Fprintf(&text, "%s = %s\n", key, value)
				default:
					fmt.Fprintf(&text, "%s = %q\n", key, value)
				}
			}
			code, stdout, stderr := call(t, nil, "serve", "--check", "--config", writeConfig(t, text.String()))
			all := strings.Count(stdout, "\n")
			wrong := regexp.MustCompile(`(?m)^wrong  .*$`).FindAllString(stdout, -1)
			if len(wrong) != len(c.wrong) || all != 10 || !strings.Contains(stdout, c.ok) || strings.Contains(stdout+stderr, "s3cret") {
				t.Fatalf("%d lines of %d are wrong, want %d, and %q:\n%s%s", len(wrong), all, len(c.wrong), c.ok, stdout, stderr)
			}
			for i, want := range c.wrong {
				if !regexp.MustCompile("^wrong  " + want).MatchString(wrong[i]) {
					t.Errorf("want %s in %s", want, wrong[i])
				}
			}
			if len(wrong) == 0 && (code != exitOK || stderr != "") || len(wrong) > 0 && (code != exitFailed || !strings.Contains(stderr, fmt.Sprintf("%d of 10 checks failed", len(wrong)))) {
				t.Errorf("exit code %d:\n%s", code, stderr)
			}
		})
	}
}

// TestCheckChangesNothing in a database without a schema, and on an address.
func TestCheckChangesNothing(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	socket := filepath.Join(t.TempDir(), "socket")
	code, stdout, _ := call(t, nil, "serve", "--check", "--migrate", "--database-url", url, "--listen", "unix:"+socket)
	if code != exitOK || !strings.Contains(stdout, "not checked: the schema must be migrated first") {
		t.Errorf("exit code %d:\n%s", code, stdout)
	}
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket: %v", err)
	}
	if n := pgtest.Number(t, pgtest.Connect(t, url), "select count(*) from pg_namespace where nspname = 'paddock'"); n != 0 {
		t.Error("the schema was made")
	}
	url = pgtest.URL(t)
	if code, stdout, _ := call(t, nil, "serve", "--check", "--database-url", url); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, stdout)
	}
	if n := pgtest.Number(t, pgtest.Connect(t, url), "select count(*) from paddock.replicas"); n != 0 {
		t.Error("a replica was noted")
	}
}

// TestCheckLooksAtTheSocket: what a start could not replace is wrong, and nothing is left or removed.
func TestCheckLooksAtTheSocket(t *testing.T) {
	t.Parallel()
	folder := filepath.Dir(socketPath(t))
	in := func(name string) string { return filepath.Join(folder, name) }
	if err := os.WriteFile(in("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"served", "stale"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: in(name), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		if name == "stale" {
			err = l.Close()
		} else {
			t.Cleanup(func() { _ = l.Close() })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	files := func() string {
		entries, err := os.ReadDir(folder)
		return fmt.Sprint(entries, err)
	}
	before := files()
	for path, want := range map[string]string{
		in("free"):                     `ok     listen       the socket \S+/free\n`,
		in("served"):                   `wrong  listen       --listen unix:\S+/served: another process listens on that socket; choose another path, or stop it\n`,
		in("stale"):                    `ok     listen       the socket \S+/stale, which no process serves; a start replaces it\n`,
		in("none/socket"):              `wrong  listen       the folder \S+/none of --listen does not exist; make it, or choose another path\n`,
		"/run/paddock/none/socket":     `ok     listen       the socket /run/paddock/none/socket, whose folder does not exist now; RuntimeDirectory= `,
		in("file"):                     `wrong  listen       --listen unix:\S+/file: there is a file that is no socket; choose another path, or remove it\n`,
		in("file/socket"):              `wrong  listen       --listen unix:\S+/file/socket: .*not a directory\n`,
		in(strings.Repeat("long", 30)): `wrong  listen       --listen unix:\S+: the path is too long for a socket; choose one of at most 100 bytes\n`,
	} {
		_, stdout, stderr := call(t, nil, "serve", "--check", "--database-url", "postgres://me@127.0.0.1:1/x", "--listen", "unix:"+path)
		if !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("%s: want %s in\n%s%s", path, want, stdout, stderr)
		}
	}
	if after := files(); after != before {
		t.Errorf("the folder has %s, and had %s", after, before)
	}
}

// TestTheDefaultOfConnectionsFitsTheOpenFileLimit: a default must not cause a warning.
func TestTheDefaultOfConnectionsFitsTheOpenFileLimit(t *testing.T) {
	t.Parallel()
	given := 30_000
	for _, c := range []struct {
		flag  *int
		limit uint64
		want  int
	}{
		{nil, 1 << 20, 20_000}, {nil, 20_064, 20_000}, {nil, 20_063, 19_999}, {nil, 1024, 960}, {nil, 65, 1}, {nil, 10, 1}, {&given, 1024, given},
	} {
		if got := (accessFlags{MaxConnections: c.flag}).maxConnections(c.limit); got != c.want {
			t.Errorf("with a limit of %d: %d connections, want %d", c.limit, got, c.want)
		}
	}
}
