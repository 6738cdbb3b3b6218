package server_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

// TestAmbiguousFramingClosesTheConnection sends requests whose end another server could see elsewhere. Each is
// followed by an acquire that such a server would take for part of the body, or for a request.
func TestAmbiguousFramingClosesTheConnection(t *testing.T) {
	t.Parallel()
	const (
		smuggled = "POST /v1/locks/smuggled/acquire HTTP/1.1\r\nHost: p\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"holder\":\"s\"}"
		chunk    = "e\r\n{\"holder\":\"a\"}\r\n0\r\n\r\n"
		chunked  = "Transfer-Encoding: chunked\r\n"
	)
	post := func(version, framing, body string) string {
		return "POST " + acquirePath + " HTTP/" + version + "\r\nHost: p\r\nContent-Type: application/json\r\n" + framing + "\r\n" + body
	}
	for name, c := range map[string]framing{
		"Content-Length and chunks":        {post("1.1", "Content-Length: 4\r\n"+chunked, chunk), http.StatusCreated, true},
		"chunks and Content-Length":        {post("1.1", chunked+"Content-Length: 24\r\n", chunk), http.StatusCreated, true},
		"chunks":                           {post("1.1", chunked, chunk), http.StatusCreated, true},
		"chunks that no handler reads":     {"GET /version HTTP/1.1\r\nHost: p\r\n" + chunked + "\r\n" + chunk, http.StatusOK, true},
		"chunks on an unknown path":        {"POST /v1/nothing HTTP/1.1\r\nHost: p\r\n" + chunked + "\r\n" + chunk, http.StatusNotFound, true},
		"chunks of HTTP/1.0":               {post("1.0", "Connection: keep-alive\r\n"+chunked, ""), http.StatusBadRequest, true},
		"two Transfer-Encodings":           {post("1.1", chunked+chunked, chunk), http.StatusNotImplemented, true},
		"two different Content-Lengths":    {post("1.1", "Content-Length: 14\r\nContent-Length: 4\r\n", `{"holder":"a"}`), http.StatusBadRequest, true},
		"Content-Length alone, stays open": {post("1.1", "Content-Length: 14\r\n", `{"holder":"a"}`), http.StatusCreated, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers, second := c.exchange(t, smuggled)
			if len(answers) == 0 || answers[0].StatusCode != c.status || answers[0].Close != c.closes {
				t.Fatalf("answered %v", answers)
			}
			if (len(answers) == 1) != c.closes || second == c.closes {
				t.Errorf("%d answers; the second request was executed: %t", len(answers), second)
			}
		})
	}
}

// A framing is a request, the status of its answer, and whether the server closes the connection.
type framing struct {
	request string
	status  int
	closes  bool
}

// exchange sends the request and another one on one connection. It returns the answers, and whether the other one was
// executed.
func (f framing) exchange(t *testing.T, other string) (answers []*http.Response, carriedOut bool) {
	t.Helper()
	var second atomic.Bool
	s := serve(t, server.Options{Locks: &fake{acquire: func(_ context.Context, a lock.Acquire) (lock.Grant, error) {
		second.CompareAndSwap(false, a.Locks[0].Name == "smuggled")
		return grantOf(a), nil
	}}})
	c := s.dial()
	if _, err := io.WriteString(c, f.request+other); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	for range 2 {
		got, err := http.ReadResponse(in, nil)
		if err != nil {
			break // closed
		}
		answers = append(answers, got)
		if _, err := io.Copy(io.Discard, got.Body); err != nil {
			t.Fatal(err)
		}
	}
	return answers, second.Load()
}
