package guard

import (
	"context"
	"encoding/json"
	"iter"
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

// A leaderValue is the metadata of a leader's lease.
type leaderValue struct {
	Value string `json:"value"`
}

func encodeLeaderValue(value string) (json.RawMessage, error) {
	text, err := json.Marshal(leaderValue{value})
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
	if o.Metadata, err = encodeLeaderValue(value); err != nil {
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
	metadata, err := encodeLeaderValue(value)
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
	var s leaderValue
	if err := json.Unmarshal(h.Metadata, &s); err != nil {
		s.Value = "" // somebody who says nothing, or not as elections do, leads all the same
	}
	return &Leader{Holder: h.Holder, Value: s.Value, Term: h.Token, Since: h.AcquiredAt}
}

// Observe yields who leads, nil for nobody: first as it is, then each time that it is
// somebody else, or the leader says another value. It ends with ctx, when the loop
// does, and after an error that asking again will not cure.
//
// It tells of the newest that there is: of changes that follow each other at once only
// the last. When the service cannot be reached it yields the error, once, and goes on
// trying; what was yielded before may be outdated then. The next leader is yielded even if it
// is the same as before.
func (e *Election) Observe(ctx context.Context) iter.Seq2[*Leader, error] {
	return func(yield func(*Leader, error) bool) {
		o := observer{yield: yield, backoff: newRetryBackoff()}
		w := lock.Watch{Name: e.name, Wait: maxCallWait}
		for {
			l, err := e.watch(ctx, w)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				if !isTransient(err) {
					yield(nil, err)
					return
				}
				if !o.onError(err) || !o.backoff.sleep(ctx, err) {
					return
				}
			default:
				w.Seen = l.Version()
				if !o.onLeader(leaderOf(l)) {
					return
				}
			}
		}
	}
}

// watch waits for a change for as long as one call may.
func (e *Election) watch(ctx context.Context, w lock.Watch) (lock.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, w.Wait+answerTimeout)
	defer cancel()
	return e.locks.Watch(ctx, w)
}

// An observer knows what was yielded last. Its methods return whether to go on.
type observer struct {
	yield   func(*Leader, error) bool
	known   bool // and nothing has failed since
	leader  *Leader
	failing bool
	backoff retryBackoff
}

func (o *observer) onLeader(now *Leader) bool {
	o.failing = false
	o.backoff.Reset()
	if o.known && sameLeader(o.leader, now) {
		return true
	}
	o.known, o.leader = true, now
	return o.yield(now, nil)
}

func (o *observer) onError(err error) bool {
	if o.failing {
		return true
	}
	o.known, o.failing = false, true
	return o.yield(nil, err)
}

func sameLeader(a, b *Leader) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Term == b.Term && a.Value == b.Value
}
