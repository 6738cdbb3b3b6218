package etcd

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock/bench/lean"
	"github.com/paddock-lock/paddock/bench/lease"
	"github.com/paddock-lock/paddock/bench/system"
)

// JSON is etcd's lock service (v3lock) behind its JSON gateway, over plain HTTP.
type JSON struct{ server }

// Name implements system.System.
func (*JSON) Name() string { return "etcd-json" }

// Title implements system.System.
func (*JSON) Title() string { return "etcd v3lock (JSON over HTTP)" }

// Start implements system.System.
func (j *JSON) Start(ctx context.Context, dir string) error { return j.start(ctx, dir) }

// Client implements system.System.
func (j *JSON) Client(ctx context.Context) (system.Client, error) {
	return openGateway(ctx, j.addr)
}

// tryTimeout bounds an acquire that must not wait. The service has no such call, but it removes a
// caller from the queue when the caller disconnects. The timeout leaves time for an answer if the lock
// is free, even on a machine with a busy disk.
const tryTimeout = 10 * time.Second

// A gateway is a client of the JSON gateway with its own etcd lease.
type gateway struct {
	conn    *lean.Conn
	lease   string // id
	cancel  context.CancelFunc
	stopped chan struct{} // closed when keepAlive has ended
}

func openGateway(ctx context.Context, addr string) (*gateway, error) {
	g := &gateway{conn: lean.New(addr, ""), stopped: make(chan struct{})}
	answer, err := post(ctx, g.conn, "/v3/lease/grant", fmt.Appendf(nil, `{"TTL":%d}`, lease.TTL/time.Second))
	if err != nil {
		return nil, errors.Join(err, g.conn.Close())
	}
	g.lease = string(lean.Field(answer, "ID"))
	keeping, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g.cancel = cancel
	go g.keepAlive(keeping, addr)
	return g, nil
}

// keepAlive renews the lease three times per TTL, as etcd's own client does. It uses another connection,
// because the client's own may be waiting for a lock.
func (g *gateway) keepAlive(ctx context.Context, addr string) {
	defer close(g.stopped)
	conn := lean.New(addr, "")
	defer conn.Close() //nolint:errcheck // the connection is no longer needed
	tick := time.NewTicker(lease.TTL / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = renew(ctx, conn, g.lease) // the next attempt comes in time
		case <-ctx.Done():
			return
		}
	}
}

func renew(ctx context.Context, conn *lean.Conn, id string) error {
	answer, err := post(ctx, conn, "/v3/lease/keepalive", fmt.Appendf(nil, `{"ID":%q}`, id))
	if err == nil && lean.Field(answer, "TTL") == nil {
		return fmt.Errorf("lease %s has ended", id)
	}
	return err
}

func (g *gateway) Acquire(ctx context.Context, name string, wait bool) (system.Lease, error) {
	if !wait {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, tryTimeout, system.ErrHeld)
		defer cancel()
	}
	body := append([]byte(`{"lease":"`), g.lease...)
	body = append(body, `","name":"`...)
	body = append(base64.StdEncoding.AppendEncode(body, []byte(name)), `"}`...)
	answer, err := post(ctx, g.conn, "/v3/lock/lock", body)
	if err != nil {
		return nil, err
	}
	// The revision at which this client became the holder: that of its key's creation or of the
	// previous key's deletion, whichever is later. So it grows from one holder to the next.
	token, err := strconv.ParseInt(string(lean.Field(answer, "revision")), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("no revision in %s", answer)
	}
	return heldKey{g, string(lean.Field(answer, "key")), token}, nil
}

// Close revokes the etcd lease, which releases all remaining locks.
func (g *gateway) Close() error {
	g.cancel()
	<-g.stopped
	_, err := post(context.Background(), g.conn, "/v3/lease/revoke", fmt.Appendf(nil, `{"ID":%q}`, g.lease))
	return errors.Join(err, g.conn.Close())
}

// A heldKey is the key at the head of a lock's queue.
type heldKey struct {
	g     *gateway
	key   string // in base64
	token int64
}

func (p heldKey) Token() int64 { return p.token }

// Renew keeps the client's etcd lease alive, and thereby all its locks.
func (p heldKey) Renew(ctx context.Context) error { return renew(ctx, p.g.conn, p.g.lease) }

func (p heldKey) Release(ctx context.Context) error {
	body := append(append([]byte(`{"key":"`), p.key...), `"}`...)
	_, err := post(ctx, p.g.conn, "/v3/lock/unlock", body)
	return err
}

// post sends a request and returns the body of the answer, or an error unless its status is 200.
func post(ctx context.Context, conn *lean.Conn, path string, body []byte) ([]byte, error) {
	status, answer, err := conn.Post(ctx, path, body)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("%s: %d %s", path, status, answer)
	}
	return answer, nil
}
