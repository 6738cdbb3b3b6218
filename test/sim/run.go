package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// Run plays the seed's plan with the variant. It must be called in a bubble of testing/synctest, and returns when
// every goroutine has ended.
func Run(seed uint64, v Variant) Outcome {
	w := newWorld(PlanOf(seed), v)
	var all sync.WaitGroup
	for i := range w.plan.Workers {
		worker := w.worker(i)
		all.Go(worker.run)
	}
	all.Go(w.trouble)
	over := make(chan struct{})
	if v.allGuards {
		w.inFlight.Go(func() { w.operator.watch(over) })
	}
	all.Wait()
	close(over)
	w.verifyServedInTime()
	w.inFlight.Wait()
	time.Sleep(w.plan.leftovers())
	w.operator.look()
	w.verify()
	return Outcome{Plan: w.plan, Trace: w.Trace, Held: w.oracle.held, HeldSets: w.oracle.heldSets, DiedHolding: w.oracle.diedHolding, Found: w.oracle.found}
}

func (w *world) worker(i int) *worker {
	m := &host{Trace: w.Trace, pauses: w.plan.Pauses[i], death: w.plan.Deaths[i]}
	return &worker{
		world: w, name: fmt.Sprintf("worker %d", i+1), rnd: newRNG(w.plan.Seed, fmt.Sprint("worker ", i)),
		network: &network{host: m, plan: w.plan, worker: i, outages: w.plan.Outages[i], inFlight: &w.inFlight, rngs: map[string]*rand.Rand{}},
	}
}

// leftovers returns how long it takes until leases and places that no worker ended are over.
func (p Plan) leftovers() time.Duration {
	return 3*p.TTL + lock.MaxWait + lock.PlaceRetention + lock.ClaimTimeout + p.stepsBack()
}

// verifyServedInTime checks that every worker is served in bounded time after the last fault: at most one lease per
// worker has to end, and each has to do its work.
func (w *world) verifyServedInTime() {
	longest := 4*w.plan.TTL + time.Duration(w.plan.Workers)*4*w.plan.TTL + time.Minute + w.plan.stepsBack()
	if took := w.now() - w.plan.Quiet; took > longest {
		w.oracle.reportGlobal(Unserved, "after the last fault it took %v until every worker had the lock, longer than %v", took, longest)
	}
}

// trouble restarts servers and records the other faults in the trace.
func (w *world) trouble() {
	type happening struct {
		at time.Duration
		do func()
	}
	var all []happening
	at := func(t time.Duration, do func()) { all = append(all, happening{t, do}) }
	for _, r := range w.plan.Restarts {
		at(r.At, func() { w.noteServer(w.variant.forgetful, r.Server, "dies"); w.locker.crash(r.Server) })
		at(r.At+r.Down, func() { w.noteServer(w.variant.forgetful, r.Server, "is back"); w.locker.restart(r.Server) })
	}
	for _, o := range w.plan.Orders {
		if w.variant.allGuards {
			at(o.From, func() { w.operator.begins(o) })
			at(o.To, func() { w.operator.ends(o) })
		}
	}
	for i, c := range w.plan.Clocks {
		for _, s := range c.Steps {
			at(s.At, func() {
				w.noteServer(w.variant.allClocks || i == 0, i, "has its clock stepped by %+.3fs", s.By.Seconds())
			})
		}
	}
	for i, pauses := range w.plan.Pauses {
		for _, p := range pauses {
			name := fmt.Sprintf("worker %d", i+1)
			at(p.From, func() { w.note(name, "is paused for %.3fs", (p.To - p.From).Seconds()) })
			at(p.To, func() { w.note(name, "continues") })
		}
	}
	for i, death := range w.plan.Deaths {
		if name := fmt.Sprintf("worker %d", i+1); death > 0 {
			at(death, func() { w.note(name, "dies"); w.oracle.dies(name) })
		}
	}
	slices.SortStableFunc(all, func(a, b happening) int { return int(a.at - b.at) })
	for _, h := range all {
		time.Sleep(h.at - w.now())
		h.do()
	}
}

// noteServer records what happens to a server, as a detail unless it matters for the variant.
func (w *world) noteServer(counts bool, server int, format string, args ...any) {
	w.add(entry{actor: fmt.Sprintf("server %d", server+1), text: fmt.Sprintf(format, args...), detail: !counts})
}
