package access

import (
	"net/netip"

	"github.com/paddock-lock/paddock"
)

// Metered returns how many keys have a meter in a Service that Guard returned.
func Metered(locks paddock.Service) int {
	g := locks.(*guard)
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.meters)
}

// Parse returns what ReadFile does for a file with this text.
func Parse(content []byte) ([]Key, error) { return parse(content) }

// Render returns the text of a file with these keys.
func Render(keys []Key) ([]byte, error) { return render(keys) }

// Allow returns ErrRateLimited if the next failure from this address would be refused. It counts nothing.
func (a *Attempts) Allow(ip netip.Addr) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e, known := a.byAddress[network(ip)]; known {
		if v := e.Value.(*addressFailures); v.limiter.Tokens() < 1 {
			return a.errTooMany(v)
		}
	}
	return nil
}
