package faults_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/client"
)

// The limits of the flooded replica, beside floodWaiters and waitersEach. The others are the defaults: 200 streams per
// key.
const (
	floodStreams = 1000
	floodRate    = 25 // calls per second and key, low enough to be exceeded on any machine
	floodBurst   = 2500
)

// A securedReplica is one replica with TLS and API keys.
type securedReplica struct {
	t          *testing.T
	database   *database
	admin      *pgx.Conn // direct connection to its database
	env        []string  // of its process, in addition
	process    *child
	address    string
	metrics    string // the address of its metrics
	trust      *tls.Config
	cert       string // files with its certificate and private key
	key        string
	auth       string            // file with its API keys
	secrets    map[string]string // API keys by name
	testClient *client.Client    // has the key "late"; used by the tests themselves
}

// startSecured starts the program, with additions to its environment, on its own PostgreSQL. Both end with the test.
func startSecured(t *testing.T, program string, env ...string) *securedReplica {
	t.Helper()
	e := newSecured(t)
	e.env = env
	e.issueKeys("good", "rude", "late", greedyKey(0), greedyKey(1))
	for i := range waiterKeys {
		e.issueKeys(waiterKey(i))
	}
	for i := range streamKeys {
		e.issueKeys(streamKey(i))
	}
	e.launch(program, "--auth-file="+e.auth,
		fmt.Sprint("--max-streams=", floodStreams), fmt.Sprint("--rate-per-key=", floodRate),
		fmt.Sprint("--burst-per-key=", floodBurst), fmt.Sprint("--max-waiters=", floodWaiters()),
		fmt.Sprint("--max-waiters-per-lock=", waitersEach()), fmt.Sprint("--waiters-per-key=", waitersEach()))
	e.testClient = e.client("late")
	_, err := e.testClient.Lock(t.Context(), "late") // opens its connection now
	e.must(err)
	return e
}

// newSecured starts a PostgreSQL for a replica that launch starts. It ends with the test.
func newSecured(t *testing.T) *securedReplica {
	t.Helper()
	e := &securedReplica{t: t, auth: filepath.Join(t.TempDir(), "keys.json"), secrets: map[string]string{}}
	var err error
	e.database, err = newDatabase(t.Context())
	e.must(err)
	cleanup(t, e.database.host.Close)
	e.admin, err = e.database.connect(t.Context(), "paddock")
	e.must(err)
	cleanup(t, func() error { return e.admin.Close(context.WithoutCancel(t.Context())) })
	e.cert, e.key = e.certify(t.TempDir())
	return e
}

// launch starts the replica with additional flags. It ends with the test.
func (e *securedReplica) launch(program string, flags ...string) {
	e.t.Helper()
	databaseURL := e.database.url(url.Values{"host": {e.database.host.SocketDir()}, "port": {"5432"}}, "", "paddock")
	args := []string{"serve", "--migrate", "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0", "--tls-cert=" + e.cert,
		"--tls-key=" + e.key}
	var err error
	e.process, err = launch(&logBuffer{}, append(e.env, "PADDOCK_DATABASE_URL="+databaseURL), program,
		append(args, flags...)...)
	e.must(err)
	process := e.process
	cleanup(e.t, func() error { return process.stop(syscall.SIGKILL) })
	e.address, err = e.process.awaitOutput(e.t.Context(), `"msg":"listening","address":"([^"]+)"`)
	e.must(err)
	e.metrics, err = e.process.awaitOutput(e.t.Context(), `"msg":"serving metrics","address":"([^"]+)"`)
	e.must(err)
}

func (e *securedReplica) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// issueKeys adds API keys that are valid for all names.
func (e *securedReplica) issueKeys(names ...string) {
	e.t.Helper()
	for _, name := range names {
		k, secret, err := access.Issue(name, access.Lock, nil, time.Time{})
		e.must(errors.Join(err, access.Add(e.auth, k)))
		e.secrets[name] = secret
	}
}

// certify writes a certificate for this machine and its private key, and trusts it.
func (e *securedReplica) certify(dir string) (cert, key string) {
	e.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	e.must(err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signed, err := x509.CreateCertificate(rand.Reader, c, c, private.Public(), private)
	e.must(err)
	coded, err := x509.MarshalPKCS8PrivateKey(private)
	e.must(err)
	c, err = x509.ParseCertificate(signed)
	e.must(err)
	e.trust = &tls.Config{RootCAs: x509.NewCertPool(), ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	e.trust.RootCAs.AddCert(c)
	return written(e.t, dir, "cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})),
		written(e.t, dir, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: coded}))
}

// client returns a client with the named key.
func (e *securedReplica) client(key string) *client.Client {
	e.t.Helper()
	c, err := client.New(client.Options{BaseURL: "https://" + e.address, Key: e.secrets[key], TLS: e.trust})
	e.must(err)
	return c
}

// ethernetSegment is the size in bytes of a TCP segment on most networks. The loopback interface has segments of
// 64 KiB, for which the kernel buffers up to four megabytes of what a client does not read. With the smaller ones it
// buffers some two hundred kilobytes.
const ethernetSegment = 1400

// dial opens a TCP connection.
func (e *securedReplica) dial() (*net.TCPConn, error) {
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var refused error
		err := raw.Control(func(fd uintptr) {
			refused = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, ethernetSegment)
		})
		return errors.Join(err, refused)
	}}
	c, err := d.DialContext(e.t.Context(), "tcp", e.address)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// dialTLS opens a TLS connection for the protocol h2 or http/1.1. On a busy machine a handshake may exceed the
// replica's timeout, so it is retried.
func (e *securedReplica) dialTLS(protocol string) (c *tls.Conn, err error) {
	ctx, cancel := context.WithTimeout(e.t.Context(), stepTimeout)
	defer cancel()
	config := e.trust.Clone()
	config.ServerName, config.NextProtos = "127.0.0.1", []string{protocol}
	return c, retry(ctx, func() error {
		plain, err := e.dial()
		if err != nil {
			return err
		}
		if c = tls.Client(plain, config); c.HandshakeContext(ctx) == nil {
			return nil
		}
		return errors.Join(errors.New("the TLS handshake failed"), plain.Close())
	})
}

// count returns the result of a query for one number.
func (e *securedReplica) count(query string) int {
	e.t.Helper()
	var n int
	e.must(e.admin.QueryRow(e.t.Context(), query).Scan(&n))
	return n
}
