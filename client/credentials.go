package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// A keyError is the failure of KeyFunc where no key is left to send: nothing was changed.
type keyError struct{ error }

// keySource returns a function that returns the key to send, empty for none. With the error of KeyFunc it returns the
// key before. A Client has the key in there only, so that %+v does not print it.
func keySource(o Options) func(context.Context) (string, error) {
	if o.KeyFunc == nil {
		return func(context.Context) (string, error) { return o.Key, nil }
	}
	var mu sync.Mutex
	last := ""
	return func(ctx context.Context) (string, error) {
		key, err := o.KeyFunc(ctx)
		if err == nil {
			err = checkKey(key)
		}
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			last = key
		}
		return last, err
	}
}

// exchange sends the request with the key. If the service refuses the key, and there is a new one meanwhile, it sends
// the request again.
func (c *Client) exchange(over *http.Client, req *http.Request) (*http.Response, error) {
	key, err := c.key(req.Context())
	if err != nil && key == "" {
		return nil, keyError{fmt.Errorf("the API key cannot be read: %w", err)}
	}
	setKey(req.Header, key)
	res, failed := over.Do(req)
	if failed != nil || res.StatusCode != http.StatusUnauthorized || !isPaddock(res) {
		return res, failed
	}
	again, err := c.key(req.Context())
	switch {
	case again == key && err == nil:
		return res, nil
	case again == key:
		return nil, keyError{errors.Join(fmt.Errorf("the service refused the API key, and the key cannot be read again: %w", err),
			res.Body.Close())}
	}
	if _, err := read(res, maxResponse); err != nil { // so that the connection can be used again
		return nil, keyError{err}
	}
	req = req.Clone(req.Context())
	if req.GetBody != nil {
		if req.Body, err = req.GetBody(); err != nil {
			return nil, keyError{err}
		}
	}
	setKey(req.Header, again)
	return over.Do(req)
}

func setKey(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// A staleTLSError is the failure of TLSFunc where a request was sent with the configuration before.
type staleTLSError struct{ error }

func (e staleTLSError) Error() string {
	return "the TLS configuration cannot be read again: " + e.error.Error()
}

func (e staleTLSError) Unwrap() error { return e.error }

// A tlsTransport sends each request with the TLS configuration that TLSFunc returns then.
type tlsTransport struct {
	tlsConfig func() (*tls.Config, error)

	mu      sync.Mutex
	config  *tls.Config // of current
	current *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (t *tlsTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	current, stale := t.latest()
	if current == nil {
		return nil, errors.Join(keyError{fmt.Errorf("the TLS configuration cannot be read: %w", stale)}, closeBody(r.Body))
	}
	res, err := current.RoundTrip(r)
	if err != nil && stale != nil {
		err = fmt.Errorf("%w; %w", err, staleTLSError{stale})
	}
	return res, err
}

// latest returns the transport with the current configuration; after an error of TLSFunc the one before, or nil.
func (t *tlsTransport) latest() (*http.Transport, error) {
	config, err := t.tlsConfig()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil || t.current != nil && config == t.config {
		return t.current, err
	}
	if t.current != nil {
		t.current.CloseIdleConnections()
	}
	t.config, t.current = config, transport(config)
	return t.current, nil
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (t *tlsTransport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil {
		t.current.CloseIdleConnections()
	}
}

func closeBody(body io.Closer) error {
	if body == nil {
		return nil
	}
	return body.Close()
}
