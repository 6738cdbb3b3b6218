package lean

import (
	"bytes"
	"errors"
	"io"
	"net/http/httputil"
	"slices"
	"strconv"
)

// maxBody is the maximum size of a body, in bytes.
const maxBody = 16 << 20

var errMalformed = errors.New("malformed HTTP/1.1 response")

// A response is the parsed head of an HTTP response.
type response struct {
	status  int
	length  int64 // -1 if unknown
	chunked bool
	closes  bool // the connection cannot be used again
}

// read reads a response, with its body into c.body.
func (c *Conn) read() (response, error) {
	a, err := c.head()
	for err == nil && a.status < 200 { // informational, the final response follows
		a, err = c.head()
	}
	if err == nil {
		err = c.readBody(&a)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return a, err
}

func (c *Conn) head() (response, error) {
	line, err := c.line()
	if err != nil {
		return response{}, err
	}
	if len(line) < len("HTTP/1.1 200") || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return response{}, errMalformed
	}
	a := response{length: -1}
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return response{}, errMalformed
	}
	for {
		line, err := c.line()
		if err != nil || len(line) == 0 {
			return a, err
		}
		if err := a.parseHeader(line); err != nil {
			return a, err
		}
	}
}

// line reads a line and strips its line break.
func (c *Conn) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	return bytes.TrimRight(line, "\r\n"), err
}

// parseHeader evaluates a header line, if it concerns the body or the connection.
func (a *response) parseHeader(line []byte) error {
	name, value, found := bytes.Cut(line, []byte(":"))
	if !found {
		return errMalformed
	}
	value = bytes.TrimSpace(value)
	switch { // most lines differ in length from all of these
	case is(name, "Content-Length"):
		length, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil || length < 0 || length > maxBody {
			return errMalformed
		}
		a.length = length
	case is(name, "Transfer-Encoding"):
		a.chunked = is(value, "chunked")
	case is(name, "Connection"):
		a.closes = is(value, "close")
	}
	return nil
}

func is(got []byte, want string) bool {
	return len(got) == len(want) && bytes.EqualFold(got, []byte(want))
}

func (c *Conn) readBody(a *response) (err error) {
	c.body = c.body[:0]
	switch {
	case a.status == 204 || a.status == 304:
		return nil
	case a.chunked:
		return c.chunks()
	case a.length < 0: // the body ends with the connection
		a.closes = true
		c.body, err = readAll(c.body, c.in)
		return err
	}
	c.body = slices.Grow(c.body, int(a.length))[:a.length]
	_, err = io.ReadFull(c.in, c.body)
	return err
}

// chunks reads a chunked body and its trailer.
func (c *Conn) chunks() (err error) {
	if c.body, err = readAll(c.body, httputil.NewChunkedReader(c.in)); err != nil {
		return err
	}
	for {
		line, err := c.line()
		if err != nil || len(line) == 0 {
			return err
		}
	}
}

// readAll appends everything from r to b.
func readAll(b []byte, r io.Reader) ([]byte, error) {
	buf := bytes.NewBuffer(b)
	n, err := buf.ReadFrom(io.LimitReader(r, maxBody+1))
	if err == nil && n > maxBody {
		err = errMalformed
	}
	return buf.Bytes(), err
}
