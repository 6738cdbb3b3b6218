package server

import (
	"sync"

	"github.com/paddock-lock/paddock/lock"
)

// A streamLimiter lets streams in, up to as many as may be open at once, in all and with one
// API key.
type streamLimiter struct {
	limit, limitPerKey int

	mu    sync.Mutex
	open  int
	byKey map[string]int // by the key's id
}

func newStreamLimiter(most, each int) *streamLimiter { return &streamLimiter{limit: most, limitPerKey: each, byKey: map[string]int{}} }

// acquire counts a stream of the key, whose id is empty where there are no keys, or
// refuses it. Whoever was let in leaves again.
func (g *streamLimiter) acquire(key string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open >= g.limit {
		return &lock.Error{Code: lock.ErrTooManyWaiters,
			Detail: "As many streams are open here as may be. Connect again later, or ask /v1/events with wait_ms."}
	}
	if key != "" && g.byKey[key] >= g.limitPerKey {
		return &lock.Error{Code: lock.ErrTooManyWaiters,
			Detail: "As many streams are open here with this API key as may be with one. Close some, or connect again later."}
	}
	g.open++
	g.byKey[key]++
	return nil
}

func (g *streamLimiter) release(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if g.byKey[key]--; g.byKey[key] == 0 {
		delete(g.byKey, key)
	}
}
