package client

import (
	"context"
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
	// HTTP sends the requests; nil for one without a Timeout. Without a Transport
	// it has one that keeps up to 256 connections to the server open. It is copied,
	// and its CheckRedirect is not asked: see the package's comment. Calls that wait are cut short by a Timeout of its own, or
	// its Transport's, unless that is longer than their wait.
	HTTP *http.Client
}

// A Client is a lock.Service over HTTP. It is safe for concurrent use.
type Client struct {
	api *openapi.Client
}

var _ lock.Service = (*Client)(nil)

// New returns a Client, or an error that says what is wrong with the BaseURL. It
// sends nothing.
func New(o Options) (*Client, error) {
	if err := checkBaseURL(o.BaseURL); err != nil {
		return nil, fmt.Errorf("client: the base URL %w", err)
	}
	api, err := openapi.NewClient(o.BaseURL,
		openapi.WithHTTPClient(sender(o.HTTP)),
		openapi.WithRequestEditorFn(signed),
	)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return &Client{api: api}, nil
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

func signed(_ context.Context, r *http.Request) error {
	r.Header.Set("User-Agent", userAgent)
	return nil
}
