package guard

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// An Election elects one leader at a time under a name. It is an exclusive lock whose holder
// publishes a value, such as its address, in the lease's metadata.
//
// By the time a process acts on the result of an election, another leader may have been elected.
// Use the term's token to fence actions that two leaders must not both take.
type Election struct {
	locks paddock.Service
	name  string
	opts  Options
}

// NewElection returns the election with the name. It ignores Mode, Capacity, Permits and Metadata of the
// Options.
func NewElection(locks paddock.Service, name string, o Options) *Election {
	o.Mode, o.Capacity, o.Permits, o.Metadata = lock.Exclusive, 0, 0, nil
	return &Election{locks: locks, name: name, opts: o}
}

// A Term is the lease of an elected leader. Its Token grows with each term.
type Term struct {
	*Lease
}

// A Leader describes the leader as of a time in the past.
type Leader struct {
	Holder string
	Value  string
	Token  lock.Token
	Since  time.Time // on the database's clock
}

// leaderValue is the metadata of a leader's lease.
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

// Campaign waits until it is elected. It waits for Options.Wait or, if that is zero, until the
// context ends. Candidates are elected in the order in which they joined. If Campaign fails, it
// withdraws from the election.
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

// Proclaim changes the leader's value. Observers may miss a value that is soon replaced, but never
// the last one.
func (t *Term) Proclaim(ctx context.Context, value string) error {
	metadata, err := encodeLeaderValue(value)
	if err != nil {
		return err
	}
	return t.SetMetadata(ctx, metadata)
}

// Resign ends the term like Lease.Release. The next candidate is elected immediately.
func (t *Term) Resign(ctx context.Context) error { return t.Release(ctx) }

// Leader returns the current leader, nil if there is none.
func (e *Election) Leader(ctx context.Context) (*Leader, error) {
	l, err := e.locks.Lock(ctx, e.name)
	if err != nil {
		return nil, err
	}
	return leaderOf(l), nil
}

// leaderOf returns the leader according to the lock, nil if there is none. A lease in its grace
// period does not make a leader, although it can still be renewed.
func leaderOf(l lock.Lock) *Leader {
	if l.State != lock.Held || l.Leases[0].Mode != lock.Exclusive {
		return nil
	}
	h := l.Leases[0]
	var v leaderValue
	if err := json.Unmarshal(h.Metadata, &v); err != nil {
		v.Value = "" // a holder with other metadata leads nevertheless
	}
	return &Leader{Holder: h.Holder, Value: v.Value, Token: h.Token, Since: h.AcquiredAt}
}

// Observe yields the current leader, nil if there is none, and then each change of the leader or of
// its value. It ends when ctx ends, when the loop ends, and after an error that a retry cannot fix.
//
// Of several changes in quick succession, it may yield only the last. When the service is
// unreachable, Observe yields the error once and keeps trying; the leader yielded before may be
// outdated. After the outage it yields the leader again, even if it has not changed.
func (e *Election) Observe(ctx context.Context) iter.Seq2[*Leader, error] {
	return func(yield func(*Leader, error) bool) {
		o := observer{yield: yield, backoff: newRetryBackoff()}
		w := paddock.Watch{Name: e.name, Wait: maxCallWait}
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

// watch waits for a change for maxCallWait at most.
func (e *Election) watch(ctx context.Context, w paddock.Watch) (lock.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, w.Wait+answerTimeout)
	defer cancel()
	return e.locks.Watch(ctx, w)
}

// An observer remembers what it yielded last. Its methods report whether to continue.
type observer struct {
	yield   func(*Leader, error) bool
	known   bool // leader was yielded, and no error since
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
	return a == nil && b == nil || a != nil && b != nil && a.Token == b.Token && a.Value == b.Value
}
