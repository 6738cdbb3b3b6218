package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// defaultAddress is where the service listens by default.
const defaultAddress = "127.0.0.1:8080"

// errBeyondLoopback says that other machines can reach an address.
var errBeyondLoopback = errors.New("other machines can reach that address")

// checkAddress resolves the address in the flag, HOST:PORT, so that the address that is bound is the one that was
// checked. A socket, unix:PATH, is local and needs no resolution. Unless beyondLoopback, it refuses with
// errBeyondLoopback what other machines can reach: an empty host, an unspecified address, and a name with an address
// that is not loopback.
func checkAddress(ctx context.Context, flag, address string, beyondLoopback bool) (string, error) {
	if path, unix := strings.CutPrefix(address, unixScheme); unix {
		if !filepath.IsAbs(path) {
			return "", usagef("%s %s: give an absolute path, such as unix:/run/paddock.sock", flag, address)
		}
		return address, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", usagef("%s %s: give HOST:PORT, such as %s, or unix:PATH", flag, address, defaultAddress)
	}
	if _, err := net.DefaultResolver.LookupPort(ctx, "tcp", port); err != nil {
		return "", usagef("%s %s: %q is no port; give a number from 0 to 65535, where 0 is any free port", flag, address, port)
	}
	hosts, err := resolve(ctx, host)
	if err != nil {
		return "", usagef("%s %s: %w", flag, address, err)
	}
	if !beyondLoopback && !loopback(hosts) {
		return "", errBeyondLoopback
	}
	if len(hosts) > 0 {
		host = hosts[0].String()
	}
	return net.JoinHostPort(host, port), nil
}

// bind listens on a checked address of the flag.
func bind(ctx context.Context, flag, address string) (net.Listener, error) {
	if path, unix := strings.CutPrefix(address, unixScheme); unix {
		return bindSocket(ctx, flag, path)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && paddockAnswers(ctx, address):
		return nil, inUseBy("a Paddock that runs already", flag, address)
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, inUseBy("another process", flag, address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("this user may not listen on %s; choose a port above 1023 with %s", address, flag)
	}
	return listener, err
}

// inUseBy returns the error for an address in use.
func inUseBy(user, flag, address string) error {
	return fmt.Errorf("%s is in use by %s; stop it, or choose another address with %s HOST:PORT (port 0 is any free port)",
		address, user, flag)
}

// checkApart returns a usage error if the checked addresses of --listen and --metrics-listen are one.
func checkApart(main, metrics string) error {
	host, port, err := net.SplitHostPort(main)
	other, otherPort, err2 := net.SplitHostPort(metrics)
	overlap := main == metrics
	if err == nil && err2 == nil { // else one of them is a socket
		everywhere := func(host string) bool {
			ip, err := netip.ParseAddr(host)
			return host == "" || err == nil && ip.IsUnspecified()
		}
		overlap = port == otherPort && port != "0" && (host == other || everywhere(host) || everywhere(other))
	}
	if overlap {
		return usagef("%s %s is the address of --listen; give another one, or leave the flag out for /metrics at --listen", metricsFlag, metrics)
	}
	return nil
}

// resolve returns the addresses of host, IPv4 first; none for the empty host, which means all addresses of this
// machine.
func resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if host == "" {
		return nil, nil
	}
	hosts, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i := range hosts {
		hosts[i] = hosts[i].Unmap()
	}
	slices.SortStableFunc(hosts, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
	return hosts, err
}

// loopback reports whether there are addresses, and all are loopback.
func loopback(hosts []netip.Addr) bool {
	return len(hosts) > 0 && !slices.ContainsFunc(hosts, func(a netip.Addr) bool { return !a.IsLoopback() })
}

// localURL returns the base URL by which this machine reaches a listener on address, which may be unspecified.
func localURL(address string) (string, error) {
	if strings.HasPrefix(address, unixScheme) {
		return address, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// logEvery is how often, at most, refused connections are logged.
const logEvery = 10 * time.Second

// A limitedListener accepts up to a number of concurrent connections, and closes further ones at once, so that their
// clients can go to another replica.
type limitedListener struct {
	net.Listener
	limit int64
	log   *slog.Logger

	open     atomic.Int64
	refused  int64 // since the last log record
	loggedAt time.Time
}

func limitConnections(l net.Listener, limit int, log *slog.Logger) net.Listener {
	return &limitedListener{Listener: l, limit: int64(limit), log: log}
}

// Accept returns the next connection within the limit.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.limit {
			return &countedConn{Conn: c, done: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
		l.open.Add(-1)
		l.refuse(c)
	}
}

// refuse closes the connection. It needs no mutex, since one goroutine accepts.
func (l *limitedListener) refuse(c net.Conn) {
	l.refused++
	if time.Since(l.loggedAt) >= logEvery {
		l.log.Warn("connection limit reached; refusing new connections", "max_connections", l.limit, "refused", l.refused)
		l.refused, l.loggedAt = 0, time.Now()
	}
	if err := c.Close(); err != nil {
		l.log.Debug("cannot close a refused connection", "error", err)
	}
}

// A countedConn is counted until it is closed.
type countedConn struct {
	net.Conn
	done func()
}

func (c *countedConn) Close() error {
	defer c.done()
	return c.Conn.Close()
}

// The tlsFlags configure TLS of the service.
type tlsFlags struct {
	TLSCert     string `name:"tls-cert" placeholder:"FILE" variable:"PADDOCK_TLS_CERT" help:"Serve TLS with this PEM certificate and its chain. It is read again when it changes."`
	TLSKey      string `name:"tls-key" placeholder:"FILE" variable:"PADDOCK_TLS_KEY" help:"PEM private key of --tls-cert."`
	TLSClientCA string `name:"tls-client-ca" placeholder:"FILE" variable:"PADDOCK_TLS_CLIENT_CA" help:"Mutual TLS: require client certificates of these authorities, in PEM."`
}

// check returns a usage error for flags that contradict each other.
func (f tlsFlags) check() error {
	if (f.TLSCert == "") != (f.TLSKey == "") {
		return usagef("--tls-cert and --tls-key must be given together")
	}
	if f.TLSClientCA != "" && f.TLSCert == "" {
		return usagef("--tls-client-ca needs --tls-cert and --tls-key")
	}
	return nil
}

// loadCertificates returns the certificates of the flags, nil for none.
func (f tlsFlags) loadCertificates(log *slog.Logger) (*certificates, error) {
	if f.TLSCert == "" {
		return nil, nil
	}
	c := &certificates{tlsFlags: f, log: log}
	if err := c.reload(); err != nil {
		return nil, usagef("TLS: %w", err)
	}
	return c, nil
}

// reloadEvery is how often, at most, the files of certificates are read.
const reloadEvery = time.Second

// certificates are those of the flags. The files are read again at the first connection of each second, and used if
// they have changed. An error is logged and changes nothing.
type certificates struct {
	tlsFlags
	log *slog.Logger

	mu     sync.Mutex
	readAt time.Time
	text   []byte // of all files
	failed string // the error of the last reload, empty for none
	warned int    // of the certificate's end: endFar, endSoon or ended
	config *tls.Config
}

// listen returns l as a listener for TLS. A nil c returns l.
func (c *certificates) listen(l net.Listener) net.Listener {
	if c == nil {
		return l
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(), nil },
		// A resumed session presents no certificate, even if its authority is no longer trusted.
		SessionTicketsDisabled: c.TLSClientCA != "",
	})
}

// current returns the configuration of the next connection.
func (c *certificates) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.readAt) >= reloadEvery {
		failed := ""
		if err := c.reload(); err != nil {
			failed = err.Error()
		}
		if failed != "" && failed != c.failed {
			c.log.Error("cannot load certificates; keeping the previous ones", "error", failed)
		}
		c.failed = failed
	}
	return c.config
}

// reload reads the files. On an error the configuration stays as it was.
func (c *certificates) reload() error {
	c.readAt = time.Now()
	defer func() { c.warnOfEnd(c.readAt) }()
	cert, err1 := readFile(c.TLSCert, maxCertificates)
	key, err2 := readFile(c.TLSKey, maxCertificates)
	var authorities []byte
	var err3 error
	if c.TLSClientCA != "" {
		authorities, err3 = readFile(c.TLSClientCA, maxCertificates)
	}
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	text := bytes.Join([][]byte{cert, key, authorities}, []byte{0})
	if bytes.Equal(text, c.text) {
		return nil
	}
	config, err := c.build(cert, key, authorities)
	if err != nil {
		return err
	}
	c.text, c.config, c.warned = text, config, endFar
	leaf := config.Certificates[0].Leaf
	c.log.Info("certificates loaded", "names", leaf.DNSNames, "not_after", leaf.NotAfter, "mutual_tls",
		c.TLSClientCA != "")
	return nil
}

// How near the end of a certificate is.
const (
	endFar  = iota
	endSoon // less than a tenth of its life is left
	ended   // or not begun
)

// warnOfEnd logs once that the certificate is not valid at now, and once that it ends soon.
func (c *certificates) warnOfEnd(now time.Time) {
	if c.config == nil {
		return
	}
	leaf, before := c.config.Certificates[0].Leaf, c.warned
	invalid := checkValidity(c.TLSCert, leaf, now)
	switch {
	case invalid != nil:
		c.warned = ended
	case leaf.NotAfter.Sub(now) < leaf.NotAfter.Sub(leaf.NotBefore)/10:
		c.warned = endSoon
	default:
		c.warned = endFar
	}
	if c.warned == before {
		return
	}
	switch c.warned {
	case ended:
		c.log.Warn("certificate is not valid now; clients refuse it", "error", invalid)
	case endSoon:
		c.log.Warn("certificate ends soon; renew it", "file", c.TLSCert, "not_after", leaf.NotAfter)
	}
}

// checkValidity returns an error if the certificate in the file is not valid at now.
func checkValidity(file string, leaf *x509.Certificate, now time.Time) error {
	switch {
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("%s is not valid before %s; set the clock of this machine, or use another certificate", file, local(leaf.NotBefore))
	case now.After(leaf.NotAfter):
		return fmt.Errorf("%s expired on %s; renew it", file, local(leaf.NotAfter))
	}
	return nil
}

func (c *certificates) build(cert, key, authorities []byte) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", c.TLSCert, c.TLSKey, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		NextProtos: []string{"h2", "http/1.1"}}
	if c.TLSClientCA == "" {
		return config, nil
	}
	config.ClientAuth, config.SessionTicketsDisabled = tls.RequireAndVerifyClientCert, true
	config.ClientCAs, err = parsePool(c.TLSClientCA, authorities)
	return config, err
}
