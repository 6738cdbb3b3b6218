package paddock

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/paddock-lock/paddock/bench/lean"
	"github.com/paddock-lock/paddock/bench/system"
)

// holder is the holder of all leases.
const holder = "bench"

// The TTL of all leases, and the wait of one call, which is repeated as often as needed.
const (
	ttlMs  = 30_000
	waitMs = 45_000
)

// Client is a system.Client that speaks HTTP over one connection.
type Client struct {
	conn *lean.Conn
	try  []byte // body of an acquire that does not wait
	wait []byte // body of an acquire that waits
	body []byte
	path []byte
}

// NewClient returns a client of Paddock, or of a server with the same responses, at the address.
func NewClient(address string) *Client {
	return &Client{
		conn: lean.New(address, ""),
		try:  fmt.Appendf(nil, `{"holder":%q,"ttl_ms":%d}`, holder, ttlMs),
		wait: fmt.Appendf(nil, `{"holder":%q,"ttl_ms":%d,"wait_ms":%d}`, holder, ttlMs, waitMs),
	}
}

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Acquire implements system.Client.
func (c *Client) Acquire(ctx context.Context, name string, wait bool) (system.Lease, error) {
	ask := c.try
	if wait {
		ask = c.wait
	}
	for {
		status, answer, err := c.conn.Post(ctx, c.pathOf(name, "/acquire"), ask)
		switch {
		case err != nil:
			return nil, fmt.Errorf("acquiring %s: %w", name, err)
		case status == 201:
			return c.lease(name, answer)
		case status != 409 || !bytes.Contains(answer, []byte(`"lock_held"`)):
			return nil, refused("acquiring", name, status, answer)
		case !wait:
			return nil, system.ErrHeld
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
	}
}

// pathOf returns the path of a call.
func (c *Client) pathOf(name, verb string) string {
	c.path = append(append(append(c.path[:0], "/v1/locks/"...), name...), verb...)
	return string(c.path)
}

func (c *Client) lease(name string, answer []byte) (*lease, error) {
	l := &lease{client: c, name: name}
	if n := copy(l.id[:], lean.Field(answer, "lease_id")); n < len(l.id) {
		return nil, fmt.Errorf("acquiring %s: no lease_id in %s", name, answer)
	}
	var err error
	l.token, err = strconv.ParseInt(string(lean.Field(answer, "fencing_token")), 10, 64)
	return l, err
}

// A lease implements system.Lease.
type lease struct {
	client *Client
	name   string
	id     [36]byte
	token  int64
}

// Token returns the fencing token.
func (l *lease) Token() int64 { return l.token }

// Renew moves the end of the lease.
func (l *lease) Renew(ctx context.Context) error {
	status, answer, err := l.post(ctx, "/renew")
	if err != nil {
		return fmt.Errorf("renewing %s: %w", l.name, err)
	}
	if status != 200 {
		return refused("renewing", l.name, status, answer)
	}
	return nil
}

// Release ends the lease.
func (l *lease) Release(ctx context.Context) error {
	status, answer, err := l.post(ctx, "/release")
	if err != nil {
		return fmt.Errorf("releasing %s: %w", l.name, err)
	}
	if status != 204 {
		return refused("releasing", l.name, status, answer)
	}
	return nil
}

func (l *lease) post(ctx context.Context, verb string) (int, []byte, error) {
	c := l.client
	c.body = append(append(append(c.body[:0], `{"lease_id":"`...), l.id[:]...), `"}`...)
	return c.conn.Post(ctx, c.pathOf(l.name, verb), c.body)
}

// refused returns the error for an unexpected answer.
func refused(doing, name string, status int, answer []byte) error {
	return fmt.Errorf("%s %s: %d %s", doing, name, status, answer)
}
