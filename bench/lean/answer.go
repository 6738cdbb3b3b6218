package lean

import (
	"bytes"
	"errors"
	"io"
	"net/http/httputil"
	"slices"
	"strconv"
)

// maxBody is the longest body that is read, in bytes.
const maxBody = 16 << 20

var errMalformed = errors.New("this is no HTTP/1.1")

// An response is what the head of one says.
type response struct {
	status  int
	length  int64 // -1 when not told
	chunked bool
	closes  bool // the connection is good for no other
}

// read reads an answer, whose body goes to c.body.
func (c *Conn) read() (response, error) {
	a, err := c.head()
	for err == nil && a.status < 200 { // "wait, there is more to come"
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

// line reads one without its end.
func (c *Conn) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	return bytes.TrimRight(line, "\r\n"), err
}

// parseHeader takes from a line of the head what there is to know about the body.
func (a *response) parseHeader(line []byte) error {
	name, value, found := bytes.Cut(line, []byte(":"))
	if !found {
		return errMalformed
	}
	value = bytes.TrimSpace(value)
	switch { // most lines are none of these, and told by their lengths
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
	case a.length < 0: // then it ends with the connection
		a.closes = true
		c.body, err = readAll(c.body, c.in)
		return err
	}
	c.body = slices.Grow(c.body, int(a.length))[:a.length]
	_, err = io.ReadFull(c.in, c.body)
	return err
}

// chunks reads a body in chunks, and what may follow it, to the empty line.
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

// readAll appends all that r has to b.
func readAll(b []byte, r io.Reader) ([]byte, error) {
	buf := bytes.NewBuffer(b)
	n, err := buf.ReadFrom(io.LimitReader(r, maxBody+1))
	if err == nil && n > maxBody {
		err = errMalformed
	}
	return buf.Bytes(), err
}
