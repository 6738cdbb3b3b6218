package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/exchange"
)

var exchanges = flag.String("server.exchanges", "",
	"append every request and its answer to this file; test/contract compares them with openapi.yaml")

// A contract is a RoundTripper that checks what all answers have in common, and records the exchange.
type contract struct {
	t    testing.TB
	next http.RoundTripper
}

// record appends the exchange to the file that the flag names.
func record(t testing.TB, x exchange.Exchange) {
	t.Helper()
	if *exchanges == "" {
		return
	}
	x.Test = t.Name()
	if err := x.Append(*exchanges); err != nil {
		t.Error(err)
	}
}

// RoundTrip sends the request and checks both ways.
func (c contract) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	answer, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if isStream(answer) {
		c.check(r, sent, answer, nil)
		return answer, nil // stream checks it event by event
	}
	got, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(got))
	c.check(r, sent, answer, got)
	return answer, nil
}

func (c contract) check(r *http.Request, sent []byte, answer *http.Response, got []byte) {
	c.t.Helper()
	c.checkHeaders(r, answer)
	record(c.t, exchange.Exchange{
		Method: r.Method, URL: r.URL.String(), Sent: r.Header, Request: sent,
		Status: answer.StatusCode, Received: answer.Header, Answer: got,
	})
	if r.Method == http.MethodHead {
		return
	}
	page := isPage(r.URL.Path) && strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html")
	switch {
	case answer.StatusCode >= http.StatusBadRequest && !page:
		c.checkProblem(r, answer, got)
	case answer.StatusCode < http.StatusBadRequest && r.URL.Path == batchPath:
		c.checkResults(sent, answer, got)
	}
}

func (c contract) checkHeaders(r *http.Request, answer *http.Response) {
	c.t.Helper()
	h := answer.Header
	if h.Get("Paddock-Api") != "v1" || len(h.Get("X-Request-Id")) != 36 || h.Get("X-Content-Type-Options") != "nosniff" {
		c.t.Errorf("%s %s: headers %v", r.Method, r.URL, h)
	}
	if strings.HasPrefix(r.URL.Path, "/v1") && h.Get("Cache-Control") != "no-store" {
		c.t.Errorf("%s %s: Cache-Control %q", r.Method, r.URL, h.Get("Cache-Control"))
	}
	late := answer.StatusCode == http.StatusServiceUnavailable || answer.StatusCode == http.StatusTooManyRequests
	if late && h.Get("Retry-After") == "" {
		c.t.Errorf("%s %s: %d without Retry-After", r.Method, r.URL, answer.StatusCode)
	}
	if answer.StatusCode == http.StatusNotModified && (h.Get("ETag") == "" || h.Get("Content-Type") != "") {
		c.t.Errorf("%s %s: 304 with %v", r.Method, r.URL, h)
	}
}

// checkProblem checks a refusal, also on a path without an operation.
func (c contract) checkProblem(r *http.Request, answer *http.Response, got []byte) {
	c.t.Helper()
	var p map[string]any
	if err := json.Unmarshal(got, &p); err != nil {
		c.t.Errorf("%s %s: %d %q: %v", r.Method, r.URL, answer.StatusCode, got, err)
		return
	}
	if kind := answer.Header.Get("Content-Type"); kind != "application/problem+json" {
		c.t.Errorf("%s %s: a problem of type %q", r.Method, r.URL, kind)
	}
	if p["status"] != float64(answer.StatusCode) || p["title"] != http.StatusText(answer.StatusCode) || p["type"] != "about:blank" ||
		p["request_id"] != answer.Header.Get("X-Request-Id") {
		c.t.Errorf("%s %s: %d with problem %v", r.Method, r.URL, answer.StatusCode, p)
	}
	checkDetail(c.t, p["detail"])
}

// checkDetail checks that the detail is a sentence of this service, without the words of its libraries.
func checkDetail(t testing.TB, detail any) {
	t.Helper()
	text, _ := detail.(string)
	if len(text) < 20 || !strings.HasSuffix(text, ".") {
		t.Errorf("detail %q is not a sentence", text)
	}
	for _, word := range []string{"openapi.", "json:", "jsontext", "unmarshal", "strconv", "int64", "Go ", "*", "chi:"} {
		if strings.Contains(text, word) && !strings.Contains(text, "/openapi.yaml") {
			t.Errorf("detail %q contains %q", text, word)
		}
	}
}

func isStream(answer *http.Response) bool {
	return answer.Header.Get("Content-Type") == "text/event-stream"
}

// isPage reports whether the path is not an operation of openapi.yaml.
func isPage(path string) bool {
	return path == "/" || path == "/metrics" || strings.HasPrefix(path, "/docs") || strings.HasPrefix(path, "/ui")
}
