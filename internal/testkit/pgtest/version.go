package pgtest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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
	v := versionProxy{claimed: strconv.Itoa(number)}
	v.network, v.address = pgconn.NetworkAddress(conn.Config().Host, conn.Config().Port)
	if err := conn.QueryRow(t.Context(), "show server_version_num").Scan(&v.actual); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	var all sync.WaitGroup
	all.Go(func() { v.serve(t, listener, &all) })
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		v.close()
		all.Wait()
	})
	return throughProxy(t, databaseURL, listener.Addr().String())
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

// A versionProxy forwards connections to a server, and changes its server_version_num.
type versionProxy struct {
	network, address string
	actual, claimed  string

	mu    sync.Mutex
	conns []net.Conn
}

func (v *versionProxy) serve(t testing.TB, listener net.Listener, all *sync.WaitGroup) {
	for {
		near, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		far, err := net.Dial(v.network, v.address)
		if err != nil {
			t.Error(err, near.Close())
			return
		}
		v.mu.Lock()
		v.conns = append(v.conns, near, far)
		v.mu.Unlock()
		all.Go(func() {
			_, _ = io.Copy(far, near) // ends with either connection
			_ = far.Close()
		})
		all.Go(func() {
			v.relay(near, bufio.NewReader(far))
			_ = near.Close()
		})
	}
}

// relay forwards the messages of the server until either connection ends.
func (v *versionProxy) relay(client io.Writer, server *bufio.Reader) {
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

func (v *versionProxy) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, conn := range v.conns {
		_ = conn.Close() // it may be closed already
	}
}
