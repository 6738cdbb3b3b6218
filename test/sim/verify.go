package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// verify checks after the run that only events are left, and that they follow the rules.
func (w *world) verify() {
	for _, name := range []string{ledger, page, gates, report, state} {
		if l := w.lockNow(name); l.State != lock.Free || len(l.Below)+l.Waiters+l.WaitersBelow != 0 {
			w.oracle.reportGlobal(Leftover, "after the run the lock %s is %+v", name, l)
		}
		events := w.events(name)
		asked := func(e lock.Event) int { return w.attempts[e.Holder].permitsOf(name) }
		if err := (verify.Rules{Capacity: mostPermits, Permits: asked, AllowOvertaking: true, InTree: name == ledger || name == page}).Check(events); err != nil {
			w.oracle.reportGlobal(Unsound, "%v", err)
		}
		w.verifyReleased(name, events)
		if w.plan.databaseClockIsSteady() {
			w.verifyInformed(events)
			w.verifyOrder(events)
			w.operator.verify(name, events)
		}
	}
	if w.plan.databaseClockIsSteady() {
		w.verifyOnce(w.events(report))
	}
	w.verifySets()
}

func (w *world) events(name string) []lock.Event {
	var events []lock.Event
	for q := (paddock.EventQuery{Names: []string{name}, Limit: paddock.MaxLimit}); ; {
		page, err := w.database.Replica(0).Events(context.Background(), q)
		if err != nil {
			panic(err) // the query is valid
		}
		if len(page.Items) == 0 {
			return events
		}
		events, q.Cursor = append(events, page.Items...), page.Next
	}
}

// verifyReleased checks that the last leases, which met no fault, were released. Without events the database was not
// used.
func (w *world) verifyReleased(name string, events []lock.Event) {
	back := map[string]bool{}
	for _, e := range events {
		back[e.Holder] = back[e.Holder] || e.Kind == lock.Released
	}
	for _, a := range w.attempts {
		if a.last && slices.Contains(a.locks(), name) && len(events) > 0 && !back[a.holder] {
			w.oracle.reportGlobal(Leftover, "%s never released its lease", a.holder)
		}
	}
}

// verifyInformed checks that each holder whose lease expired was informed before.
func (w *world) verifyInformed(events []lock.Event) {
	w.oracle.mu.Lock()
	defer w.oracle.mu.Unlock()
	for _, e := range events {
		if e.Kind != lock.Expired {
			continue
		}
		ended := w.plan.Clocks[0].when(e.At.Sub(w.start))
		for _, knew := range w.oracle.informed[leaseKey{e.Holder, e.Token, e.Slot}] {
			if knew.From <= ended && knew.To > ended {
				w.oracle.found = append(w.oracle.found, Violation{Kind: InformedLate, At: knew.To, Text: fmt.Sprintf(
					"%s was informed at %v of the loss of its lease, which had expired at %v", e.Holder, knew.To, ended)})
			}
		}
	}
}

// verifyOrder checks that waiters without faults were granted the lock in the order in which they joined.
func (w *world) verifyOrder(events []lock.Event) {
	var waiting []lock.Event
	overtook := map[int64]lock.Event{} // by the place of the waiter that was overtaken
	for _, e := range events {
		if e.Kind == lock.Granted && len(waiting) > 0 && (e.Place == 0 || e.Place > waiting[0].Place) {
			overtook[waiting[0].Place] = e
		}
		i := slices.IndexFunc(waiting, func(o lock.Event) bool { return o.Place == e.Place })
		switch o, ok := overtook[e.Place]; {
		case e.Kind == lock.Queued && w.undisturbed(e.Holder):
			waiting = append(waiting, e)
		case i >= 0 && e.Kind == lock.Granted && ok:
			w.oracle.reportGlobal(Overtaken, "%s was granted the lock before %s, which had joined earlier", o.Holder, e.Holder)
			fallthrough
		case i >= 0:
			waiting = slices.Delete(waiting, i, i+1)
		}
	}
}

// undisturbed reports whether the attempt was a single call without a fault, and no rule kept it from being served.
func (w *world) undisturbed(holder string) bool {
	a := w.attempts[holder]
	return a.acquires == 1 && !a.disturbed && a.permitsOf(gates) == 1
}

// verifyOnce checks that work that is done once closes its lock if it was done, and only then, and that those who wait
// for it are told at once. That nobody is granted a closed lock is one of verify.Rules.
func (w *world) verifyOnce(events []lock.Event) {
	granted, waiting, opens := lock.Event{}, map[int64]string{}, time.Time{}
	for _, e := range events {
		if len(waiting) > 0 && e.At.Before(opens) && e.Kind != lock.Dequeued {
			w.oracle.reportGlobal(Repeated, "%v wait for work that was done", slices.Collect(maps.Values(waiting)))
			return
		}
		switch e.Kind {
		case lock.Queued:
			waiting[e.Place] = e.Holder
		case lock.Granted:
			granted = e
			delete(waiting, e.Place)
		case lock.Withdrawn:
			if e.Place > 0 {
				waiting[e.Place] = e.Holder
			}
		case lock.Dequeued:
			delete(waiting, e.Place)
		case lock.Released:
			opens = e.Until
			a := w.attempts[e.Holder]
			inTime := e.At.Before(granted.At.Add(period(w.plan.TTL)))
			if closes := !opens.IsZero(); closes && !a.completed || !closes && a.succeeded && inTime {
				w.oracle.reportGlobal(Repeated, "%s has done its work: %t; and that counts until %v", e.Holder, a.completed, opens)
			}
		}
	}
}
