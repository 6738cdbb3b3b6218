package access

import (
	"net/netip"

	"github.com/paddock-lock/paddock/lock"
)

// Metered returns of how many keys what Guard returned counts the calls.
func Metered(guarded lock.Service) int {
	g := guarded.(*guard)
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.meters)
}

// Parse is what ReadFile makes of a file with that text.
func Parse(content []byte) ([]Key, error) { return parse(content) }

// Render is the text of a file with those keys.
func Render(keys []Key) ([]byte, error) { return render(keys) }

// Allow returns ErrRateLimited while more attempts from that address have failed than
// may, else nil. It counts nothing.
func (a *Attempts) Allow(ip netip.Addr) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e, known := a.known[network(ip)]; known {
		if v := e.Value.(*addressFailures); v.fails.Tokens() < 1 {
			return a.errTooMany(v)
		}
	}
	return nil
}
