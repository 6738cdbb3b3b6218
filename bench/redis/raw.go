package redis

import (
	"context"

	"github.com/paddock-lock/paddock/bench/lease"
	"github.com/paddock-lock/paddock/bench/system"
)

// Raw is Redis over its own protocol.
type Raw struct {
	server
	fsync string
}

// Always returns Redis that syncs before each answer.
func Always() *Raw { return &Raw{fsync: "always"} }

// EverySecond returns Redis that syncs once a second, so that answered writes may be lost.
func EverySecond() *Raw { return &Raw{fsync: "everysec"} }

// Name implements system.System.
func (r *Raw) Name() string { return "redis-" + r.fsync }

// Title implements system.System.
func (r *Raw) Title() string {
	if r.fsync == "everysec" {
		return "Redis, appendfsync everysec (loses up to a second)"
	}
	return "Redis, appendfsync always"
}

// Start implements system.System.
func (r *Raw) Start(ctx context.Context, dir string) error { return r.start(ctx, dir, r.fsync) }

// Client implements system.System.
func (r *Raw) Client(context.Context) (system.Client, error) {
	locks, err := connect(r.addr, false)
	if err != nil {
		return nil, err
	}
	return lease.NewClient(locks, locks.Close), nil
}
