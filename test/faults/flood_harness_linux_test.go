package faults_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
)

// A floodedReplica is a replica with TLS and without API keys, on a PostgreSQL of its own, that serves a flood of
// clients.
type floodedReplica struct {
	t        *testing.T
	database *database
	admin    *pgx.Conn // direct connection to its database
	process  *child
	address  string
	metrics  string // the address of its metrics
	trust    *tls.Config
	cert     string // files with its certificate and private key
	key      string
}

// newFlooded starts a PostgreSQL for replicas that launch starts. It ends with the test.
func newFlooded(t *testing.T) *floodedReplica {
	t.Helper()
	e := &floodedReplica{t: t}
	var err error
	e.database, err = newDatabase(t.Context())
	e.must(err)
	cleanup(t, e.database.host.Close)
	e.admin, err = e.database.connect(t.Context(), "paddock")
	e.must(err)
	cleanup(t, func() error { return e.admin.Close(context.WithoutCancel(t.Context())) })
	e.cert, e.key = e.certify(t.TempDir())
	return e
}

// launch starts the replica with additions to its environment and flags. It ends with the test.
func (e *floodedReplica) launch(program string, env []string, flags ...string) {
	e.t.Helper()
	databaseURL := e.database.url(url.Values{"host": {e.database.host.SocketDir()}, "port": {"5432"}}, "", "paddock")
	e.process, e.address = serve(e.t, program, append(env, "PADDOCK_DATABASE_URL="+databaseURL), append(flags, "--migrate",
		"--no-auth", "--metrics-listen=127.0.0.1:0", "--tls-cert="+e.cert, "--tls-key="+e.key)...)
	var err error
	e.metrics, err = e.process.awaitOutput(e.t.Context(), `"msg":"serving metrics","address":"([^"]+)"`)
	e.must(err)
}

func (e *floodedReplica) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// certify writes a certificate for this machine and its private key, and trusts it.
func (e *floodedReplica) certify(dir string) (cert, key string) {
	e.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	e.must(err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signed, err := x509.CreateCertificate(rand.Reader, c, c, private.Public(), private)
	e.must(err)
	coded, err := x509.MarshalPKCS8PrivateKey(private)
	e.must(err)
	c, err = x509.ParseCertificate(signed)
	e.must(err)
	e.trust = &tls.Config{RootCAs: x509.NewCertPool(), ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	e.trust.RootCAs.AddCert(c)
	return written(e.t, dir, "cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})),
		written(e.t, dir, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: coded}))
}

// client returns a client with connections of its own.
func (e *floodedReplica) client() *client.Client {
	e.t.Helper()
	c, err := client.New(client.Options{BaseURL: "https://" + e.address, TLS: e.trust})
	e.must(err)
	return c
}

// ethernetSegment is the size in bytes of a TCP segment on most networks. The loopback interface has segments of
// 64 KiB, for which the kernel buffers up to four megabytes of what a client does not read. With the smaller ones it
// buffers some two hundred kilobytes.
const ethernetSegment = 1400

// dial opens a TCP connection.
func (e *floodedReplica) dial() (*net.TCPConn, error) {
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var refused error
		err := raw.Control(func(fd uintptr) {
			refused = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, ethernetSegment)
		})
		return errors.Join(err, refused)
	}}
	c, err := d.DialContext(e.t.Context(), "tcp", e.address)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// dialTLS opens a TLS connection for the protocol h2 or http/1.1. On a busy machine a handshake may exceed the
// replica's timeout, so it is retried.
func (e *floodedReplica) dialTLS(protocol string) (c *tls.Conn, err error) {
	ctx, cancel := context.WithTimeout(e.t.Context(), stepTimeout)
	defer cancel()
	config := e.trust.Clone()
	config.ServerName, config.NextProtos = "127.0.0.1", []string{protocol}
	return c, retry(ctx, func() error {
		plain, err := e.dial()
		if err != nil {
			return err
		}
		if c = tls.Client(plain, config); c.HandshakeContext(ctx) == nil {
			return nil
		}
		return errors.Join(errors.New("the TLS handshake failed"), plain.Close())
	})
}

// count returns the result of a query for one number.
func (e *floodedReplica) count(query string) int {
	e.t.Helper()
	var n int
	e.must(e.admin.QueryRow(e.t.Context(), query).Scan(&n))
	return n
}

// Frame types and flags of HTTP/2 (RFC 9113, section 6).
const (
	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameSettings     = 4
	framePing         = 6
	frameGoAway       = 7
	frameWindowUpdate = 8

	flagAck        = 1 // of settings and ping frames
	flagEndStream  = 1
	flagEndHeaders = 4

	preface        = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	errCancel      = 8
	streamsPerConn = 90 // of 100 that the service allows: it frees one shortly after its answer
	wholeWindow    = 1<<31 - 1<<16
)

// An http2Conn is a connection of HTTP/2 that tests use frame by frame, since no client library makes 10,000 calls in
// few goroutines. It ignores the headers of answers.
type http2Conn struct {
	net.Conn
	in        *bufio.Reader
	authority string

	mu   sync.Mutex // guards the fields below
	out  *bufio.Writer
	last uint32 // number of the newest stream plus one
}

// A frame is a received frame.
type frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

func (e *floodedReplica) http2Conn() (*http2Conn, error) {
	c, err := e.dialTLS("h2")
	if err != nil {
		return nil, err
	}
	w := &http2Conn{Conn: c, in: bufio.NewReader(c), out: bufio.NewWriter(c), authority: e.address}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = io.WriteString(w.out, preface)
	return w, errors.Join(err, w.write(frameSettings, 0, 0, nil),
		w.write(frameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, wholeWindow)), w.out.Flush())
}

// write writes a frame. The caller holds mu.
func (w *http2Conn) write(kind, flags byte, stream uint32, payload []byte) error {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	b = binary.BigEndian.AppendUint32(append(b, flags), stream)
	_, err := w.out.Write(append(b, payload...))
	return err
}

// post sends a request in a new stream, at the next flush.
func (w *http2Conn) post(path, body string) (stream uint32, err error) {
	var block []byte
	for _, field := range [][2]string{
		{":method", http.MethodPost}, {":scheme", "https"}, {":path", path}, {":authority", w.authority},
		{"content-type", "application/json"},
	} {
		// a literal without indexing (RFC 7541, section 6.2.2)
		block = appendText(appendText(append(block, 0), field[0]), field[1])
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last += 2
	stream = w.last - 1
	return stream, errors.Join(w.write(frameHeaders, flagEndHeaders, stream, block),
		w.write(frameData, flagEndStream, stream, []byte(body)))
}

// flush sends the requests since the last flush: two small writes for each would cost more than the answer.
func (w *http2Conn) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Flush()
}

// appendText appends a string literal without Huffman coding (RFC 7541, section 5.2).
func appendText(b []byte, text string) []byte {
	const prefix = 127
	n := len(text)
	if n < prefix {
		return append(append(b, byte(n)), text...)
	}
	for b, n = append(b, prefix), n-prefix; n >= 128; n /= 128 {
		b = append(b, byte(n%128|128))
	}
	return append(append(b, byte(n)), text...)
}

// reset cancels a request.
func (w *http2Conn) reset(stream uint32) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.write(frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, errCancel)), w.out.Flush())
}

// next returns the next frame, and acknowledges settings and pings.
func (w *http2Conn) next() (frame, error) {
	head := make([]byte, 9)
	if _, err := io.ReadFull(w.in, head); err != nil {
		return frame{}, err
	}
	f := frame{kind: head[3], flags: head[4], stream: binary.BigEndian.Uint32(head[5:])}
	f.payload = make([]byte, binary.BigEndian.Uint32(head)>>8)
	if _, err := io.ReadFull(w.in, f.payload); err != nil {
		return f, err
	}
	if (f.kind == frameSettings || f.kind == framePing) && f.flags&flagAck == 0 {
		w.mu.Lock()
		defer w.mu.Unlock()
		answer := f.payload
		if f.kind == frameSettings {
			answer = nil
		}
		return f, errors.Join(w.write(f.kind, flagAck, 0, answer), w.out.Flush())
	}
	return f, nil
}

// each calls answered for each complete answer and each reset stream, until answered returns an error or
// the connection ends. It returns that error.
func (w *http2Conn) each(answered func(stream uint32, body []byte, whole bool) error) error {
	bodies := map[uint32][]byte{}
	for {
		f, err := w.next()
		switch {
		case err != nil:
			return err
		case f.kind == frameGoAway:
			return fmt.Errorf("the service closed the connection with HTTP/2 error %s",
				strconv.Itoa(int(binary.BigEndian.Uint32(f.payload[4:]))))
		case f.kind == frameData:
			bodies[f.stream] = append(bodies[f.stream], f.payload...)
		}
		cut := f.kind == frameReset
		if ends := (f.kind == frameData || f.kind == frameHeaders) && f.flags&flagEndStream != 0; !ends && !cut {
			continue
		}
		body := bodies[f.stream]
		delete(bodies, f.stream)
		if err := answered(f.stream, body, !cut); err != nil {
			return err
		}
	}
}

// resources are what a replica uses in its process and in the database.
type resources struct {
	resident, peak byteSize // memory; the peak since resetPeak
	files          int      // open files, without connections to PostgreSQL
	waiting        int      // rows of waiters for which a call waits
	places         int      // rows of all waiters
}

// A byteSize is an amount of memory.
type byteSize int64

const mebibyte byteSize = 1 << 20

func (b byteSize) String() string { return fmt.Sprintf("%.1f MiB", float64(b)/float64(mebibyte)) }

func (f resources) String() string {
	return fmt.Sprintf("%v of memory, %v at the peak, %d files, %d waiting calls", f.resident, f.peak, f.files, f.waiting)
}

// proc is the path of a file about the replica in /proc.
func (e *floodedReplica) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(e.process.cmd.Process.Pid), name)
}

func (e *floodedReplica) resources() resources {
	e.t.Helper()
	status, err := os.ReadFile(e.proc("status"))
	e.must(err)
	files, err := os.ReadDir(e.proc("fd"))
	e.must(err)
	f := resources{files: len(files)}
	for line := range bytes.Lines(status) {
		var kib byteSize
		if n, _ := fmt.Sscanf(string(line), "VmRSS: %d kB", &kib); n == 1 {
			f.resident = kib << 10
		}
		if n, _ := fmt.Sscanf(string(line), "VmHWM: %d kB", &kib); n == 1 {
			f.peak = kib << 10
		}
	}
	f.files -= e.count("select count(*) from pg_catalog.pg_stat_activity where application_name = 'paddock'")
	f.places = e.count("select count(*) from paddock.parts where place > 0")
	f.waiting = e.count("select count(*) from paddock.parts where place > 0 and attachment <> 0")
	return f
}

// resetPeak resets the peak of the memory to its current value.
func (e *floodedReplica) resetPeak() {
	e.t.Helper()
	e.must(os.WriteFile(e.proc("clear_refs"), []byte("5"), 0))
}

// awaitResources waits until so returns nil, for at most most.
func (e *floodedReplica) awaitResources(most time.Duration, so func(resources) error) resources {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), most)
	defer cancel()
	var f resources
	e.must(retry(ctx, func() error {
		f = e.resources()
		return so(f)
	}))
	return f
}

// awaitMemory waits until the replica uses at most that much memory, without what the Go runtime keeps to use again: it
// returns that to the system in its own time, which on a busy machine is long. It knows what it can use again after a
// garbage collection, which comes when it needs more memory, or every two minutes. Requests with long headers create
// that need.
func (e *floodedReplica) awaitMemory(most byteSize) {
	e.t.Helper()
	c, err := e.dialTLS("http/1.1")
	e.must(err)
	defer func() { _ = c.Close() }() // it is of no further use
	in, probe := bufio.NewReader(c), "GET /livez HTTP/1.1\r\nHost: "+e.address+"\r\nX-Long: "+strings.Repeat("x", 12<<10)+"\r\n\r\n"
	e.awaitResources(2*stepTimeout, func(f resources) error {
		reusable := e.reusable()
		if f.resident-reusable <= most {
			e.t.Logf("%v of %v are in use", f.resident-reusable, f.resident)
			return nil
		}
		for range 100 {
			if _, err := io.WriteString(c, probe); err != nil {
				return err
			}
			got, err := http.ReadResponse(in, nil)
			if err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, got.Body); err != nil {
				return err
			}
		}
		return fmt.Errorf("the replica still has %v, of which it can use %v again; want at most %v more than that", f, reusable, most)
	})
}

// reusable returns how much memory the replica has got from the system and can use again.
func (e *floodedReplica) reusable() byteSize {
	e.t.Helper()
	text := proctest.Scrape(e.t, "http://"+e.metrics+"/metrics")
	gauge := func(name string) byteSize {
		m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text)
		if m == nil {
			e.t.Fatalf("the metrics have no %s:\n%s", name, text)
		}
		n, err := strconv.ParseFloat(m[1], 64)
		e.must(err)
		return byteSize(n)
	}
	return gauge("go_memstats_heap_idle_bytes") - gauge("go_memstats_heap_released_bytes")
}
