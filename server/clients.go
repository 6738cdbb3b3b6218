package server

import (
	"net"
	"net/http"
	"sync/atomic"
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
