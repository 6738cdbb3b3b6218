package paddock

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/bench/system"
)

// Sessions is Paddock over HTTP, in which a lease of the load is a session with leases of its own. A renewal is a
// heartbeat of the session.
type Sessions struct {
	HTTP
	Leases int // of each session
}

// Client returns a client of the next replica.
func (s *Sessions) Client(context.Context) (system.Client, error) {
	return sessionClient{NewClient(s.address()), s.Leases}, nil
}

// sessionBatch is the number of leases that are acquired with one request.
const sessionBatch = 500

type sessionClient struct {
	*Client
	leases int
}

// Acquire opens a session and acquires locks in it whose names begin with the name. They must be free.
func (c sessionClient) Acquire(ctx context.Context, name string, _ bool) (system.Lease, error) {
	s := session{c.Client, fmt.Sprintf(`"session_id":%q`, uuid.NewString())}
	if err := s.post(ctx, "", fmt.Sprintf(`{"holder":%q,"ttl_ms":%d,%s}`, holder, ttlMs, s.id), 201); err != nil {
		return nil, err
	}
	c.try = fmt.Appendf(nil, `{"holder":%q,%s}`, holder, s.id)
	for first := 0; first < c.leases; first += sessionBatch {
		var names []string
		for i := first; i < min(first+sessionBatch, c.leases); i++ {
			names = append(names, fmt.Sprintf("%s:%05d", name, i))
		}
		if _, err := c.AcquireAll(ctx, names); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// A session implements system.Lease.
type session struct {
	client *Client
	id     string // as a member of an object
}

// Token returns zero, since each lease has its own.
func (s session) Token() int64 { return 0 }

// Renew sends a heartbeat.
func (s session) Renew(ctx context.Context) error { return s.post(ctx, "/renew", "{"+s.id+"}", 200) }

// Release closes the session, which releases its leases.
func (s session) Release(ctx context.Context) error { return s.post(ctx, "/close", "{"+s.id+"}", 204) }

func (s session) post(ctx context.Context, verb, body string, want int) error {
	status, answer, err := s.client.conn.Post(ctx, "/v1/sessions"+verb, []byte(body))
	if err != nil {
		return err
	}
	if status != want {
		return refused("calling", "/v1/sessions"+verb, status, answer)
	}
	return nil
}
