package sim

import "github.com/paddock-lock/paddock/client/guard"

// A paddockLocker locks with Paddock: guards keep leases that the rules of package lock grant, by the clock of one database.
type paddockLocker struct {
	*world
}

func newPaddock(w *world) locker { return paddockLocker{w} }

func (p paddockLocker) do(a *attempt, work func(holdStatus) error) error {
	l := &remoteService{Service: p.database.Replica(0), attempt: a, guard: deterministicGuard{plan: p.plan}}
	o := guard.Options{Holder: a.holder, Permits: a.scenario.permits, TTL: p.plan.TTL, Margin: p.plan.margin(), Wait: a.wait}
	ctx, cancel := a.untilDeath()
	defer cancel()
	return a.scenario.do(ctx, l, o, func(lease *guard.Lease) error {
		begun := p.now()
		l.guard.holds = true
		go func() {
			<-lease.Done()
			p.oracle.recordInformed(leaseKey{a.holder, lease.Token(), lease.Slot()}, begun)
		}()
		return work(lease)
	})
}

// crash stops the replica on the server. The database on the first server restarts by itself and forgets nothing.
func (p paddockLocker) crash(server int) { p.stopReplica(server) }

func (p paddockLocker) restart(server int) { p.startReplica(server) }
