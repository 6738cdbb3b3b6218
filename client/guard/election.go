package guard

import (
	"context"
	"encoding/json"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// An Election is about who leads under a name: one at a time, for a term. It is an
// exclusive lock whose holder says a value, such as its address, in the lease's metadata.
//
// That somebody was told that it leads, or who leads, is of the past when it
// acts on it. What must not be done by two leaders takes the term's token along.
type Election struct {
	locks lock.Service
	name  string
	opts  Options
}

// NewElection returns the election under that name. Mode, Capacity and Metadata of
// the Options do not count.
func NewElection(locks lock.Service, name string, o Options) *Election {
	o.Mode, o.Capacity, o.Metadata = lock.Exclusive, 0, nil
	return &Election{locks: locks, name: name, opts: o}
}

// A Term is the time for which one leads. Its number is the lease's Token.
type Term struct {
	*Lease
}

// A Leader is who leads, as of some instant in the past.
type Leader struct {
	Holder string
	Value  string
	Term   lock.Token
	Since  time.Time // on the database's clock
}

// A said is the metadata of a leader's lease.
type said struct {
	Value string `json:"value"`
}

func saying(value string) (json.RawMessage, error) {
	text, err := json.Marshal(said{value})
	if err == nil && len(text) > lock.MaxMetadataSize {
		err = lock.Invalid("value", "has %d bytes as JSON; at most %d are allowed", len(text), lock.MaxMetadataSize)
	}
	return text, err
}

// Campaign waits until it is elected, for Options.Wait, or as long as the context
// lasts if that is zero; candidates are elected in the order in which they came. An
// error leaves no candidate behind.
func (e *Election) Campaign(ctx context.Context, value string) (*Term, error) {
	o := e.opts
	if o.Wait == 0 {
		o.Wait = Forever
	}
	var err error
	if o.Metadata, err = saying(value); err != nil {
		return nil, err
	}
	l, err := Acquire(ctx, e.locks, e.name, o)
	if err != nil {
		return nil, err
	}
	return &Term{l}, nil
}

// Proclaim says another value. Observers may miss a value that another follows at once,
// never the last.
func (t *Term) Proclaim(ctx context.Context, value string) error {
	metadata, err := saying(value)
	if err != nil {
		return err
	}
	return t.Lease.SetMetadata(ctx, metadata)
}

// Resign ends the term, as Lease.Release does; the next candidate is elected at once.
func (t *Term) Resign(ctx context.Context) error { return t.Release(ctx) }

// Leader returns who leads, nil for nobody.
func (e *Election) Leader(ctx context.Context) (*Leader, error) {
	l, err := e.locks.Lock(ctx, e.name)
	if err != nil {
		return nil, err
	}
	return leaderOf(l), nil
}

// leaderOf returns who leads by what is known of the lock, nil for nobody. Whose
// lease is past its end has stopped leading, though in its grace it may come back.
func leaderOf(l lock.Lock) *Leader {
	if l.State != lock.Held || l.Leases[0].Mode != lock.Exclusive {
		return nil
	}
	h := l.Leases[0]
	var s said
	if err := json.Unmarshal(h.Metadata, &s); err != nil {
		s.Value = "" // somebody who says nothing, or not as elections do, leads all the same
	}
	return &Leader{Holder: h.Holder, Value: s.Value, Term: h.Token, Since: h.AcquiredAt}
}
