package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
)

// newTLSReplica starts a replica that serves TLS with that certificate.
func newTLSReplica(t *testing.T, a *authority, server pair, args ...string) *keyedReplica {
	t.Helper()
	h := newKeyedReplica(t, append([]string{"--tls-cert", server.cert, "--tls-key", server.key}, args...)...)
	h.base = "https" + strings.TrimPrefix(h.base, "http")
	h.http = &http.Client{Timeout: proctest.Patience, Transport: &http.Transport{TLSClientConfig: a.trusted(),
		ForceAttemptHTTP2: true}}
	return h
}

// trusted returns a configuration that trusts only this authority.
func (a *authority) trusted() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10} //nolint:gosec // The server is to refuse it.
}

func TestKeysWorkOverTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	h := newTLSReplica(t, a, a.issue("server", x509.ExtKeyUsageServerAuth))
	k := h.newLoadedKey(access.Lock)
	env := map[string]string{"PADDOCK_URL": h.base, "PADDOCK_CA": a.file, "PADDOCK_KEY": k.secret}
	for _, args := range [][]string{{"acquire", "x"}, {"list"}, {"healthcheck"}} {
		if code, stdout, stderr := call(t, env, args...); code != exitOK {
			t.Errorf("%v: exit code %d:\n%s%s", args, code, stdout, stderr)
		}
	}
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(k.secret), 0o600); err != nil {
		t.Fatal(err)
	}
	demo := start(t, "demo", "--ttl=300ms", "--url", h.base, "--ca", a.file, "--key-file", keyFile)
	if code := demo.Exit(t); code != exitOK {
		t.Errorf("demo: exit code %d:\n%s", code, demo.Stderr)
	}
	old := a.trusted()
	old.MaxVersion = tls.VersionTLS11
	if _, err := (&tls.Dialer{Config: old}).DialContext(t.Context(), "tcp",
		strings.TrimPrefix(h.base, "https://")); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
	delete(env, "PADDOCK_CA")
	for _, command := range []string{"list --retry=0s", "healthcheck"} {
		if code, _, stderr := call(t, env, strings.Fields(command)...); code == exitOK || !strings.Contains(stderr, "certificate") {
			t.Errorf("%s with an untrusted certificate: exit code %d:\n%s", command, code, stderr)
		}
	}
}

func TestHealthcheckWorksOverTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	server := a.issue("server", x509.ExtKeyUsageServerAuth)
	h := newTLSReplica(t, a, server)
	env := map[string]string{"PADDOCK_LISTEN": strings.TrimPrefix(h.base, "https://"), "PADDOCK_TLS_CERT": server.cert}
	if code, stdout, stderr := call(t, env, "healthcheck"); code != exitOK || stdout != "ready\n" {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	env["PADDOCK_CA"] = newAuthority(t).file
	if code, _, stderr := call(t, env, "healthcheck"); code != exitFailed || strings.Contains(stderr, "not ready") ||
		!strings.Contains(stderr, "cannot verify the certificate of https://127.0.0.1:") || !strings.Contains(stderr, "leave out --ca and PADDOCK_CA") {
		t.Errorf("with another authority: exit code %d:\n%s", code, stderr)
	}
}

// TestExpiredCertificatesAreLogged at the start, and when they are loaded again.
func TestExpiredCertificatesAreLogged(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	server := a.issueFor("server", -2*time.Hour, -time.Hour, "127.0.0.1")
	var log bytes.Buffer
	c, err := tlsFlags{TLSCert: server.cert, TLSKey: server.key}.loadCertificates(newLog(&log, slog.LevelInfo))
	mustBeNil(t, err)
	for want := range 2 {
		if said := log.String(); strings.Count(said, "certificate is not valid now") != want+1 || strings.Count(said, "; renew it") != want+1 {
			t.Errorf("logged:\n%s", said)
		}
		a.issueFor("server", -2*time.Hour, -time.Hour, "127.0.0.1")
		mustBeNil(t, c.reload())
	}
}

// TestTheEndOfACertificateIsLogged while a replica runs, once before and once after, until it is renewed.
func TestTheEndOfACertificateIsLogged(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	synctest.Test(t, func(t *testing.T) {
		server := a.issueFor("server", 0, 10*time.Hour, "127.0.0.1")
		var log bytes.Buffer
		c, err := tlsFlags{TLSCert: server.cert, TLSKey: server.key}.loadCertificates(newLog(&log, slog.LevelInfo))
		mustBeNil(t, err)
		expect := func(after time.Duration, soon, ended int) {
			t.Helper()
			time.Sleep(after)
			c.current()
			said := log.String()
			if strings.Count(said, "certificate ends soon; renew it") != soon || strings.Count(said, "certificate is not valid now; clients refuse it") != ended {
				t.Errorf("want %d and %d warnings in:\n%s", soon, ended, said)
			}
		}
		expect(8*time.Hour+50*time.Minute, 0, 0)
		expect(20*time.Minute, 1, 0)
		expect(20*time.Minute, 1, 0)
		expect(time.Hour, 1, 1)
		expect(time.Hour, 1, 1)
		a.issueFor("server", 0, 10*time.Hour, "127.0.0.1")
		expect(time.Hour, 1, 1)
		expect(8*time.Hour+30*time.Minute, 2, 1)
	})
}

// TestCertificatesAreReloaded, except files that cannot be used, which are logged once.
func TestCertificatesAreReloaded(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	server := a.issue("server", x509.ExtKeyUsageServerAuth)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c, err := tlsFlags{TLSCert: server.cert, TLSKey: server.key}.loadCertificates(newLog(&log, slog.LevelInfo))
		mustBeNil(t, err)
		expect := func(serial string) {
			t.Helper()
			time.Sleep(reloadEvery)
			if got := c.current().Certificates[0].Leaf.SerialNumber.String(); got != serial {
				t.Errorf("shows %s, want %s:\n%s", got, serial, &log)
			}
		}
		expect(server.serial)
		next := a.issue("server", x509.ExtKeyUsageServerAuth)
		expect(next.serial)
		mustBeNil(t, os.WriteFile(next.key, []byte("spoilt"), 0o600))
		expect(next.serial)
		expect(next.serial)
		expect(a.issue("server", x509.ExtKeyUsageServerAuth).serial)
		if said := log.String(); strings.Contains(said, "PRIVATE") || strings.Count(said, "cannot load certificates; keeping the previous ones") != 1 {
			t.Errorf("logged:\n%s", said)
		}
	})
}

func TestMutualTLSRequiresAClientCertificate(t *testing.T) {
	t.Parallel()
	a, others := newAuthority(t), newAuthority(t)
	h := newTLSReplica(t, a, a.issue("server", x509.ExtKeyUsageServerAuth), "--tls-client-ca", a.file)
	good, stranger, server := a.issue("client", x509.ExtKeyUsageClientAuth), others.issue("client",
		x509.ExtKeyUsageClientAuth), a.issue("x", x509.ExtKeyUsageServerAuth)
	k := h.newLoadedKey(access.Read)
	env := map[string]string{"PADDOCK_URL": h.base, "PADDOCK_CA": a.file, "PADDOCK_KEY": k.secret}
	for name, c := range map[string]struct {
		args []string
		list int
		ask  int // of healthcheck
	}{
		"with a certificate":    {[]string{"--cert", good.cert, "--cert-key", good.key}, exitOK, exitOK},
		"without a certificate": {nil, exitUnreachable, exitFailed},
		"with a certificate of another authority": {[]string{"--cert", stranger.cert, "--cert-key", stranger.key},
			exitUnreachable, exitFailed},
		"with a server certificate": {[]string{"--cert", server.cert, "--cert-key", server.key},
			exitUnreachable, exitFailed},
		"with a certificate without its key": {[]string{"--cert", good.cert}, exitUsage, exitUsage},
		"with the key of another certificate": {[]string{"--cert", good.cert, "--cert-key", server.key}, exitUsage,
			exitUsage},
	} {
		if code, _, stderr := call(t, env, append([]string{"list", "--retry=0s"}, c.args...)...); code != c.list {
			t.Errorf("list %s: exit code %d, want %d:\n%s", name, code, c.list, stderr)
		}
		if code, _, stderr := call(t, env, append([]string{"healthcheck"}, c.args...)...); code != c.ask {
			t.Errorf("healthcheck %s: exit code %d, want %d:\n%s", name, code, c.ask, stderr)
		}
	}
	delete(env, "PADDOCK_KEY")
	if code, _, stderr := call(t, env, "list", "--cert", good.cert, "--cert-key", good.key); code != exitNotAllowed {
		t.Errorf("with a certificate and no key: exit code %d:\n%s", code, stderr)
	}
}

func TestConnectionsBeyondTheLimitAreClosed(t *testing.T) {
	t.Parallel()
	h := newKeyedReplica(t, "--max-connections=2")
	address := strings.TrimPrefix(h.base, "http://")
	var open []net.Conn
	dial := func() net.Conn {
		var d net.Dialer
		c, err := d.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range 2 {
		open = append(open, dial())
	}
	h.http.Transport = &http.Transport{DisableKeepAlives: true}
	await.Until(t, "a connection is refused", func() bool {
		beyond := dial()
		defer mustClose(t, beyond)
		if _, err := beyond.Read(make([]byte, 1)); err == nil {
			t.Fatal("read something from a connection that was to be closed")
		}
		return strings.Contains(h.process.Stderr.String(), "connection limit reached; refusing new connections")
	})
	for _, c := range open {
		mustClose(t, c)
	}
	await.Until(t, "there is room again", func() bool {
		response, err := h.http.Get(h.base + "/livez") //nolint:noctx // The client has a timeout.
		if err != nil {
			return false
		}
		mustClose(t, response.Body)
		return response.StatusCode == http.StatusOK
	})
}
