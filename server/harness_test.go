package server_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/server"
)

const (
	leaseID = "5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11"
	oneID   = `{"lease_id": "` + leaseID + `"}`
)

// instant is the database's clock in these tests.
var instant = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

// A harness is a Server behind a real listener, with a client that checks every answer.
type harness struct {
	t      testing.TB
	url    string
	client *http.Client
	log    *proctest.Transcript
}

// serve starts a Server that logs everything.
func serve(t testing.TB, o server.Options) harness {
	t.Helper()
	log := new(proctest.Transcript)
	o.Log = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h := httptest.NewServer(server.New(o))
	t.Cleanup(h.Close)
	client := &http.Client{
		Transport:     contract{t, h.Client().Transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return harness{t, h.URL, client, log}
}

// An answer is a response whose body has been read.
type answer struct {
	*http.Response
	text string
	body map[string]any // nil if it is not a JSON object
}

func (s harness) do(r *http.Request) answer {
	s.t.Helper()
	response, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := answer{Response: response, text: string(text)}
	if strings.Contains(response.Header.Get("Content-Type"), "json") && len(text) > 0 {
		if err := json.Unmarshal(text, &a.body); err != nil {
			s.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
	}
	return a
}

// dial returns a new connection to the server.
func (s harness) dial() net.Conn {
	s.t.Helper()
	c, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() }) // the server or the test may have closed it
	return c
}

func (s harness) request(method, path, body string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

func (s harness) send(method, path, body string) answer {
	s.t.Helper()
	return s.do(s.request(method, path, body))
}

func (s harness) get(path string) answer { s.t.Helper(); return s.send(http.MethodGet, path, "") }

func (s harness) post(path, body string) answer {
	s.t.Helper()
	return s.send(http.MethodPost, path, body)
}

func (a answer) want(t testing.TB, status int, members map[string]any) {
	t.Helper()
	if a.StatusCode != status {
		t.Errorf("status %d, want %d: %s", a.StatusCode, status, a.text)
	}
	for name, want := range members {
		if got := a.body[name]; got != want {
			t.Errorf("%s is %v (%T), want %v: %s", name, got, got, want, a.text)
		}
	}
}
