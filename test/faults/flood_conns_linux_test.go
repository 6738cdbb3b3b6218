package faults_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/paddock-lock/paddock/lock"
)

// An httpConn is a connection of HTTP/1.1 that sends one request after the other.
type httpConn struct {
	net.Conn
	in *bufio.Reader
}

func (e *securedReplica) httpConn() (*httpConn, error) {
	c, err := e.dialTLS("http/1.1")
	if err != nil {
		return nil, err
	}
	return &httpConn{c, bufio.NewReaderSize(c, 1<<10)}, nil
}

// request returns the text of a request. Without a body it is a read.
func (e *securedReplica) request(method, path, key, body string) string {
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n", method, path, e.address,
		e.secrets[key])
	if body != "" {
		text += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return text + "\r\n" + body
}

// send sends the text of a request.
func (c *httpConn) send(text string) error {
	_, err := io.WriteString(c, text)
	return err
}

// receive returns the next answer.
func (c *httpConn) receive() (answer, error) {
	got, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return answer{}, err
	}
	text, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, text}, err
}

// roundTrip sends a request and returns the answer.
func (c *httpConn) roundTrip(text string) (answer, error) {
	if err := c.send(text); err != nil {
		return answer{}, err
	}
	return c.receive()
}

// An answer is the answer to a request.
type answer struct {
	status int // zero over HTTP/2, whose headers are not read
	text   []byte
}

// fields are the members of an answer's JSON that the tests use.
type fields struct {
	Code         lock.Code `json:"code"`
	Detail       string    `json:"detail"`
	Token        int64     `json:"fencing_token"`
	RetryAfterMS int64     `json:"retry_after_ms"`
}

// fields decodes the answer. An answer without a body has zero fields.
func (a answer) fields() (t fields, err error) {
	if len(a.text) > 0 {
		err = json.Unmarshal(a.text, &t)
	}
	return t, err
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, a.text) }

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
	streamRoom     = 65535 // initial window of a stream in bytes, never enlarged
	maxConnStreams = 100   // concurrent streams that the service allows on a connection
	streamsPerConn = 90    // streams that a test uses: the service frees one shortly after its answer
	wholeWindow    = 1<<31 - 1 - streamRoom
)

// An http2Conn is a connection of HTTP/2 that tests use frame by frame: no client library makes 10,000
// calls in few goroutines, or misbehaves on purpose. It ignores the headers of answers. The connection's
// window is unlimited, that of each stream is streamRoom.
type http2Conn struct {
	net.Conn
	in        *bufio.Reader
	authority string

	mu   sync.Mutex // guards writing
	last uint32     // number of the newest stream plus one
}

// A frame is a received frame.
type frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

func (e *securedReplica) http2Conn() (*http2Conn, error) {
	c, err := e.dialTLS("h2")
	if err != nil {
		return nil, err
	}
	w := &http2Conn{Conn: c, in: bufio.NewReader(c), authority: e.address}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := io.WriteString(c, preface); err != nil {
		return nil, err
	}
	if err := w.write(frameSettings, 0, 0, nil); err != nil {
		return nil, err
	}
	return w, w.write(frameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, wholeWindow))
}

// write writes a frame. The caller holds mu.
func (w *http2Conn) write(kind, flags byte, stream uint32, payload []byte) error {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	b = binary.BigEndian.AppendUint32(append(b, flags), stream)
	_, err := w.Write(append(b, payload...))
	return err
}

// open sends a request in a new stream. Unless it ends, the body may continue.
func (w *http2Conn) open(method, path, secret, body string, ends bool) (stream uint32, err error) {
	var block []byte
	for _, field := range [][2]string{
		{":method", method}, {":scheme", "https"}, {":path", path}, {":authority", w.authority},
		{"authorization", "Bearer " + secret}, {"content-type", "application/json"},
	} {
		// a literal without indexing (RFC 7541, section 6.2.2)
		block = appendText(appendText(append(block, 0), field[0]), field[1])
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last += 2
	stream = w.last - 1
	if ends && body == "" {
		return stream, w.write(frameHeaders, flagEndHeaders|flagEndStream, stream, block)
	}
	if err := w.write(frameHeaders, flagEndHeaders, stream, block); err != nil {
		return stream, err
	}
	flags := byte(0)
	if ends {
		flags = flagEndStream
	}
	return stream, w.write(frameData, flags, stream, []byte(body))
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
	return w.write(frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, errCancel))
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
		return f, w.write(f.kind, flagAck, 0, answer)
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
