package database

import (
	"context"
	"net"
	"time"
)

// When a connection that has gone silent is given up. A commit is never
// cancelled, so nothing else ends it.
const (
	silenceBeforeProbe = 5 * time.Second
	probeInterval      = 2 * time.Second
	probes             = 3
	maxUnacknowledged  = 15 * time.Second // for what was sent, where the system can be told
)

// dial connects to the database's host.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: silenceBeforeProbe, Interval: probeInterval, Count: probes,
		},
		Control: limitUnacknowledged,
	}
	return d.DialContext(ctx, network, address)
}
