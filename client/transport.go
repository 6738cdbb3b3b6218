package client

import (
	"net"
	"net/http"
	"time"
)

// sender returns a copy of h, or of one of our own if h is nil, that hands
// redirects back instead of following them.
func sender(h *http.Client) *http.Client {
	if h == nil {
		h = &http.Client{Transport: transport()}
	}
	c := *h
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// transport returns net/http's usual transport but for the number of idle
// connections kept to one host: with the usual two, the third caller at a time
// dials for each call.
func transport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          512,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}
