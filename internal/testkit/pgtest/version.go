//go:build unix

package pgtest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net/url"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/testkit/tcpproxy"
)

// ClaimVersion returns a URL of the database through a proxy that changes one value: the server's server_version_num
// is that number. So a test sees what Paddock does on a version that is not installed. The proxy ends with the test.
func ClaimVersion(t testing.TB, databaseURL string, number int) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	v := versionChange{claimed: strconv.Itoa(number)}
	if err := conn.QueryRow(t.Context(), "show server_version_num").Scan(&v.actual); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	network, address := pgconn.NetworkAddress(conn.Config().Host, conn.Config().Port)
	return throughProxy(t, databaseURL, tcpproxy.NewChanging(t, network, address, v.relay).Address)
}

// throughProxy returns the URL with another address, for a proxy that cannot read TLS.
func throughProxy(t testing.TB, databaseURL, address string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	query := u.Query()
	query.Del("host")
	query.Del("port")
	query.Set("sslmode", "disable")
	u.Host, u.RawQuery = address, query.Encode()
	return u.String()
}

// A versionChange replaces the server_version_num in what a server sends.
type versionChange struct {
	actual, claimed string
}

// relay forwards the messages of the server until either connection ends.
func (v versionChange) relay(client io.Writer, from io.Reader) {
	server := bufio.NewReader(from)
	var header [5]byte // the type of the message, and its length without the type
	for {
		if _, err := io.ReadFull(server, header[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(header[1:])-4)
		if _, err := io.ReadFull(server, body); err != nil {
			return
		}
		if header[0] == 'D' && bytes.Equal(body, row(v.actual)) {
			body = row(v.claimed)
			binary.BigEndian.PutUint32(header[1:], uint32(len(body)+4))
		}
		if _, err := client.Write(append(header[:], body...)); err != nil {
			return
		}
	}
}

// row returns the body of the message DataRow with one value.
func row(value string) []byte {
	b := binary.BigEndian.AppendUint16(nil, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
	return append(b, value...)
}
