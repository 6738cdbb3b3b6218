package lean

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// A Conn is a connection to one server. A request opens it if it is not open or if the previous request
// failed. A Conn must not be used concurrently.
type Conn struct {
	addr   string
	header string
	conn   net.Conn // nil while closed
	in     *bufio.Reader
	out    []byte
	body   []byte
}

// New returns a connection to host:port. The header, lines that end with \r\n, is sent with every
// request in addition to Host, Content-Type (application/json) and Content-Length.
func New(addr, header string) *Conn {
	return &Conn{addr: addr, header: "Host: " + addr + "\r\n" + header, in: bufio.NewReader(nil)}
}

// Do sends a request, without a body if that is nil, and returns the status and the body of the
// response. The body is valid until the next request. If ctx ends first, Do closes the connection and
// returns an error that wraps the cause.
func (c *Conn) Do(ctx context.Context, method, path string, body []byte) (status int, answer []byte, err error) {
	if err := c.open(ctx); err != nil {
		return 0, nil, err
	}
	stop := interrupt(ctx, c.conn)
	a, err := c.exchange(method, path, body)
	interrupted := !stop()
	if err != nil || interrupted || a.closes {
		err = errors.Join(err, c.Close())
	}
	if err != nil && interrupted {
		err = context.Cause(ctx)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("%s http://%s%s: %w", method, c.addr, path, err)
	}
	return a.status, c.body, nil
}

// Post is Do with the method POST.
func (c *Conn) Post(ctx context.Context, path string, body []byte) (status int, answer []byte, err error) {
	return c.Do(ctx, "POST", path, body)
}

// Close closes the connection, if there is one.
func (c *Conn) Close() error {
	if c.conn == nil {
		return nil
	}
	err := c.conn.Close()
	c.conn = nil
	return err
}

func (c *Conn) open(ctx context.Context) error {
	if c.conn != nil {
		return nil
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return err
	}
	c.conn = conn
	c.in.Reset(conn)
	return nil
}

// interrupt aborts reads and writes on conn when ctx ends, until stop is called. stop returns false if
// it has aborted them.
func interrupt(ctx context.Context, conn net.Conn) (stop func() bool) {
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() {
		_ = conn.SetDeadline(time.Unix(1, 0)) // fails only if conn is closed already
	})
}

func (c *Conn) exchange(method, path string, body []byte) (response, error) {
	c.out = append(append(append(c.out[:0], method...), ' '), path...)
	c.out = append(append(c.out, " HTTP/1.1\r\n"...), c.header...)
	if body != nil {
		c.out = append(c.out, "Content-Type: application/json\r\nContent-Length: "...)
		c.out = append(strconv.AppendInt(c.out, int64(len(body)), 10), "\r\n"...)
	}
	c.out = append(append(c.out, "\r\n"...), body...)
	if _, err := c.conn.Write(c.out); err != nil {
		return response{}, err
	}
	return c.read()
}
