package client_test

import (
	"context"
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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

// A keyedService grants leases to requests with one key, and records the bodies of requests by their keys.
type keyedService struct {
	mu    sync.Mutex
	valid string
	sent  map[string][]string
}

func (k *keyedService) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	k.sent[key] = append(k.sent[key], string(text))
	switch {
	case key != k.valid:
		return reply(r, http.StatusUnauthorized, "application/problem+json", `{"code":"key_invalid","detail":"Unknown API key."}`), nil
	case strings.HasSuffix(r.URL.Path, "/batch"):
		return reply(r, http.StatusOK, "application/json", `{"results":[{"status":204},{"status":204}]}`), nil
	}
	return reply(r, http.StatusCreated, "application/json", leaseJSON), nil
}

// A keyFile is where a key is, or the error of reading it.
type keyFile struct {
	mu  sync.Mutex
	key string
	err error
}

func (k *keyFile) set(key string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.key, k.err = key, err
}

func (k *keyFile) read(context.Context) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.key, k.err
}

func withKeyFunc(t *testing.T, service *keyedService, read func(context.Context) (string, error)) *client.Client {
	t.Helper()
	service.sent = map[string][]string{}
	return open(t, client.Options{BaseURL: "http://paddock.test", KeyFunc: read, HTTP: &http.Client{Transport: service}})
}

func TestAReplacedKeyIsUsedFromTheNextRequestOn(t *testing.T) {
	t.Parallel()
	service, file := &keyedService{valid: "one"}, &keyFile{key: "one"}
	c := withKeyFunc(t, service, file.read)
	for _, key := range []string{"one", "two"} {
		file.set(key, nil)
		service.valid = key
		if _, err := acquire(c, t); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(service.sent["one"]); n != 1 {
		t.Errorf("the key before was sent %d times", n)
	}
}

func TestARequestIsSentAgainWithTheKeyThatReplacedARefusedOne(t *testing.T) {
	t.Parallel()
	for what, call := range map[string]func(*client.Client) error{
		"one call": func(c *client.Client) error { _, err := acquire(c, t); return err },
		"a batch": func(c *client.Client) error {
			r := lock.Release{Name: "jobs:nightly", LeaseID: leaseID}
			results := c.Batch(t.Context(), []lock.Command{r, r})
			return errors.Join(results[0].Err, results[1].Err)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			keys := []string{"one", "two"} // replaced while the request is on its way
			service := &keyedService{valid: "two"}
			c := withKeyFunc(t, service, func(context.Context) (string, error) {
				key := keys[0]
				keys = keys[len(keys)-1:]
				return key, nil
			})
			if err := call(c); err != nil {
				t.Fatal(err)
			}
			if len(service.sent["two"]) != 1 || !slices.Equal(service.sent["one"], service.sent["two"]) {
				t.Errorf("sent %v", service.sent)
			}
		})
	}
}

func TestARefusedKeyIsNotSentTwice(t *testing.T) {
	t.Parallel()
	service, file := &keyedService{valid: "two"}, &keyFile{key: "one"}
	_, err := acquire(withKeyFunc(t, service, file.read), t)
	if !errors.Is(err, lock.ErrKeyInvalid) || len(service.sent["one"]) != 1 {
		t.Errorf("%v; sent %v", err, service.sent)
	}
}

func TestAKeyThatCannotBeReadAgainIsUsedUntilItIsRefused(t *testing.T) {
	t.Parallel()
	service, file := &keyedService{valid: "one"}, &keyFile{err: errors.New("no such file")}
	c := withKeyFunc(t, service, file.read)
	_, err := acquire(c, t)
	if !errors.Is(err, lock.ErrUnavailable) || !strings.Contains(err.Error(), "no such file") || len(service.sent) != 0 {
		t.Errorf("without any key: %v; sent %v", err, service.sent)
	}
	file.set("one", nil)
	_, first := acquire(c, t)
	file.set("", errors.New("no such file"))
	_, second := acquire(c, t)
	if err := errors.Join(first, second); err != nil {
		t.Fatal(err)
	}
	service.valid = "two"
	_, err = acquire(c, t)
	if !errors.Is(err, lock.ErrUnavailable) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("with a refused key: %v", err)
	}
}

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
