package server

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/paddock-lock/paddock/internal/wire"
)

// Clients counts the clients of a Server. The zero value is ready for use; it can be read before the Server is made.
type Clients struct{ connections, streams atomic.Int64 }

// Connections returns the number of open connections.
func (c *Clients) Connections() int { return int(c.connections.Load()) }

// Streams returns the number of open event streams.
func (c *Clients) Streams() int { return int(c.streams.Load()) }

// connection counts a connection when it is new, and when it ends.
func (c *Clients) connection(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.connections.Add(1)
	case http.StateClosed, http.StateHijacked:
		c.connections.Add(-1)
	}
}

// getService returns how the service is.
func (s *Server) getService(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (reply, error) { return ok(wire.ServiceInfoOf(s.info(ctx))), nil })
}
