package client_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
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

// A keyedService refuses some keys, and grants everything else. It records the calls of each request by its key.
type keyedService struct {
	refused map[string]bool
	sent    map[string][]string
}

// RoundTrip implements http.RoundTripper.
func (s *keyedService) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := readHeld(r)
	if err != nil {
		return nil, err
	}
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.sent[key] = append(s.sent[key], fmt.Sprint(a.items))
	if s.refused[key] {
		return reply(r, http.StatusUnauthorized, "application/problem+json", problem(`"code":"key_invalid"`)), nil
	}
	go a.grant()
	return (<-a.res)(r)
}

// connectKeyed returns a client whose key comes from the function, and a service that refuses the key "revoked".
func connectKeyed(t *testing.T, key func() (string, error)) (*client.Client, *keyedService) {
	t.Helper()
	s := &keyedService{refused: map[string]bool{"revoked": true}, sent: map[string][]string{}}
	return open(t, client.Options{
		BaseURL: "http://paddock.test", HTTP: &http.Client{Transport: s},
		KeyFunc: func(context.Context) (string, error) { return key() },
	}), s
}

func TestARequestIsSentAgainWithTheKeyThatReplacedARefusedOne(t *testing.T) {
	t.Parallel()
	for what, call := range map[string]func(*client.Client) error{
		"one call": func(c *client.Client) error { _, err := acquire(c, t); return err },
		"a batch": func(c *client.Client) error {
			results := c.Batch(t.Context(), []lock.Command{lock.Acquire{Locks: lock.One("a"), Holder: "h"}, lock.Acquire{Locks: lock.One("b"), Holder: "h"}})
			return errors.Join(results[0].Err, results[1].Err)
		},
	} {
		keys := []string{"revoked", "valid"} // replaced while the request is on its way
		c, s := connectKeyed(t, func() (string, error) {
			key := keys[0]
			keys = keys[len(keys)-1:]
			return key, nil
		})
		if err := call(c); err != nil || len(s.sent["valid"]) != 1 || !slices.Equal(s.sent["revoked"], s.sent["valid"]) {
			t.Errorf("%s: %v; sent %v", what, err, s.sent)
		}
	}
}

func TestARefusedKeyIsNotSentTwice(t *testing.T) {
	t.Parallel()
	c, s := connectKeyed(t, func() (string, error) { return "revoked", nil })
	if _, err := acquire(c, t); !errors.Is(err, lock.ErrKeyInvalid) || len(s.sent["revoked"]) != 1 {
		t.Errorf("%v; sent %v", err, s.sent)
	}
}

func TestAKeyThatCannotBeReadAgainIsUsedUntilItIsRefused(t *testing.T) {
	t.Parallel()
	key, failed := "", errors.New("no such file")
	c, s := connectKeyed(t, func() (string, error) { return key, failed })
	expectNoKey := func(when string) {
		t.Helper()
		if _, err := acquire(c, t); !errors.Is(err, lock.ErrUnavailable) || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("%s: %v", when, err)
		}
	}
	if expectNoKey("without any key"); len(s.sent) != 0 {
		t.Errorf("sent %v", s.sent)
	}
	key, failed = "valid", nil
	_, first := acquire(c, t)
	key, failed = "", errors.New("no such file")
	_, second := acquire(c, t)
	if err := errors.Join(first, second); err != nil || len(s.sent["valid"]) != 2 {
		t.Errorf("%v; sent %v", err, s.sent)
	}
	s.refused["valid"] = true
	expectNoKey("with a refused key")
}
