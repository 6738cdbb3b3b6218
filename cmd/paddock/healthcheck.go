package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-lock/paddock/internal/reach"
	"github.com/paddock-lock/paddock/internal/wire"
)

type healthcheckCommand struct {
	URL     string        `placeholder:"URL" unset:"the address in PADDOCK_LISTEN or in the file of --config, else http://127.0.0.1:8080; over TLS if PADDOCK_TLS_CERT or tls-cert is set" variable:"PADDOCK_URL" help:"Base URL of the replica; not a list."`
	Timeout time.Duration `default:"3s" help:"How long to wait for the answer."`
	trustFlags
	configFlag
}

func (healthcheckCommand) Help() string {
	return `Exit code 0 means that the replica is ready to serve requests, 1 that it is not.

    paddock healthcheck --url http://127.0.0.1:8080`
}

// Run prints that the replica is ready, or fails with exit code 1: container engines reserve the other codes.
func (c *healthcheckCommand) Run(ctx context.Context, p *program) error {
	if c.Timeout == 0 {
		return usagef("--timeout is 0s, in which nothing answers; give more")
	}
	base, err := c.base(p.sources.lookup)
	if err != nil {
		return err
	}
	transport, err := c.transport(base)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if err := checkReady(ctx, transport, base); err != nil {
		return c.explainProbe(base, err)
	}
	_, err = fmt.Fprintln(p.stdout, "ready")
	return err
}

func (c *healthcheckCommand) base(env lookup) (string, error) {
	if strings.Contains(c.URL, ",") {
		return "", errors.New("a health check is of one replica, and --url or PADDOCK_URL has several addresses; give --url with one")
	}
	if c.URL != "" {
		return strings.TrimSuffix(c.URL, "/"), nil
	}
	address, ok := env("PADDOCK_LISTEN")
	if !ok || address == "" {
		address = defaultAddress
	}
	base, err := localURL(address)
	if err != nil {
		return "", fmt.Errorf("PADDOCK_LISTEN is %s, which is not HOST:PORT or unix:PATH; give --url", address)
	}
	if certificate, ok := env("PADDOCK_TLS_CERT"); ok && certificate != "" && !strings.HasPrefix(base, unixScheme) {
		base = "https" + strings.TrimPrefix(base, "http")
	}
	return base, nil
}

// transport returns the transport of the request. A replica that is found by its own variables is addressed by its IP
// address, for which its certificate need not be valid; the request contains no secret.
func (c *healthcheckCommand) transport(base string) (*http.Transport, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if c.URL == "" && c.CA == "" && strings.HasPrefix(base, "https:") {
		config.InsecureSkipVerify = true
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = config
	return transport, nil
}

// checkReady returns nil if the replica at base is ready, else an error with its answer.
func checkReady(ctx context.Context, transport *http.Transport, base string) (err error) {
	if path, unix := strings.CutPrefix(base, unixScheme); unix {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		base = "http://localhost"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if response.Header.Get(wire.HeaderAPI) != wire.APIVersion {
		return fmt.Errorf("%s, but %w; check the URL", response.Status, errNotPaddock)
	}
	if response.StatusCode != http.StatusOK {
		return &refusedProbe{response.Status, string(answer)}
	}
	return err
}

// errNotPaddock says that a server answers that is not Paddock.
var errNotPaddock = errors.New("another server sent it")

// A refusedProbe is the answer of a replica that is not ready.
type refusedProbe struct{ status, answer string }

func (r *refusedProbe) Error() string { return r.status + ": " + r.answer }

// paddockAnswers reports whether Paddock serves on a checked address of this machine, with TLS or without.
func paddockAnswers(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	base, err := localURL(address)
	if err != nil {
		return false
	}
	for _, url := range []string{base, strings.Replace(base, "http:", "https:", 1)} {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.Proxy = nil
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} // nothing secret is sent
		err := checkReady(ctx, transport, url)
		var refused *net.OpError // by a server that requires a client certificate
		if err == nil || errors.As(err, new(*refusedProbe)) || errors.As(err, &refused) && refused.Op == "remote error" {
			return true
		}
	}
	return false
}

// explainProbe says what to do about a probe that got no answer.
func (c *healthcheckCommand) explainProbe(base string, err error) error {
	var verification *tls.CertificateVerificationError
	switch {
	case errors.As(err, &verification) && c.URL == "":
		return fmt.Errorf("cannot verify the certificate of %s (%w); give --url with a host that the certificate names, or leave out --ca "+
			"and PADDOCK_CA: the address of the replica's own settings needs neither", base, verification.Err)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("not ready: nothing listens on %s; start the replica, or correct --url", base)
	}
	if why := reach.Explain(err); why != "" {
		return fmt.Errorf("not ready: %s: %s", base, why)
	}
	return fmt.Errorf("not ready: %w", err)
}
