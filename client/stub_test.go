package client_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

const (
	leaseText = "5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11"
	leaseJSON = `{"name":"jobs:nightly","lease_id":"` + leaseText + `","fencing_token":41,"slot":2,"mode":"shared",
		"holder":"worker-1","ttl_ms":30000,"grace_ms":2000,"max_hold_ms":60000,"expires_in_ms":29000,
		"acquired_at":"2026-01-02T03:04:05.678901Z","expires_at":"2026-01-02T03:04:35.678901Z",
		"metadata":{"host":"db-3"},"a_later_field":true}`
	freeJSON = `{"name":"jobs:nightly","state":"free","revision":2,"fencing_token":41,
		"as_of":"2026-01-02T03:04:07.789012Z","waiters":0,"leases":[]}`
	fencedJSON = `{"key":"accounts:42","lock":"jobs:nightly","fencing_token":41,"version":1,"value":null,
		"written_at":"2026-01-02T03:04:06.789012Z"}`
)

var leaseID = lock.LeaseID{
	0x5e, 0x0c, 0x7a, 0x0e, 0x6d, 0x6e, 0x4b, 0x0f, 0x9e, 0x0b, 0x0d, 0x8d, 0x2c, 0x5b, 0x6a, 0x11,
}

// A roundTripFunc is a RoundTripper without a network.
type roundTripFunc func(*http.Request) (*http.Response, error)

func (rt roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return rt(r) }

// over returns a Client that uses the transport.
func over(t *testing.T, rt roundTripFunc) *client.Client {
	t.Helper()
	return open(t, client.Options{BaseURL: "http://paddock.test", HTTP: &http.Client{Transport: rt}})
}

func open(t *testing.T, o client.Options) *client.Client {
	t.Helper()
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// saying returns a transport that answers every request with the given response.
func saying(status int, contentType, body string) roundTripFunc {
	return func(r *http.Request) (*http.Response, error) { return reply(r, status, contentType, body), nil }
}

func reply(r *http.Request, status int, contentType, body string) *http.Response {
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Request: r,
		Header: http.Header{"Content-Type": {contentType}, "Paddock-Api": {"v1"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// heard returns a transport that records the request and its JSON body in to.
func heard(to *request, status int, body string) roundTripFunc {
	return func(r *http.Request) (*http.Response, error) {
		to.method, to.uri, to.header = r.Method, r.URL.RequestURI(), r.Header
		if r.Body != nil {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			to.text = strings.TrimSpace(string(text))
			if err := json.Unmarshal(text, &to.body); err != nil {
				return nil, err
			}
		}
		return reply(r, status, "application/json", body), nil
	}
}

type request struct {
	method, uri, text string
	header            http.Header
	body              map[string]any
}

func acquire(c *client.Client, t *testing.T) (lock.Grant, error) {
	t.Helper()
	return c.Acquire(t.Context(), lock.Acquire{Locks: lock.One("jobs:nightly"), LeaseID: leaseID, Holder: "worker-1"})
}

func read(c *client.Client, t *testing.T) error {
	t.Helper()
	_, err := c.Lock(t.Context(), "jobs:nightly")
	return err
}
