package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

// TestEveryAnswerHasContentLength checks answers whose length net/http sets, and longer ones; HEAD must match GET.
func TestEveryAnswerHasContentLength(t *testing.T) {
	t.Parallel()
	many := func(paddock.LockQuery) (paddock.Page[lock.Lock], error) {
		return paddock.Page[lock.Lock]{Items: make([]lock.Lock, 100)}, nil
	}
	one := func(name string) (lock.Lock, error) { return lock.Record{Name: name}.Lock(instant), nil }
	h := server.New(server.Options{Locks: &fake{locks: many, lock: one}})
	address, trust := secured(t, h)
	former := trust.Clone()
	former.NextProtos = []string{"http/1.1"}
	for protocol, transport := range map[string]*http.Transport{
		"HTTP/1.1": {TLSClientConfig: former, DisableCompression: true},
		"HTTP/2.0": {TLSClientConfig: trust, DisableCompression: true, ForceAttemptHTTP2: true},
	} {
		t.Cleanup(transport.CloseIdleConnections)
		s := harness{t: t, url: "https://" + address, client: &http.Client{Transport: transport}}
		for _, c := range []struct{ name, method, path, body string }{
			{"a lease", http.MethodPost, acquirePath, `{"holder": "a"}`},
			{"a lease with metadata", http.MethodPost, acquirePath, `{"holder": "a", "metadata": {"a": "` + strings.Repeat("b", 3000) + `"}}`},
			{"a problem", http.MethodPost, acquirePath, `{"holder": 1}`},
			{"a lock", http.MethodGet, "/v1/locks/a", ""},
			{"a hundred locks", http.MethodGet, "/v1/locks", ""},
		} {
			got := s.send(c.method, c.path, c.body)
			if got.Proto != protocol || got.ContentLength != int64(len(got.text)) || got.TransferEncoding != nil || got.text == "" {
				t.Errorf("%s over %s: length %d, encoded as %v: %s", c.name, got.Proto, got.ContentLength, got.TransferEncoding, got.text)
			}
			if head := s.send(http.MethodHead, c.path, ""); c.method == http.MethodGet && head.ContentLength != got.ContentLength {
				t.Errorf("%s over %s: %d by HEAD, %d by GET", c.name, got.Proto, head.ContentLength, got.ContentLength)
			}
		}
	}
}
