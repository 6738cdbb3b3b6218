package guard

import (
	"context"
	"iter"

	"github.com/paddock-lock/paddock/lock"
)

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
		o := observer{yield: yield, pauses: newPauses()}
		w := lock.Watch{Name: e.name, Wait: longestCall}
		for {
			l, err := e.watch(ctx, w)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				if !passing(err) {
					yield(nil, err)
					return
				}
				if !o.fails(err) || !o.pauses.sleep(ctx, err) {
					return
				}
			default:
				w.Seen = l.Version()
				if !o.sees(leaderOf(l)) {
					return
				}
			}
		}
	}
}

// watch waits for a change for as long as one call may.
func (e *Election) watch(ctx context.Context, w lock.Watch) (lock.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, w.Wait+answerWithin)
	defer cancel()
	return e.locks.Watch(ctx, w)
}

// An observer knows what was yielded last. Its methods return whether to go on.
type observer struct {
	yield   func(*Leader, error) bool
	knows   bool // and nothing has failed since
	leader  *Leader
	failing bool
	pauses  pauses
}

func (o *observer) sees(now *Leader) bool {
	o.failing = false
	o.pauses.Reset()
	if o.knows && same(o.leader, now) {
		return true
	}
	o.knows, o.leader = true, now
	return o.yield(now, nil)
}

func (o *observer) fails(err error) bool {
	if o.failing {
		return true
	}
	o.knows, o.failing = false, true
	return o.yield(nil, err)
}

func same(a, b *Leader) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Term == b.Term && a.Value == b.Value
}
