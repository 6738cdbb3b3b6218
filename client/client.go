package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/paddock-lock/paddock"
)

const userAgent = "paddock-go"

// Options configure a Client.
type Options struct {
	// BaseURL is the URL above /v1, such as https://locks.example.org or
	// https://example.org/paddock. It must not contain a query, a fragment or a user. For a service
	// that listens on a socket on the same machine it is unix:/run/paddock.sock; then TLS is not
	// used, and HTTP has no Transport. Several addresses of one deployment are separated by commas,
	// in the order of preference: https://a.example.org,https://b.example.org. See Several addresses
	// in the package's documentation.
	BaseURL string
	// Key is the API key, a secret such as pk_k3f9a2xy_…, if the service requires one. It is
	// sent with each request, only to the hosts of the BaseURL, and appears in no error. Over
	// http:// it can be read on the network: use https:// except on the same machine.
	Key string
	// KeyFunc returns the API key, instead of Key, for a key that is replaced while the program
	// runs. It is called for each request, so it must be fast, and again after a request whose
	// key the service refused: with another key, that request is sent once more. After an error
	// the key before is sent. It may be called by several goroutines at once.
	KeyFunc func(context.Context) (string, error)
	// TLS configures trusted authorities and client certificates for the default Transport;
	// nil trusts the system's authorities. It cannot be combined with a Transport in HTTP.
	TLS *tls.Config
	// TLSFunc returns the configuration, instead of TLS, for authorities and certificates that are
	// replaced while the program runs. It is called for each request, so it must be fast. While
	// nothing has changed it must return the same pointer; for another one, new connections are
	// made. After an error the configuration before is used.
	TLSFunc func() (*tls.Config, error)
	// HTTP sends the requests; nil uses a client without a Timeout. If it has no Transport,
	// a default one keeps up to 256 idle connections to the service. HTTP is copied, and its
	// CheckRedirect is ignored: redirects are not followed. A Timeout of HTTP or of its
	// Transport must be longer than the waits of calls, or it ends them early.
	HTTP *http.Client
	// Propagate adds headers to a request, from the context of its call: those of a trace, with
	// otel.GetTextMapPropagator().Inject(ctx, propagation.HeaderCarrier(header)). Requests that
	// several calls share have none, see Coalescing; NoCoalesce gives each call its own. Nil:
	// no further headers.
	Propagate func(ctx context.Context, header http.Header)
	// NoCoalesce sends each call in a request of its own. See Coalescing in the package's
	// documentation.
	NoCoalesce bool
}

// A Client is a paddock.Service over HTTP. It is safe for concurrent use.
type Client struct {
	addresses *addresses
	key       func(context.Context) (string, error) // see keySource
	propagate func(context.Context, http.Header)    // may be nil
	timeout   time.Duration                         // of an attempt, by the HTTP client; zero: none
	waits     *waits
	shared    *coalescer // nil with NoCoalesce
	hub       *hub
}

var _ paddock.Service = (*Client)(nil)

// New returns a Client, or an error if the Options are invalid. It sends nothing.
func New(o Options) (*Client, error) {
	if err := checkKey(o.Key); err != nil {
		return nil, fmt.Errorf("client: the API key %w", err)
	}
	switch {
	case o.Key != "" && o.KeyFunc != nil:
		return nil, errors.New("client: Key and KeyFunc are both set; set one of them")
	case o.TLS != nil && o.TLSFunc != nil:
		return nil, errors.New("client: TLS and TLSFunc are both set; set one of them")
	case (o.TLS != nil || o.TLSFunc != nil) && o.HTTP != nil && o.HTTP.Transport != nil:
		return nil, errors.New("client: TLS and HTTP.Transport are both set; configure TLS in the Transport")
	}
	all, err := newAddresses(o)
	if err != nil {
		return nil, err
	}
	c := &Client{addresses: all, key: keySource(o), propagate: o.Propagate, waits: newWaits(all.several())}
	if o.HTTP != nil {
		c.timeout = o.HTTP.Timeout
	}
	c.hub = &hub{events: c.Events}
	if !o.NoCoalesce {
		c.shared = newCoalescer(c)
	}
	return c, nil
}

// checkKey returns an error if the key cannot be sent in a header. The error does not
// contain the key.
func checkKey(key string) error {
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c > '~' {
			return fmt.Errorf("has an invalid character at byte %d, such as a space or a line break; copy the key again", i)
		}
	}
	return nil
}

// String returns the BaseURL. It leaves out the Key, which is a secret.
func (o Options) String() string { return o.BaseURL }

// GoString returns the same as String, so that %#v does not print the Key.
func (o Options) GoString() string { return o.String() }

// pingTimeout is the idle time of an HTTP/2 connection before it is pinged, and the time allowed
// for the answer. All calls share such a connection, so a dead one must be replaced well within
// a TTL. With HTTP/1.1, the end of a call's context closes its connection.
const pingTimeout = 2 * time.Second

// httpClient returns a copy of o.HTTP that does not follow redirects and has a default transport
// unless o.HTTP has one.
func httpClient(o Options) *http.Client {
	var c http.Client
	if o.HTTP != nil {
		c = *o.HTTP
	}
	switch {
	case o.TLSFunc != nil:
		c.Transport = &tlsTransport{tlsConfig: o.TLSFunc}
	case c.Transport == nil:
		c.Transport = transport(o.TLS)
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

// socketTransport returns a transport that sends all requests to the socket at the path.
func socketTransport(path string) *http.Transport {
	t := transport(nil)
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	t.Proxy = nil
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.DialContext(ctx, "unix", path) }
	return t
}
