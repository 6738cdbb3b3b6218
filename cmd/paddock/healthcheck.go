package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

type healthcheckCommand struct {
	URL     string        `placeholder:"URL" variable:"PADDOCK_URL" help:"Base URL of the replica. Without it, the address in PADDOCK_LISTEN, else http://127.0.0.1:8080; over TLS if there is PADDOCK_TLS_CERT."`
	Timeout time.Duration `default:"3s" help:"How long to wait for the answer."`
	trustFlags
}

// Run prints whether the replica is ready. If it is not that is exit code 1,
// since container engines keep the others for themselves.
func (c *healthcheckCommand) Run(ctx context.Context, p *program) error {
	base, err := c.base(p.env)
	if err != nil {
		return err
	}
	secured, err := c.secured(base)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if err := askReady(ctx, secured, base); err != nil {
		return fmt.Errorf("not ready: %w", err)
	}
	_, err = fmt.Fprintln(p.stdout, "ready")
	return err
}

func (c *healthcheckCommand) base(env lookup) (string, error) {
	if c.URL != "" {
		return strings.TrimSuffix(c.URL, "/"), nil
	}
	address, ok := env("PADDOCK_LISTEN")
	if !ok || address == "" {
		address = usualAddress
	}
	base, err := urlOf(address)
	if certificate, ok := env("PADDOCK_TLS_CERT"); ok && certificate != "" {
		base = "https" + strings.TrimPrefix(base, "http")
	}
	return base, err
}

// secured returns what to connect with. A replica that is found by its own variables is asked
// at its address, for which its certificate need not be; and is sent nothing secret.
func (c *healthcheckCommand) secured(base string) (*http.Transport, error) {
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

// askReady returns nil if the replica at base says that it is ready, and else
// what it says.
func askReady(ctx context.Context, secured *http.Transport, base string) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
	if err != nil {
		return err
	}
	defer secured.CloseIdleConnections()
	response, err := (&http.Client{Transport: secured}).Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	said, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, said)
	}
	return err
}
