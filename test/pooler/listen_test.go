package pooler_test

import (
	"io"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/store"
	"github.com/paddock-lock/paddock/test/internal/pgbouncer"
)

// A route leads TCP connections to a server that can be changed.
type route struct {
	listener net.Listener

	mu    sync.Mutex
	to    string // a database URL
	conns []net.Conn
}

func newRoute(t *testing.T, to string) *route {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &route{listener: listener, to: to}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return // closed
			}
			all.Go(func() { r.carry(t, near) })
		}
	})
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		r.leadTo("")
		all.Wait()
	})
	return r
}

// url returns the database URL that takes this route.
func (r *route) url(t *testing.T) string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	u, err := url.Parse(r.to)
	if err != nil {
		t.Fatal(err)
	}
	u.Host, u.RawQuery = r.listener.Addr().String(), "sslmode=disable"
	return u.String()
}

// leadTo changes where later connections lead, and cuts those that there are.
func (r *route) leadTo(databaseURL string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = databaseURL
	for _, c := range r.conns {
		_ = c.Close() // it may be closed
	}
	r.conns = nil
}

func (r *route) carry(t *testing.T, near net.Conn) {
	defer near.Close() //nolint:errcheck // it may be cut
	far := r.dial(t, near)
	if far == nil {
		return
	}
	defer far.Close() //nolint:errcheck // it may be cut
	go func() {
		_, _ = io.Copy(far, near) // until either is cut
		_ = far.Close()
	}()
	_, _ = io.Copy(near, far)
}

// dial connects to where the route leads; nil if that is nowhere.
func (r *route) dial(t *testing.T, near net.Conn) net.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to == "" {
		return nil
	}
	config, err := pgx.ParseConfig(r.to)
	if err != nil {
		t.Error(err)
		return nil
	}
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	far, err := net.Dial(network, address)
	if err != nil {
		t.Log(err)
		return nil
	}
	r.conns = append(r.conns, near, far)
	return far
}

// TestAPoolerThatComesLaterIsNoticed puts a pooler in transaction mode between a store and its
// database, takes it away, and puts it there again.
func TestAPoolerThatComesLaterIsNoticed(t *testing.T) {
	t.Parallel()
	direct := pgtest.URL(t)
	pooled := pgbouncer.Start(t, direct, "transaction", 20)
	r, log := newRoute(t, direct), new(proctest.Transcript)
	s, err := store.Open(t.Context(), r.url(t), store.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	const deaf = `level=ERROR msg="notifications do not arrive; is there a pooler in transaction mode? start with --pooler-mode=transaction"`
	for times := 1; times <= 2; times++ {
		r.leadTo(pooled)
		await.Until(t, "the pooler is noticed", func() bool { return log.Count(deaf) == times })
		r.leadTo(direct)
		await.Until(t, "the store hears itself", func() bool { return log.Count("notifications resumed") == times })
	}
}
