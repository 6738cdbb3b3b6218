package client_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

// selfSigned returns a certificate for 127.0.0.1.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// trusting returns a configuration that trusts only that certificate.
func trusting(t *testing.T, c tls.Certificate) *tls.Config {
	t.Helper()
	leaf, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func TestAReplacedAuthorityIsUsedFromTheNextConnectionOn(t *testing.T) {
	t.Parallel()
	one, two := selfSigned(t), selfSigned(t)
	shown := one
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Paddock-Api", "v1")
		_, _ = io.WriteString(w, freeJSON)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of refused handshakes
	s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{shown}, MinVersion: tls.VersionTLS12}, nil
	}}
	s.Config.SetKeepAlivesEnabled(false) // each request needs a new connection
	s.StartTLS()
	defer s.Close()
	config, failed := trusting(t, one), error(nil)
	c := open(t, client.Options{BaseURL: s.URL, TLSFunc: func() (*tls.Config, error) { return config, failed }})
	if err := read(c, t); err != nil {
		t.Fatal(err)
	}
	shown = two
	failed = errors.New("no such file")
	if err := read(c, t); !errors.Is(err, lock.ErrUnavailable) || !strings.Contains(err.Error(), "no such file") {
		t.Fatalf("with the authority before: %v", err)
	}
	config, failed = trusting(t, two), nil
	if err := read(c, t); err != nil {
		t.Fatal(err)
	}
}
