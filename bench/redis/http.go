package redis

import (
	"context"

	"github.com/paddock-lock/paddock/bench/front"
	"github.com/paddock-lock/paddock/bench/lease"
)

// FrontKind is the kind of the front for Redis.
const FrontKind = "redis"

// HTTP returns Redis with appendfsync always, behind HTTP and JSON.
func HTTP() *front.System {
	return front.New("redis-http", "Redis, appendfsync always, behind a Go HTTP handler", FrontKind, Always())
}

// OpenFront opens the store of such a front.
func OpenFront(_ context.Context, addr string) (lease.Store, error) { return connect(addr, true) }

// Target implements front.Backend.
func (r *Raw) Target() string { return r.addr }
