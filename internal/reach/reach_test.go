package reach_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/reach"
)

func dialing(err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8080}, Err: err}
}

func calling(call string, n syscall.Errno) error { return os.NewSyscallError(call, n) }

func TestFailedConnectionsAreExplained(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"nothing listens on 192.0.2.1:8080; start the service":                dialing(calling("connect", syscall.ECONNREFUSED)),
		"there is no way to 192.0.2.1:8080 in the network":                    dialing(calling("connect", syscall.EHOSTUNREACH)),
		"192.0.2.1:8080 closed the connection at once":                        dialing(calling("connect", syscall.ECONNRESET)),
		"no connection to 192.0.2.1:8080 in time; check the URL, and whether": dialing(os.ErrDeadlineExceeded),
		"no connection to 192.0.2.1:8080 could be made; check the URL":        dialing(errors.New("connect: strange")),
		"there is no socket 192.0.2.1:8080; start the service":                dialing(fmt.Errorf("connect: %w", fs.ErrNotExist)),
		"this user may not connect to 192.0.2.1:8080; for a socket, join":     dialing(calling("connect", syscall.EACCES)),
		"there is no host locks.example; correct the URL": dialing(&net.DNSError{
			Err: "no such host", Name: "locks.example", IsNotFound: true}),
		"DNS did not answer in time for the host locks.example": dialing(&net.DNSError{
			Err: "i/o timeout", Name: "locks.example", IsTimeout: true}),
		"the host locks.example cannot be looked up in DNS now": dialing(&net.DNSError{
			Err: "server misbehaving", Name: "locks.example", IsTemporary: true}),
		"the proxy of HTTPS_PROXY or HTTP_PROXY cannot be used: connection refused: nothing listens on 192.0.2.1:8080": &net.OpError{
			Op: "proxyconnect", Net: "tcp", Err: dialing(calling("connect", syscall.ECONNREFUSED))},
		"no answer came in time":          context.DeadlineExceeded,
		"no list of trusted authorities":  x509.SystemRootsError{Err: errors.New("none")},
		"cannot be used for it; renew it": x509.CertificateInvalidError{Reason: x509.IncompatibleUsage},
		"is valid only from 9999-01-02": x509.CertificateInvalidError{Reason: x509.Expired, Cert: &x509.Certificate{
			NotBefore: time.Date(9999, 1, 2, 0, 0, 0, 0, time.UTC)}},
	} {
		got := reach.Explain(fmt.Errorf("the request: %w", err))
		if !strings.Contains(got, want) {
			t.Errorf("%v is explained as %q, want %q in it", err, got, want)
		}
		for _, raw := range []string{"dial tcp", "lookup ", "i/o timeout", "x509:", "deadline exceeded"} {
			if strings.Contains(got, raw) {
				t.Errorf("%q has the words of Go's packages: %q", got, raw)
			}
		}
	}
	for _, err := range []error{io.ErrUnexpectedEOF, errors.New("other"), context.Canceled} {
		if got := reach.Explain(err); got != "" {
			t.Errorf("%v, which says nothing of the connection, is explained as %q", err, got)
		}
	}
}

func TestAnswersOfPortsThatSpeakTLS(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"Client sent an HTTP request to an HTTPS server.\n",
		"<center>The plain HTTP request was sent to HTTPS port</center>",
		"You're speaking plain HTTP to an SSL-enabled server port.",
	} {
		if !reach.WantsTLS(400, []byte(text)) {
			t.Errorf("%q is not recognized", text)
		}
		if reach.WantsTLS(502, []byte(text)) {
			t.Errorf("%q is recognized with the status 502, which a proxy sends after it has forwarded the request", text)
		}
	}
	if reach.WantsTLS(400, []byte("Bad Request")) {
		t.Error("any status 400 counts as one")
	}
}
