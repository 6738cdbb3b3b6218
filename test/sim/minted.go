package sim

import (
	"context"
	"sync"

	"github.com/paddock-lock/paddock/lock"
)

// shardBits is by how much a server's number is above its counter in a sharded token.
const shardBits = 48

// sharded draws a token as services do that keep each lock's tokens on many servers at
// once, to spare them a common sequence: the server's number, and below it a counter of
// its own that it never loses. Each server's tokens grow. Those of two servers tell which
// server has the greater number, and nothing of who came first.
func sharded(w *world, server int) lock.Token {
	w.drawn[server]++
	return lock.Token(server+1)<<shardBits | lock.Token(w.drawn[server])
}

// clocked draws a token as those do who say that the time grows by itself: the
// microsecond in which the server grants, by its own clock. Clocks of two servers are
// never the same, and one that time synchronisation puts right goes back.
func clocked(w *world, server int) lock.Token { return lock.Token(w.clock(server).UnixMicro()) }

// A mint is where another kind of token comes from, and remembers which was made for
// which lease.
type mint struct {
	mu    sync.Mutex
	drawn [servers]int
	made  map[lock.Token]lock.Token // by the token that the lease has in truth
}

// minting is the service as a server serves it that draws tokens for itself. All else
// is Paddock's: who has the lock, and until when.
type minting struct {
	lock.Service
	world  *world
	server int
}

// Acquire grants what the service does, with a token of the server's own.
func (m minting) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	g, err := m.Service.Acquire(ctx, a)
	return m.world.strike(m.server, g), err
}

// Renew renews as the service does. The token stays the same.
func (m minting) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	g, err := m.Service.Renew(ctx, r)
	return m.world.strike(m.server, g), err
}

// strike puts the token on the grant that its lease has, or one that the server draws if
// it has none yet.
func (w *world) strike(server int, g lock.Grant) lock.Grant {
	w.mint.mu.Lock()
	defer w.mint.mu.Unlock()
	if g.Token != 0 && w.made[g.Token] == 0 {
		w.made[g.Token] = w.variant.draw(w, server)
	}
	g.Token = w.made[g.Token]
	return g
}
