package pgconnect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// ExplainFailure returns err, or, if no connection could be made, an error that says why, and what to do, for each host
// that was tried. It wraps err. Its text repeats the host, the role and the database, and nothing else of the URL.
func ExplainFailure(err error) error {
	failed := new(pgconn.ConnectError)
	if !errors.As(err, &failed) {
		return err
	}
	var reasons []string
	attempts := leaves(failed.Unwrap())
	for _, attempt := range attempts {
		reason := reasonOf(failed.Config, attempt)
		// sslmode=prefer tries again without TLS: that attempt has the reason.
		if reason == refusesTLS && len(attempts) > 1 || slices.Contains(reasons, reason) {
			continue
		}
		reasons = append(reasons, reason)
	}
	return &failure{strings.Join(reasons, "; "), err}
}

// A failure is the failure to connect, in a sentence.
type failure struct {
	text string
	err  error
}

func (f *failure) Error() string { return f.text }

func (f *failure) Unwrap() error { return f.err }

// leaves returns the errors that err joins, one for each attempt.
func leaves(err error) (all []error) {
	joined, is := err.(interface{ Unwrap() []error })
	if !is {
		if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), "hostname resolving error: ") {
			return leaves(inner)
		}
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, leaves(e)...)
	}
	return all
}

// dialled matches how the error of an attempt begins: with the address, and the host of the URL.
var dialled = regexp.MustCompile(`^(\S+) \((.*?)\): (?s:(.*))`)

const refusesTLS = "the database offers no TLS, and sslmode in the database URL requires it; turn on ssl in PostgreSQL, or, on a " +
	"network that you trust, set sslmode=disable"

// reasonOf returns why one attempt failed, and what to do.
func reasonOf(config *pgconn.Config, err error) string {
	at, rest := config.Host, err.Error()
	if m := dialled.FindStringSubmatch(rest); m != nil {
		at, rest = m[1], m[3]
		if _, port, err := net.SplitHostPort(m[1]); err == nil {
			at = net.JoinHostPort(m[2], port)
		}
	}
	if answer := new(pgconn.PgError); errors.As(err, &answer) {
		return refusal(config, answer)
	}
	var name *net.DNSError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return fmt.Sprintf("there is no host %s; correct the host in the database URL", name.Name)
	case errors.As(err, &name):
		return fmt.Sprintf("the name server does not resolve the host %s (%s); check the network of this machine", name.Name, name.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing listens on %s; start PostgreSQL there, or correct host and port in the database URL", at)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("there is no socket %s; start PostgreSQL, or correct the host in the database URL", at)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("this user may not connect to %s; run as another user, or allow it to use the socket", at)
	case errors.Is(err, pgconn.ErrReadOnlyConnection), errors.Is(err, pgconn.ErrStandbyConnection):
		return fmt.Sprintf("%s accepts no writes: it is a standby, or default_transaction_read_only is set; promote it, or name the "+
			"primary in the database URL", at)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fmt.Sprintf("this machine has no route to %s; correct the host in the database URL, or the network", at)
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		return fmt.Sprintf("%s does not answer within %v; correct host and port in the database URL, let the firewall pass the "+
			"connection, or set a longer connect_timeout", at, config.ConnectTimeout)
	case errors.As(err, new(x509.UnknownAuthorityError)), errors.As(err, new(x509.HostnameError)), errors.As(err, new(x509.CertificateInvalidError)):
		return fmt.Sprintf("the certificate of %s is not trusted (%s); give its authority with sslrootcert in the database URL, and "+
			"a host that the certificate names", at, root(err))
	case strings.Contains(rest, "server refused TLS"):
		return refusesTLS
	case errors.As(err, &record), strings.Contains(rest, "invalid message length"), strings.Contains(rest, "unknown message type"),
		strings.Contains(rest, "invalid body length"), strings.Contains(rest, "exceeds max"):
		return fmt.Sprintf("what answers on %s is not PostgreSQL; correct host and port in the database URL", at)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Sprintf("%s closed the connection before it answered; check that PostgreSQL listens there, and its log", at)
	}
	return fmt.Sprintf("%s: %s", at, rest)
}

// root returns the innermost error.
func root(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// refusal returns why PostgreSQL refused the connection, and what to do.
func refusal(config *pgconn.Config, answer *pgconn.PgError) string {
	text := fmt.Sprintf("%s (SQLSTATE %s)", answer.Message, answer.Code)
	switch answer.Code {
	case "28P01": // invalid_password
		return text + "; correct the user and the password in the database URL, with special characters percent-encoded"
	case "28000": // invalid_authorization_specification
		return text + "; correct the user in the database URL, create the role, or let it in with a line in pg_hba.conf"
	case "3D000": // invalid_catalog_name
		return fmt.Sprintf("%s; create it with createdb %s, or correct its name in the database URL", text, config.Database)
	case "53300": // too_many_connections
		return text + "; raise max_connections of PostgreSQL or the limit of the role, or lower pool_max_conns in the database URL"
	}
	return text
}
