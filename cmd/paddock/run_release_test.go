package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A breakableProxy forwards requests to a service until it is broken. Then it closes each connection without an
// answer. It records when requests arrived.
type breakableProxy struct {
	server *httptest.Server

	mu        sync.Mutex
	broken    bool
	released  []time.Time // when releases arrived
	prolonged time.Time   // when the last acquire or renewal arrived that was passed on
}

func newBreakableProxy(t *testing.T, base string) *breakableProxy {
	t.Helper()
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	p := &breakableProxy{}
	pass := httputil.NewSingleHostReverseProxy(target)
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.note(r.URL.Path) {
			panic(http.ErrAbortHandler)
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(p.server.Close)
	return p
}

// note records a request, and reports whether the proxy is broken.
func (p *breakableProxy) note(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case strings.HasSuffix(path, "/release"):
		p.released = append(p.released, time.Now())
	case !p.broken:
		p.prolonged = time.Now()
	}
	return p.broken
}

func (p *breakableProxy) breaks() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = true
}

// lateReleases returns how many releases arrived after the end of a lease with that TTL. The client counts from when
// it sent the request, which is earlier than its arrival.
func (p *breakableProxy) lateReleases(ttl time.Duration) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, over := 0, p.prolonged.Add(ttl)
	for _, at := range p.released {
		if at.After(over) {
			n++
		}
	}
	return n
}

func TestReleaseOfAnEndedLeaseIsNotRetried(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	d := newHarness(t)
	proxy := newBreakableProxy(t, d.base)
	d.env["PADDOCK_URL"] = proxy.server.URL
	p := d.startRun("--ttl="+ttl.String(), nightly, "--", "sh", "-c", ignoresSIGTERM)
	p.Stdout.Await(t, `(ready)`)
	proxy.breaks()
	p.expectExit(t, exitLeaseLost, "was stopped", "lease_lost")
	if n := proxy.lateReleases(ttl); n > 1 {
		t.Errorf("%d releases were sent after the end of the lease, want at most 1", n)
	}
	d.awaitEvent(nightly, lock.Expired, "me")
}
