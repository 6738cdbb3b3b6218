package client

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// pingTimeout is for how long an HTTP/2 connection may be silent before it is asked
// whether it still works, and how long the answer may take. All calls share such a
// connection, so one that swallows everything must be replaced well within a TTL;
// under HTTP/1.1 the end of a call's context does that.
const pingTimeout = 2 * time.Second

// httpClient returns a copy of h that hands redirects back instead of following them,
// and that has a transport of our own unless h has one.
func httpClient(h *http.Client, secured *tls.Config) *http.Client {
	var c http.Client
	if h != nil {
		c = *h
	}
	if c.Transport == nil {
		c.Transport = transport(secured)
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// transport returns net/http's usual transport but for the number of idle
// connections kept to one host: with the usual two, the third caller at a time
// dials for each call.
func transport(secured *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: pingTimeout, PingTimeout: pingTimeout},
		MaxIdleConns:          512,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		TLSClientConfig:       secured.Clone(),
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}
