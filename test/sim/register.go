package sim

import (
	"sync"

	"github.com/paddock-lock/paddock/lock"
)

// A register is the resource that the lock guards: a number that workers read, increment and write back. It knows
// nothing of leases. A fenced register remembers the greatest token it has seen and refuses smaller ones, for reads,
// too, so that an earlier reader cannot write any more.
type register struct {
	*oracle
	fenced bool

	mu    sync.Mutex
	seen  lock.Token
	value int64
	last  *attempt // the last writer; nil if none
	by    *attempt // the attempt that showed the token seen
	reads map[lock.Token]int64
}

// read returns the value.
func (r *register) read(a *attempt, t lock.Token) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkFence(a, t, "read"); err != nil {
		return 0, err
	}
	a.note(a.name, "reads %d%s", r.value, tokenText(t))
	if was, ok := r.reads[t]; ok && r.fenced && a.scenario.mode == lock.Shared && was != r.value {
		r.report(TornRead, a, a, "reads %d after %d under one token", r.value, was)
	}
	r.reads[t] = r.value
	return r.value, nil
}

// write writes was+1, where was is the value that the writer read. If another worker has written since, that update
// is lost.
func (r *register) write(a *attempt, t lock.Token, was int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkFence(a, t, "write"); err != nil {
		return err
	}
	if r.value != was && r.last != a {
		r.report(LostUpdate, a, r.last, "writes %d, having read %d%s: what %s wrote since is lost", was+1, was, tokenText(t), r.last.name)
	} else {
		a.note(a.name, "writes %d%s", was+1, tokenText(t))
	}
	r.value, r.last = was+1, a
	return nil
}

// checkFence returns an error if the fence refuses the token. It reports a violation if the worker holds the lock.
func (r *register) checkFence(a *attempt, t lock.Token, what string) error {
	if !r.fenced {
		return nil
	}
	err := lock.CheckFence(t, r.seen, max(r.seen, t)) // the register does not know the newest token granted
	switch {
	case err == nil:
		r.seen, r.by = t, a
	case r.isHolder(a):
		r.report(HolderRefused, a, r.by, "is refused its %s, though it has the lock: token %d is less than %d", what, t, r.seen)
	default:
		a.note(a.name, "is refused its %s: token %d is less than %d", what, t, r.seen)
	}
	return err
}
