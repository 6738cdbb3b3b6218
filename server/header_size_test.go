package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/server"
)

// TestHTTP1HeaderLimitIsExact counts the bytes on the wire, with one long field and with many short ones.
func TestHTTP1HeaderLimitIsExact(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: inMemory()})
	for _, fields := range []string{"", "Authorization: Bearer x\r\n", strings.Repeat("X: y\r\n", 1000)} {
		for _, long := range []string{"query", "field"} {
			for size, status := range map[int]int{
				server.MaxHeaderSize: http.StatusOK, server.MaxHeaderSize + 1: http.StatusRequestHeaderFieldsTooLarge,
				20_000: http.StatusRequestHeaderFieldsTooLarge, 2 * server.MaxHeaderSize: http.StatusRequestHeaderFieldsTooLarge,
			} {
				if got := sendHeader(t, s, headerOf(size, long, fields)); got.StatusCode != status {
					t.Errorf("%d bytes, most of them in a %s: %s, want %d", size, long, got.Status, status)
				}
			}
		}
	}
}

// TestInputThatIsNoRequestIsRefusedInPlainText checks that it is as openapi.yaml says, also of a header over 20 KiB.
func TestInputThatIsNoRequestIsRefusedInPlainText(t *testing.T) {
	t.Parallel()
	plain := func(l net.Listener) net.Listener { return l }
	s := harness{t: t, url: "http://" + served(t, server.New(server.Options{Locks: inMemory()}), plain)}
	for header, want := range map[string]string{
		headerOf(20<<10, "field", ""):                             "431 application/problem+json",
		headerOf(21<<10, "field", ""):                             "431 text/plain; charset=utf-8",
		"GET /v1/locks/%zz HTTP/1.1\r\nHost: p\r\n\r\n":           "400 text/plain; charset=utf-8",
		"GET /v1/locks/a%2Fb HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n": "400 application/problem+json",
	} {
		got := sendHeader(t, s, header)
		if got := fmt.Sprint(got.StatusCode, " ", got.Header.Get("Content-Type")); got != want {
			t.Errorf("%.40q: %s, want %s", header, got, want)
		}
	}
}

// headerOf returns a header of this many bytes with the fields, padded in its query or in a field.
func headerOf(size int, long, fields string) string {
	before, after := "GET /livez?", " HTTP/1.1\r\nHost: p\r\n"+fields+"\r\n"
	if long == "field" {
		before, after = "GET /livez HTTP/1.1\r\nHost: p\r\n"+fields+"X-Long: ", "\r\n\r\n"
	}
	return before + strings.Repeat("x", size-len(before)-len(after)) + after
}

// sendHeader sends the header on a new connection and returns the answer without reading its body.
func sendHeader(t *testing.T, s harness, header string) *http.Response {
	t.Helper()
	c := s.dial()
	go func() { _, _ = io.WriteString(c, header) }() // the server may not read all of it
	got, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestHTTP2HeaderLimitIsExact counts as RFC 9113 does, with 32 more bytes per field.
func TestHTTP2HeaderLimitIsExact(t *testing.T) {
	t.Parallel()
	address, trust := secured(t, server.New(server.Options{Locks: inMemory()}))
	transport := &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	s := harness{t: t, url: "https://" + address, client: &http.Client{Transport: contract{t, transport}}}
	sized := func(size int) *http.Request {
		r := s.request(http.MethodGet, "/livez", "")
		r.Header.Set("User-Agent", "u")
		fields := [][2]string{
			{":method", "GET"}, {":scheme", "https"}, {":path", "/livez"}, {":authority", address}, {"user-agent", "u"}, {"x-long", ""},
		}
		for _, f := range fields {
			size -= len(f[0]) + len(f[1]) + 32
		}
		r.Header.Set("X-Long", strings.Repeat("x", size))
		return r
	}
	got := s.do(sized(server.MaxHeaderSize))
	if got.want(t, http.StatusOK, nil); got.ProtoMajor != 2 {
		t.Errorf("answered by %s", got.Proto)
	}
	s.do(sized(server.MaxHeaderSize+1)).want(t, http.StatusRequestHeaderFieldsTooLarge, map[string]any{"code": "header_too_large"})
}
