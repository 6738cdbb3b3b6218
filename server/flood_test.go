package server_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/server"
)

// slowClients opens this many connections that send the text and then nothing. It returns a function that waits for
// their answers.
func slowClients(t *testing.T, p *pipeListener, count int, text string) func() (statuses map[int]int, longest time.Duration) {
	t.Helper()
	type end struct {
		status int
		after  time.Duration
	}
	ends := make(chan end, count)
	for range count {
		c, err := p.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		go func() {
			if _, err := io.WriteString(c, text); err != nil {
				t.Error(err)
			}
			var e end
			in := bufio.NewReader(c)
			if got, err := http.ReadResponse(in, nil); err == nil {
				e.status = got.StatusCode
			}
			_, err := io.Copy(io.Discard, in)
			e.after = time.Since(start)
			if err := errors.Join(err, c.Close()); err != nil {
				t.Error(err)
			}
			ends <- e
		}()
	}
	return func() (map[int]int, time.Duration) {
		statuses, longest := map[int]int{}, time.Duration(0)
		for range count {
			e := <-ends
			statuses[e.status]++
			longest = max(longest, e.after)
		}
		return statuses, longest
	}
}

// TestSlowSendersAreDisconnected also checks that other clients are served at once.
func TestSlowSendersAreDisconnected(t *testing.T) {
	t.Parallel()
	serving, trust := certified(t)
	synctest.Test(t, func(t *testing.T) {
		plain, p, end := servePiped(t, server.Options{Locks: &fake{}})
		secure, pTLS, endTLS := servePipedTLS(t, server.Options{Locks: &fake{}}, serving, trust)
		headers := slowClients(t, p, 500, "GET /v1/locks HTTP/1.1\r\nHost: p\r\nX-Slow: ")
		body := "Host: p\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
		bodies := slowClients(t, p, 200, "POST "+acquirePath+" HTTP/1.1\r\n"+body)
		silent := slowClients(t, p, 300, "")
		handshakes := slowClients(t, pTLS, 500, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
		synctest.Wait()
		for _, s := range []harness{plain, secure} {
			start := time.Now()
			s.post(acquirePath, `{"holder": "a"}`).want(t, http.StatusCreated, nil)
			if took := time.Since(start); took != 0 {
				t.Errorf("other clients wait for %v", took)
			}
		}
		for name, c := range map[string]struct {
			ends   func() (map[int]int, time.Duration)
			status int
			within time.Duration
		}{
			"half a header":    {headers, 0, server.HeaderTimeout + 3*time.Second},
			"nothing":          {silent, 0, server.HeaderTimeout + 3*time.Second},
			"half a handshake": {handshakes, 0, server.HeaderTimeout + 3*time.Second},
			"half a body":      {bodies, http.StatusBadRequest, server.ReadTimeout + 3*time.Second},
		} {
			statuses, longest := c.ends()
			if len(statuses) != 1 || statuses[c.status] == 0 || longest > c.within {
				t.Errorf("%s: answered %v within %v", name, statuses, longest)
			}
		}
		secure.client.CloseIdleConnections()
		if err := errors.Join(end(), endTLS()); err != nil {
			t.Error(err)
		}
	})
}

// TestClientsThatReadNoAnswersAreGivenUp also checks that other clients are served at once.
func TestClientsThatReadNoAnswersAreGivenUp(t *testing.T) {
	t.Parallel()
	const (
		count    = 50
		within   = server.DefaultRequestTimeout + server.WriteTimeout + 5*time.Second // which TLS takes to say that it closes
		http1    = "GET /ui/ HTTP/1.1\r\nHost: p\r\n\r\n"
		settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
		get      = "\x00\x00\x0b\x01\x05\x00\x00\x00\x01\x82\x87\x44\x04/ui/\x41\x01p" // a frame of headers
		http2    = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings + get
	)
	for name, c := range map[string]struct {
		protocol, text string
		reads          bool // the connection, but opens no stream's window further
	}{
		"HTTP/1.1":                   {"http/1.1", http1, false},
		"HTTP/2":                     {"h2", http2, false},
		"HTTP/2 with a small window": {"h2", http2, true},
	} {
		serving, trust := certified(t)
		synctest.Test(t, func(t *testing.T) {
			failed := make(chan error, count)
			s, p, end := servePipedTLS(t, server.Options{Locks: &fake{}, UI: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, err := w.Write(make([]byte, 1<<20))
				failed <- err
			})}, serving, trust)
			unread := trust.Clone()
			unread.NextProtos = []string{c.protocol}
			conns := make([]net.Conn, count)
			start := time.Now()
			for i := range conns {
				var err error
				if conns[i], err = p.dialTLS(t.Context(), unread); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(conns[i], c.text); err != nil {
					t.Fatal(err)
				}
				if c.reads {
					go func() { _, _ = io.Copy(io.Discard, conns[i]) }()
				}
			}
			synctest.Wait()
			s.post(acquirePath, `{"holder": "a"}`).want(t, http.StatusCreated, nil)
			if took := time.Since(start); took != 0 {
				t.Errorf("%s: other clients wait for %v", name, took)
			}
			for range conns {
				if err := <-failed; err == nil || time.Since(start) > within {
					t.Errorf("%s: given up after %v with %v", name, time.Since(start), err)
				}
			}
			for _, conn := range conns {
				_ = conn.Close() // the server may have closed it
			}
			s.client.CloseIdleConnections()
			if err := end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// An endlessBody is a body that never ends. It counts the bytes read.
type endlessBody struct{ read int }

func (e *endlessBody) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += len(p)
	return len(p), nil
}

func TestEndlessBodyIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: &fake{}})
	body := new(endlessBody)
	r := httptest.NewRequest(http.MethodPost, acquirePath, body)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	server.New(server.Options{Locks: &fake{}}).ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge || body.read > 2*server.MaxBodySize {
		t.Errorf("%d after %d bytes", w.Code, body.read)
	}

	c := s.dial()
	if _, err := io.WriteString(c, "POST "+acquirePath+" HTTP/1.1\r\nHost: p\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	go func() { // until the server closes the connection
		for err := error(nil); err == nil; _, err = io.WriteString(c, "400\r\n"+strings.Repeat(" ", 0x400)+"\r\n") {
		}
	}()
	got, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || got.StatusCode != http.StatusRequestEntityTooLarge || !got.Close {
		t.Errorf("%v %v", got, err)
	}
}
