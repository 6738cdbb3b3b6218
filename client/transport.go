package client

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// pingTimeout is the idle time of an HTTP/2 connection before it is pinged, and the time allowed
// for the answer. All calls share such a connection, so a dead one must be replaced well within
// a TTL. With HTTP/1.1, the end of a call's context closes its connection.
const pingTimeout = 2 * time.Second

// httpClient returns a copy of h that does not follow redirects and has a default transport
// unless h has one.
func httpClient(h *http.Client, tlsConfig *tls.Config) *http.Client {
	var c http.Client
	if h != nil {
		c = *h
	}
	if c.Transport == nil {
		c.Transport = transport(tlsConfig)
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// transport returns a transport like http.DefaultTransport that keeps more idle connections to
// a host. With the default of two, a third concurrent caller would dial for each call.
func transport(tlsConfig *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: pingTimeout, PingTimeout: pingTimeout},
		MaxIdleConns:          512,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		TLSClientConfig:       tlsConfig.Clone(),
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}
