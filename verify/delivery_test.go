package verify_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// changeDeliveries changes the deliveries of one request of one subscription.
func (s editable) changeDeliveries(subscription, reading int, change func(*verify.Delivery)) {
	r := &s.Subscriptions[subscription].Requests[reading]
	r.Deliveries = slices.Clone(r.Deliveries)
	for i := range r.Deliveries {
		change(&r.Deliveries[i])
	}
}

// delivery returns the first delivery to the poller with that event, as a copy that has replaced the
// original.
func (s editable) delivery(kind lock.Kind, holder string) *verify.Delivery {
	s.t.Helper()
	id := s.event(kind, holder).ID
	s.Subscriptions = slices.Clone(s.Subscriptions)
	poller := &s.Subscriptions[0]
	poller.Requests = slices.Clone(poller.Requests)
	for i := range poller.Requests {
		r := &poller.Requests[i]
		for j := range r.Deliveries {
			if slices.ContainsFunc(r.Deliveries[j].Events, func(e *lock.Event) bool { return e.ID == id }) {
				r.Deliveries = slices.Clone(r.Deliveries)
				r.Deliveries[j].Events = slices.Clone(r.Deliveries[j].Events)
				return &r.Deliveries[j]
			}
		}
	}
	s.t.Fatalf("no subscriber received that %q was %v", holder, kind)
	return nil
}

// without removes the event from the delivery.
func without(d *verify.Delivery, e *lock.Event) {
	d.Events = slices.DeleteFunc(d.Events, func(o *lock.Event) bool { return o.ID == e.ID })
}

func TestMissingDeliveriesAreFound(t *testing.T) {
	expectAllFound(t, map[string]mutation{
		"an event in the middle of a page is missing": {byDeliveries, func(s editable) {
			without(s.delivery(lock.Released, "bob"), s.event(lock.Released, "bob"))
		}, "without event 5"},
		"an event came after its cursor had passed": {byDeliveries, func(s editable) {
			without(s.delivery(lock.Granted, "ann"), s.event(lock.Granted, "ann"))
		}, "without event 1 and 0 more"},
		"a page with all events twice": {byDeliveries, func(s editable) {
			d := s.delivery(lock.Released, "ann")
			d.Events = append(d.Events, d.Events...)
		}, "twice, or out of order"},
		"two events come in the wrong order": {byDeliveries, func(s editable) {
			slices.Reverse(s.delivery(lock.Granted, "cleo").Events)
		}, "twice, or out of order"},
		"an event that is not in the table": {byDeliveries, func(s editable) {
			d, e := s.delivery(lock.Granted, "ann"), *s.event(lock.Granted, "ann")
			e.ID = 1000
			d.Events = append(d.Events, &e)
		}, "which is not in the table"},
		"an event with another token": {byDeliveries, func(s editable) {
			d, e := s.delivery(lock.Granted, "ann"), *s.event(lock.Granted, "ann")
			e.Token++
			d.Events[0] = &e
		}, "in the table it is"},
		"an event of another lock": {byDeliveries, func(s editable) {
			d, e := s.delivery(lock.Granted, "ann"), *s.event(lock.Granted, "ann")
			e.Name = "other:lock"
			d.Events[0] = &e
		}, "but requested locks under play:"},
		"a cursor that goes back": {byDeliveries, func(s editable) { s.delivery(lock.Released, "third").Next = 2 },
			"received the earlier cursor"},
	})
}

// delayDelivery delays the events of one of the poller's pages, and all later ones, by ten seconds.
// With readOn the poller reads meanwhile; otherwise it pauses.
func delayDelivery(s editable, readOn bool) {
	d := s.delivery(lock.Released, "ann")
	late := *d
	d.Events, d.Next = nil, s.event(lock.Released, "ann").ID-1
	poller := &s.Subscriptions[0]
	i := slices.IndexFunc(poller.Requests,
		func(r verify.EventRequest) bool { return len(r.Deliveries) > 0 && r.Deliveries[0].At > d.At })
	next := &poller.Requests[i]
	next.Cursor, next.Deliveries = d.Next, slices.Clone(next.Deliveries)
	next.Deliveries[0].Events = append(slices.Clone(late.Events), next.Deliveries[0].Events...)
	shift := 10 * time.Second
	for j := range poller.Requests[i:] {
		r := &poller.Requests[i+j]
		r.Sent, r.Opened, r.Ended = r.Sent+shift, r.Opened+shift, r.Ended+shift
		r.Deliveries = slices.Clone(r.Deliveries)
		for k := range r.Deliveries {
			r.Deliveries[k].At += shift
		}
	}
	if readOn {
		poller.Requests[i].Sent, poller.Requests[i].Opened = d.At, d.At
	}
}

// failedCall returns a call that fails after some time.
func failedCall(via string, at, takes time.Duration) verify.Call {
	return verify.Call{
		ID: -1, Client: 99, Via: via, Verb: verify.ReadLock, Name: "play:down", Request: "play:down",
		Err: &lock.Error{Code: lock.ErrUnavailable}, Sent: at, Answered: at + takes,
	}
}

func TestLateDeliveriesAreFound(t *testing.T) {
	expectAllFound(t, map[string]mutation{
		"an event ten seconds late": {byPromptness, func(s editable) { delayDelivery(s, true) },
			"of undisturbed time late"},
		"an event that never comes while the poller reads": {byPromptness, func(s editable) {
			all := &s.Subscriptions
			*all = slices.Clone(*all)
			poller := &(*all)[0]
			poller.Requests = slices.Clone(poller.Requests[:2])
			poller.Requests[1].Ended += time.Minute
		}, "while it read for"},
	})
	for name, change := range map[string]func(editable){
		"accepted while the poller does not read": func(s editable) { delayDelivery(s, false) },
		"accepted while a fault lasts": func(s editable) {
			delayDelivery(s, true)
			s.Faults = []verify.Fault{{Description: "a storm", At: 0, Ended: time.Hour}}
		},
		"accepted while calls to the replica fail": func(s editable) {
			delayDelivery(s, true)
			for at := time.Duration(0); at < time.Minute; at += time.Second {
				s.Calls = append(s.Calls, failedCall(via, at, 700*time.Millisecond))
			}
		},
		"accepted while calls to another replica hang": func(s editable) {
			delayDelivery(s, true)
			s.Calls = append(s.Calls, failedCall("another", 0, time.Minute))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectPasses(t, change)
		})
	}
	t.Run("found while calls to another replica fail at once", func(t *testing.T) {
		t.Parallel()
		expectFound(t, recordCorrect(t), mutation{byPromptness, func(s editable) {
			delayDelivery(s, true)
			for at := time.Duration(0); at < time.Minute; at += time.Second {
				s.Calls = append(s.Calls, failedCall("another", at, 900*time.Millisecond))
			}
		}, "of undisturbed time late"})
	})
}

func TestGapAccountsForMissingEvents(t *testing.T) {
	t.Parallel()
	expectPasses(t, func(s editable) {
		d := s.delivery(lock.Granted, "bob")
		without(d, s.event(lock.Granted, "bob"))
		d.Gap = true
	})
}

func TestEventsLostByAnEpochNeedAGap(t *testing.T) {
	t.Parallel()
	lose := func(s editable, jump int64) *verify.Delivery {
		d := s.delivery(lock.Granted, "ann")
		e := *d.Events[0]
		e.ID, e.Name = 2, "play:lost"
		d.Events, d.Next = append(d.Events, &e), 2
		for i := range s.Events {
			if s.Events[i].ID > 1 {
				s.Events[i].ID += jump
			}
		}
		s.Subscriptions[0].Requests[2].Cursor = 2
		for i := range s.Subscriptions[0].Requests[2:] {
			s.changeDeliveries(0, 2+i, func(d *verify.Delivery) {
				d.Next += jump
				d.Events = slices.Clone(d.Events)
				for k, o := range d.Events {
					e := *o
					e.ID += jump
					d.Events[k] = &e
				}
			})
		}
		return &s.Subscriptions[0].Requests[2].Deliveries[0]
	}
	base := recordCorrect(t)
	expectFound(t, base, mutation{byDeliveries, func(s editable) { lose(s, lock.EventJump) }, "which a new epoch has lost"})
	h := copyOf(base)
	lose(editable{t, &h}, lock.EventJump).Gap = true
	for _, c := range h.Check(verify.CheckOptions{}).Checks {
		if c.Name == byDeliveries && len(c.Violations) > 0 {
			t.Errorf("%+v", c.Violations)
		}
	}
	expectFound(t, base,
		mutation{byDeliveries, func(s editable) { lose(s, 1000) }, "which is not in the table"})
}

func TestLateBlockingReadsAreFound(t *testing.T) {
	watch := func(s editable) *verify.Call { return s.call(verify.Watch, "", 0) }
	expectAllFound(t, map[string]mutation{
		"when the wait is over": {byBlocking, func(s editable) { watch(s).Answered += 7 * time.Second },
			"of undisturbed time late"},
		"never": {byBlocking, func(s editable) {
			c := watch(s)
			c.Answered += 7 * time.Second
			refuse(c, lock.Error{Code: lock.ErrUnavailable})
			c.Cancelled = true
		}, "was cancelled without an answer"},
		"with an older revision": {byBlocking, func(s editable) {
			c := watch(s)
			l := c.Response.(lock.Lock)
			l.Revision = 1
			c.Response = l
		}, "returned the older revision 1"},
		"with an unknown revision": {byAgreement, func(s editable) {
			c := watch(s)
			l := c.Response.(lock.Lock)
			l.Revision += 1000
			c.Response = l
		}, "there is no such event"},
		"with an older state of the lock": {byLinearizable, func(s editable) {
			c := watch(s)
			seen := s.call(verify.ReadLock, "", 0).Response.(lock.Lock)
			seen.AsOf = c.Response.(lock.Lock).AsOf
			c.Response = seen
		}, ""},
	})
}

func TestSubscribersShareEqualEvents(t *testing.T) {
	t.Parallel()
	rec := verify.NewRecorder()
	e := lock.Event{ID: 1, Name: "play:1", At: time.Now(), Revision: 1, Kind: lock.Granted}
	other := e
	other.Token++
	for _, received := range []lock.Event{e, e, other} {
		s := rec.Subscribe(verify.Streaming, "play:")
		s.Requested("here", paddock.CursorNow)
		s.Opened()
		s.Received(paddock.Page[lock.Event]{Items: []lock.Event{received}, Next: "1"})
		s.Ended(nil)
	}
	var all []*lock.Event
	for _, s := range rec.History().Subscriptions {
		all = append(all, s.Requests[0].Deliveries[0].Events[0])
	}
	if all[0] != all[1] || all[1] == all[2] || all[2].Token != other.Token {
		t.Errorf("the copies are %p, %p and %p", all[0], all[1], all[2])
	}
}

func TestFaultLastsUntilMarkedOver(t *testing.T) {
	t.Parallel()
	rec := verify.NewRecorder()
	over := rec.MarkFault("a storm")
	rec.MarkFault("a fail-over")
	over()
	f := rec.History().Faults
	if f[0].Ended <= f[1].At || f[1].Ended != f[1].At {
		t.Errorf("the faults are %+v", f)
	}
}
