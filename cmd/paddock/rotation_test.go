package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/internal/testkit/tcpproxy"
	"github.com/paddock-lock/paddock/lock"
)

// A rotation is a command that runs under a lease while what it authenticates with is replaced.
type rotation struct {
	*keyedReplica
	operator *client.Client // of another key
	run      *process
	finish   func() // ends the command with exit code 4
}

// startRotation starts paddock run with these flags, and returns when its command runs.
func startRotation(h *keyedReplica, operator client.Options, url string, flags ...string) *rotation {
	h.Helper()
	operator.BaseURL = h.base
	r := &rotation{keyedReplica: h}
	var err error
	if r.operator, err = client.New(operator); err != nil {
		h.Fatal(err)
	}
	args := append([]string{"run", "--url", url, "--ttl=4s"}, flags...)
	r.run = &process{proctest.New(exec.Command(self(h.T), append(args, nightly, "--", "sh", "-c", "echo ready; read line; exit 4")...))}
	r.run.Cmd.Env = append(os.Environ(), actAsPaddock+"=1")
	stdin, err := r.run.Cmd.StdinPipe()
	if err != nil {
		h.Fatal(err)
	}
	r.finish = func() { mustClose(h.T, stdin) }
	r.run.Start(h.T)
	r.run.Stdout.Await(h.T, `(ready)`)
	return r
}

// awaitRenewal returns when the lease lasts for longer than it can without a renewal that is sent after this call.
func (r *rotation) awaitRenewal() {
	r.Helper()
	after := r.lease().ExpiresAt.Add(4 * time.Second)
	await.Until(r.T, "the lease is renewed", func() bool { return !r.lease().ExpiresAt.Before(after) })
}

// lease returns the lease of the run.
func (r *rotation) lease() lock.LeaseInfo {
	r.Helper()
	l, err := r.operator.Lock(r.Context(), nightly)
	if err != nil {
		r.Fatal(err)
	}
	if len(l.Leases) != 1 {
		r.Fatalf("the lease was lost:\n%s", r.run.Stderr)
	}
	return l.Leases[0]
}

// expectEnd ends the command, and checks that the lease was held until then.
func (r *rotation) expectEnd() {
	r.Helper()
	r.finish()
	if code := r.run.Exit(r.T); code != 4 {
		r.Errorf("exit code %d:\n%s", code, r.run.Stderr)
	}
}

func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	next := path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

func TestRunContinuesWhenItsKeyIsReplacedAfterTheRevocation(t *testing.T) {
	t.Parallel()
	h := newKeyedReplica(t)
	operator, first, second := h.newLoadedKey(access.Read), h.newLoadedKey(access.Lock), h.newLoadedKey(access.Lock)
	file := filepath.Join(t.TempDir(), "key")
	replaceFile(t, file, first.secret)
	r := startRotation(h, client.Options{Key: operator.secret}, h.base, "--key-file", file)
	h.revoke(first.ID)
	r.run.Stderr.Await(t, `is at risk.*(key_invalid)`)
	replaceFile(t, file, second.secret)
	r.run.Stderr.Await(t, `(is held again)`)
	r.expectEnd()
}

// TestRunContinuesWithReplacedCertificates replaces the authority of the service and of its clients, and ends the
// connections that were made before.
func TestRunContinuesWithReplacedCertificates(t *testing.T) {
	t.Parallel()
	a, b := newAuthority(t), newAuthority(t)
	server, ours := a.issue("server", x509.ExtKeyUsageServerAuth), a.issue("ours", x509.ExtKeyUsageClientAuth)
	trusted := filepath.Join(t.TempDir(), "ca.pem")
	replaceFile(t, trusted, readText(t, a.file))
	h := newTLSReplica(t, a, server, "--tls-client-ca", trusted)
	operator, key := h.newLoadedKey(access.Read), h.newLoadedKey(access.Lock)
	files := trustFlags{CA: trusted, Cert: ours.cert, CertKey: ours.key}
	configs, err := files.configs()
	if err != nil {
		t.Fatal(err)
	}
	proxy := tcpproxy.New(t, strings.TrimPrefix(h.base, "https://"))
	file := filepath.Join(t.TempDir(), "key")
	replaceFile(t, file, key.secret)
	r := startRotation(h, client.Options{Key: operator.secret, TLSFunc: configs}, "https://"+proxy.Address,
		"--key-file", file, "--ca", trusted, "--cert", ours.cert, "--cert-key", ours.key)

	nextServer, nextOurs := b.issue("server", x509.ExtKeyUsageServerAuth), b.issue("ours", x509.ExtKeyUsageClientAuth)
	replaceFile(t, trusted, readText(t, b.file))
	for to, from := range map[string]string{server.cert: nextServer.cert, server.key: nextServer.key,
		ours.cert: nextOurs.cert, ours.key: nextOurs.key} {
		replaceFile(t, to, readText(t, from))
	}
	await.Until(t, "the next authority is used", func() bool { // a new connection, which trusts only the next authority
		_, err := r.operator.Lock(t.Context(), nightly)
		return err == nil
	})
	proxy.Restore() // closes the connections
	r.awaitRenewal()
	r.expectEnd()
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
