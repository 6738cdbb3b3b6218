package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

// quiet starts a server of TLS, or of plain HTTP, that logs no refused handshake.
func quiet(t *testing.T, start func(*httptest.Server)) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(s)
	t.Cleanup(s.Close)
	return s
}

// trustingThe returns a configuration of TLS that trusts the certificate of the server.
func trustingThe(s *httptest.Server) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
}

func TestAnErrorWithoutAConnectionSaysWhatToDo(t *testing.T) {
	t.Parallel()
	secure, plain := quiet(t, (*httptest.Server).StartTLS), quiet(t, (*httptest.Server).Start)
	demanding := quiet(t, func(s *httptest.Server) {
		s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert}
		s.StartTLS()
	})
	refused, silent := closedAddress(t), silentListener(t)
	misnamed, late := trustingThe(secure), trustingThe(secure)
	misnamed.ServerName = "locks.example.net"
	late.Time = func() time.Time { return secure.Certificate().NotAfter.Add(time.Hour) }
	for what, c := range map[string]struct {
		options client.Options
		want    string
	}{
		"nothing listens":       {client.Options{BaseURL: "http://" + refused}, "nothing listens on " + refused + "; start the service"},
		"no socket":             {client.Options{BaseURL: "unix:/nowhere/paddock.sock"}, "there is no socket /nowhere/paddock.sock; start"},
		"silence":               {client.Options{BaseURL: "https://" + silent}, "no answer came in time; check the URL and the network, and whether the service reaches its database"},
		"an unknown authority":  {client.Options{BaseURL: secure.URL}, "give the PEM certificate of its authority with --ca or PADDOCK_CA, in Go"},
		"another name":          {client.Options{BaseURL: secure.URL, TLS: misnamed}, "is not for locks.example.net, but for example.com,"},
		"an old certificate":    {client.Options{BaseURL: secure.URL, TLS: late}, "has expired at 2084-01-29T16:00:00Z; renew it"},
		"plain HTTP to TLS":     {client.Options{BaseURL: "http" + strings.TrimPrefix(secure.URL, "https")}, "begin its URL with https://"},
		"an alert to HTTP":      {client.Options{BaseURL: "http://" + alerting(t)}, "begin its URL with https://"},
		"TLS to plain HTTP":     {client.Options{BaseURL: "https" + strings.TrimPrefix(plain.URL, "http")}, "does not speak TLS; begin its URL with http://"},
		"no client certificate": {client.Options{BaseURL: demanding.URL, TLS: trustingThe(demanding)}, "with --cert and --cert-key, in Go with Certificates"},
		"a proxy's page":        {client.Options{BaseURL: plain.URL}, "HTTP 502 with content type \"text/html\", is not from Paddock"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if what == "silence" {
				c.options.HTTP = &http.Client{Timeout: 200 * time.Millisecond}
			}
			err := readIn(t.Context(), open(t, c.options))
			expect(t, "Lock", err, lock.ErrUnavailable)
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %q, want %q in it", err, c.want)
			}
			for _, raw := range []string{"dial ", "x509:", "tls:", "deadline exceeded", "Client.Timeout", "malformed"} {
				if strings.Contains(err.Error(), raw) {
					t.Errorf("the error has the words of Go's packages: %q", err)
				}
			}
		})
	}
}

// TestAChangeToAPortOfTLSIsNotDone: the server has not read the request.
func TestAChangeToAPortOfTLSIsNotDone(t *testing.T) {
	t.Parallel()
	secure := quiet(t, (*httptest.Server).StartTLS)
	for _, address := range []string{strings.TrimPrefix(secure.URL, "https://"), alerting(t)} {
		expect(t, "Acquire", acquireIn(t.Context(), open(t, client.Options{BaseURL: "http://" + address})), lock.ErrUnavailable)
	}
}

// silentListener returns an address that accepts connections and never answers.
func silentListener(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// alerting returns an address that answers a plain request with an alert of TLS, as OpenSSL does.
func alerting(t *testing.T) string {
	t.Helper()
	return strings.TrimPrefix(startCuttingServer(t, new(atomic.Int32), "\x15\x03\x01\x00\x02\x02\x46"), "http://")
}
