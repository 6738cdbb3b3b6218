package sim

import (
	"context"

	"github.com/paddock-lock/paddock/client/guard"
)

// paddock locks as Paddock does: the guards of package guard keep leases that the rules
// of package lock grant, by the clock of one database.
type paddock struct {
	*world
}

func newPaddock(w *world) locker { return paddock{w} }

func (p paddock) do(a *attempt, work func(hold) error) error {
	l := &line{Service: p.database.Replica(0), attempt: a, steady: steady{plan: p.plan}}
	o := guard.Options{Holder: a.holder, TTL: p.plan.TTL, Margin: p.plan.margin(), Wait: a.wait}
	return a.kind.do(context.Background(), l, o, func(lease *guard.Lease) error {
		begun := p.now()
		l.steady.holds = true
		go func() {
			<-lease.Done()
			p.judge.knows(seat{a.holder, lease.Token(), lease.Slot()}, begun)
		}()
		return work(lease)
	})
}

// restarts has the replica on the server die. The database does not: it forgets nothing,
// and comes back by itself.
func (p paddock) restarts(server int) { p.dies(server) }

func (p paddock) returns(server int) { p.starts(server) }
