package reach

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// How to trust an authority, and how to present a certificate: on the command line, and in a program.
const (
	trust   = "give the PEM certificate of its authority with --ca or PADDOCK_CA, in Go with RootCAs in Options.TLS"
	present = "present a certificate that it trusts: with --cert and --cert-key, in Go with Certificates in Options.TLS"
)

// Explain returns why err left a request without a connection or an answer, and what to do, as the middle of a sentence
// without a full stop. It is empty for an error that says nothing of the connection.
func Explain(err error) string {
	if text := certificate(err); text != "" {
		return text
	}
	var name *net.DNSError
	var operation *net.OpError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return "the port does not speak TLS; begin its URL with http://, or give the port that does"
	case IsTLSAlert(err):
		return strings.ToLower(BeginWithHTTPS[:1]) + BeginWithHTTPS[1:]
	case strings.Contains(err.Error(), "malformed HTTP "), strings.Contains(err.Error(), "malformed MIME header"):
		return "the answer is not HTTP, so it is not from Paddock; check the URL"
	case errors.As(err, &name):
		return lookup(name)
	case errors.As(err, &operation) && operation.Op == "remote error":
		return fmt.Sprintf("the service refused the TLS connection (%s); if it requires a client certificate, %s",
			strings.TrimPrefix(operation.Err.Error(), "tls: "), present)
	case errors.As(err, &operation) && operation.Op == "proxyconnect":
		return fmt.Sprintf("the proxy of HTTPS_PROXY or HTTP_PROXY cannot be used: %s; correct it, or name the service in NO_PROXY",
			dial(operation.Err))
	case errors.As(err, &operation) && operation.Op == "dial":
		return dial(err)
	case isTimeout(err):
		return "no answer came in time; check the URL and the network, and whether the service reaches its database: its /readyz tells"
	}
	return ""
}

// BeginWithHTTPS says what to do about a port that speaks TLS.
const BeginWithHTTPS = "The port speaks TLS: begin its URL with https://"

// IsTLSAlert reports whether a port has answered a plain request with an alert of TLS, and so has not read it.
func IsTLSAlert(err error) bool {
	return strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`) // net/http has no type for it
}

// WantsTLS reports whether an answer to a plain request says that the port speaks TLS, as Go, nginx, Apache and HAProxy
// do. They have not read the request.
func WantsTLS(status int, text []byte) bool {
	said := strings.ToLower(string(text[:min(len(text), 4<<10)]))
	return status == http.StatusBadRequest && (strings.Contains(said, "https server") ||
		strings.Contains(said, "https port") || strings.Contains(said, "ssl-enabled server port"))
}

// certificate explains a certificate of the service that is not trusted.
func certificate(err error) string {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var roots x509.SystemRootsError
	var other *tls.CertificateVerificationError
	switch {
	case errors.As(err, &unknown):
		return "the certificate of the service is signed by an authority that is not trusted; " + trust
	case errors.As(err, &roots):
		return "this system has no list of trusted authorities; install its package of CA certificates, or " + trust
	case errors.As(err, &host):
		return fmt.Sprintf("the certificate of the service is not for %s, but for %s; give one of those as the host in the URL, or "+
			"renew the certificate with this name", host.Host, namesOf(host.Certificate))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return validity(invalid.Cert, time.Now())
	case errors.As(err, &invalid):
		return "the certificate of the service cannot be used for it; renew it as a server's certificate, or " + trust
	case errors.As(err, &other):
		return "the certificate of the service cannot be verified; " + trust
	}
	return ""
}

// namesOf returns the hosts that a certificate is for.
func namesOf(c *x509.Certificate) string {
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "no host"
	}
	return strings.Join(names, ", ")
}

func validity(c *x509.Certificate, now time.Time) string {
	if now.Before(c.NotBefore) {
		return fmt.Sprintf("the certificate of the service, or of its authority, is valid only from %s; set the clock of this machine, "+
			"or wait", c.NotBefore.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("the certificate of the service, or of its authority, has expired at %s; renew it",
		c.NotAfter.UTC().Format(time.RFC3339))
}

// lookup explains a host without an address.
func lookup(e *net.DNSError) string {
	switch {
	case e.IsNotFound:
		return fmt.Sprintf("there is no host %s; correct the URL, or the name in DNS", e.Name)
	case e.IsTimeout:
		return fmt.Sprintf("DNS did not answer in time for the host %s; check the network and the DNS servers of this machine", e.Name)
	}
	return fmt.Sprintf("the host %s cannot be looked up in DNS now; check the network and the DNS servers of this machine", e.Name)
}

// dial explains a connection that was not made.
func dial(err error) string {
	at := addressOf(err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("connection refused: nothing listens on %s; start the service there, or correct its URL", at)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("there is no socket %s; start the service, or correct its URL", at)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("this user may not connect to %s; for a socket, join the group that it belongs to", at)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return fmt.Sprintf("there is no way to %s in the network; check the network and the URL", at)
	case errors.Is(err, syscall.ECONNRESET):
		return fmt.Sprintf("%s closed the connection at once; check the URL, and what is in between", at)
	case isTimeout(err):
		return fmt.Sprintf("no connection to %s in time; check the URL, and whether a firewall is in between", at)
	}
	return fmt.Sprintf("no connection to %s could be made; check the URL and the network", at)
}

// addressOf returns the address that could not be reached.
func addressOf(err error) string {
	var operation *net.OpError
	if errors.As(err, &operation) && operation.Addr != nil {
		return operation.Addr.String()
	}
	return "the service"
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
