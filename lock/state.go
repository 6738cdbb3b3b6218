package lock

import (
	"encoding/json"
	"slices"
	"time"
)

// A State is all that a decision about one lock may rest on. The zero State with
// a name is a lock that was never used.
type State struct {
	Name      string
	Revision  int64     // how many transitions there were
	Token     Token     // the newest granted; zero if there was none
	End       Kind      // how the newest grant ended; zero while it has not
	ChangedAt time.Time // when the last transition was
	// Leases are those that nobody has written the end of: at most one exclusive
	// lease. One may be past its end, see Live.
	Leases []Lease
}

// Live returns the leases that are not over at now.
func (s State) Live(now time.Time) []Lease {
	return slices.DeleteFunc(slices.Clone(s.Leases), func(l Lease) bool { return !now.Before(l.OverAt()) })
}

// A Phase says in a word how things stand with a lock.
type Phase string

// The phases of a lock.
const (
	Free Phase = "free"
	Held Phase = "held"
	// InGrace: the lease is past its end, and only its holder may go on with it.
	InGrace Phase = "grace"
)

// A Lock is what anybody may know of a lock, as of an instant. It holds no secret.
type Lock struct {
	Name      string
	Phase     Phase
	Revision  int64
	Token     Token // the newest granted; zero if there was none
	ChangedAt time.Time
	AsOf      time.Time // on the database's clock
	Leases    []Holding
}

// A Holding is what anybody may know of a lease.
type Holding struct {
	Slot       int
	Mode       Mode
	Holder     string
	Token      Token
	AcquiredAt time.Time
	ExpiresAt  time.Time
	Remaining  time.Duration // until ExpiresAt as of the lock's AsOf, never negative
	Grace      time.Duration
	Metadata   json.RawMessage
}

// Lock returns what anybody may know of s at now.
func (s State) Lock(now time.Time) Lock {
	l := Lock{Name: s.Name, Phase: Free, Revision: s.Revision, Token: s.Token, ChangedAt: s.ChangedAt, AsOf: now}
	for _, lease := range s.Live(now) {
		if now.Before(lease.ExpiresAt) {
			l.Phase = Held
		} else if l.Phase == Free {
			l.Phase = InGrace
		}
		l.Leases = append(l.Leases, Holding{
			Slot: lease.Slot, Mode: lease.Mode, Holder: lease.Holder, Token: lease.Token,
			AcquiredAt: lease.AcquiredAt, ExpiresAt: lease.ExpiresAt,
			Remaining: max(lease.ExpiresAt.Sub(now), 0), Grace: lease.Grace, Metadata: lease.Metadata,
		})
	}
	return l
}
