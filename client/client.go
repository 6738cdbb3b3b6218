package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/paddock-lock/paddock/client/internal/openapi"
	"github.com/paddock-lock/paddock/lock"
)

const userAgent = "paddock-go"

// Options say where the service is.
type Options struct {
	// BaseURL is the address under which /v1 is found, such as
	// https://locks.example.org or https://example.org/paddock. It has no query,
	// no fragment and no user.
	BaseURL string
	// Key is the API key, a secret such as pk_k3f9a2xy_…, where the service asks for one. It
	// is sent with each request, to the host of the BaseURL and no other, and stands in no
	// error. Over http:// everybody on the way can read it: use https:// beyond this machine.
	Key string
	// TLS says whom to trust and which certificate to show, for the Transport that the
	// Client makes; nil for the certificate authorities that the system trusts. It goes
	// with no Transport of HTTP's.
	TLS *tls.Config
	// HTTP sends the requests; nil for one without a Timeout. Without a Transport
	// it has one that keeps up to 256 connections to the server open. It is copied,
	// and its CheckRedirect is not asked: see the package's comment. Calls that wait are cut short by a Timeout of its own, or
	// its Transport's, unless that is longer than their wait.
	HTTP *http.Client
	// NoCoalesce has each call be a request of its own. Otherwise acquires that do not
	// wait, renewals and releases that come while others are under way share requests, as
	// the package's comment says.
	NoCoalesce bool
}

// A Client is a lock.Service over HTTP. It is safe for concurrent use.
type Client struct {
	api    *openapi.Client
	shared *coalescer // nil if no call shares a request
}

var _ lock.Service = (*Client)(nil)

// New returns a Client, or an error that says what is wrong with the Options. It
// sends nothing.
func New(o Options) (*Client, error) {
	if err := checkBaseURL(o.BaseURL); err != nil {
		return nil, fmt.Errorf("client: the base URL %w", err)
	}
	if err := checkKey(o.Key); err != nil {
		return nil, fmt.Errorf("client: the API key %w", err)
	}
	if o.TLS != nil && o.HTTP != nil && o.HTTP.Transport != nil {
		return nil, errors.New("client: give TLS, or a Transport that has it, and not both")
	}
	api, err := openapi.NewClient(o.BaseURL,
		openapi.WithHTTPClient(httpClient(o.HTTP, o.TLS)),
		openapi.WithRequestEditorFn(withHeaders(o.Key)),
	)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	c := &Client{api: api}
	if !o.NoCoalesce {
		c.shared = newCoalescer(c)
	}
	return c, nil
}

func checkBaseURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must begin with http:// or https://")
	case u.Hostname() == "":
		return errors.New("names no host")
	case u.User != nil:
		return errors.New("must not hold a user or a password")
	case u.RawQuery != "" || u.ForceQuery:
		return errors.New("must not have a query")
	case u.Fragment != "":
		return errors.New("must not have a fragment")
	}
	return nil
}

// checkKey returns an error, which does not repeat the key, if it is none that a header
// can have.
func checkKey(key string) error {
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c > '~' {
			return fmt.Errorf("has a character at byte %d that no key has: a space, the end of a line, or the like", i)
		}
	}
	return nil
}

// withHeaders returns what has a request say from whom it comes.
func withHeaders(key string) openapi.RequestEditorFn {
	return func(_ context.Context, r *http.Request) error {
		r.Header.Set("User-Agent", userAgent)
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		return nil
	}
}

// String returns the BaseURL: the Key is a secret.
func (o Options) String() string { return o.BaseURL }

// GoString returns what String does, for %#v.
func (o Options) GoString() string { return o.String() }
