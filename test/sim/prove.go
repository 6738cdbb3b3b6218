package sim

import (
	"context"
	"fmt"
	"slices"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// prove checks, when nobody is there any more, that nothing is left but events, and that
// these are sound.
func (w *world) prove() {
	for _, name := range []string{ledger, gates} {
		if l := w.look(name); l.State != lock.Free || l.Waiters != 0 {
			w.judge.wrong(LeftBehind, "in the end the lock %s is %+v", name, l)
		}
		events := w.events(name)
		if err := (verify.Rules{Capacity: permits, AllowOvertaking: true}).Check(events); err != nil {
			w.judge.wrong(Unsound, "%v", err)
		}
		w.proveReleased(name, events)
		if w.plan.steady() {
			w.proveTold(events)
			w.proveOrder(events)
		}
	}
}

func (w *world) events(name string) []lock.Event {
	var events []lock.Event
	for q := (lock.EventQuery{Name: name, Limit: lock.MaxLimit}); ; {
		page, err := w.database.Replica(0).Events(context.Background(), q)
		if err != nil {
			panic(err) // the query is good
		}
		if len(page.Items) == 0 {
			return events
		}
		events, q.Cursor = append(events, page.Items...), page.Next
	}
}

// proveReleased checks that the last leases, which nothing disturbed, were given back. Where there
// are no events, nobody asked the database for any.
func (w *world) proveReleased(name string, events []lock.Event) {
	back := map[string]bool{}
	for _, e := range events {
		back[e.Holder] = back[e.Holder] || e.Kind == lock.Released
	}
	for _, a := range w.attempts {
		if a.last && a.lock() == name && len(events) > 0 && !back[a.holder] {
			w.judge.wrong(LeftBehind, "%s never gave its lease back", a.holder)
		}
	}
}

// proveTold checks that who had a lease that expired was told before it did.
func (w *world) proveTold(events []lock.Event) {
	w.judge.mu.Lock()
	defer w.judge.mu.Unlock()
	for _, e := range events {
		if e.Kind != lock.Expired {
			continue
		}
		ended := w.plan.Clocks[0].when(e.At.Sub(w.begun))
		for _, knew := range w.judge.knew[seat{e.Holder, e.Token, e.Slot}] {
			if knew.From <= ended && knew.To > ended {
				w.judge.found = append(w.judge.found, Violation{Kind: ToldLate, At: knew.To, Text: fmt.Sprintf(
					"%s was told at %v that its lease is lost, which had expired at %v", e.Holder, knew.To, ended)})
			}
		}
	}
}

// proveOrder checks that those who waited and were never cut off were served in the order
// in which they had come.
func (w *world) proveOrder(events []lock.Event) {
	var waiting []lock.Event
	overtook := map[int64]lock.Event{} // by the place of who was overtaken
	for _, e := range events {
		if e.Kind == lock.Granted && len(waiting) > 0 && (e.Place == 0 || e.Place > waiting[0].Place) {
			overtook[waiting[0].Place] = e
		}
		i := slices.IndexFunc(waiting, func(o lock.Event) bool { return o.Place == e.Place })
		switch o, ok := overtook[e.Place]; {
		case e.Kind == lock.Queued && w.steadfast(e.Holder):
			waiting = append(waiting, e)
		case i >= 0 && e.Kind == lock.Granted && ok:
			w.judge.wrong(Overtaken, "%s was granted the lock before %s, who had come before", o.Holder, e.Holder)
			fallthrough
		case i >= 0:
			waiting = slices.Delete(waiting, i, i+1)
		}
	}
}

// steadfast is whether the attempt was one call that met no trouble.
func (w *world) steadfast(holder string) bool {
	a := w.attempts[holder]
	return a.acquires == 1 && !a.disturbed
}
