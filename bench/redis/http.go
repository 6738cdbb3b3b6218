package redis

import (
	"context"

	"github.com/paddock-lock/paddock/bench/front"
	"github.com/paddock-lock/paddock/bench/lease"
)

// FrontKind is the kind of the front that is before Redis.
const FrontKind = "redis"

// HTTP is Redis that syncs before it answers, behind HTTP and JSON.
func HTTP() *front.System {
	return front.New("redis-http", "Redis, appendfsync always, behind a Go HTTP handler", FrontKind, Always())
}

// OpenFront is the store that such a front serves.
func OpenFront(_ context.Context, addr string) (lease.Store, error) { return connect(addr, true) }

// Target implements front.Backend.
func (r *Raw) Target() string { return r.addr }
