package row

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/paddock-lock/paddock/lock"
)

var (
	anyText     = rapid.StringOf(rapid.Rune().Filter(func(r rune) bool { return r != 0 })) // PostgreSQL has no character 0
	anyInstant  = rapid.Map(rapid.Int64Range(1, 4e15), fromMicros)
	maybeNever  = rapid.Map(rapid.Int64Range(0, 2), func(n int64) time.Time { return fromMicros(n * 1e15) })
	anyDuration = rapid.Map(rapid.Int64Range(0, 1e11), fromMillis)
	anyMetadata = rapid.SampledFrom([]json.RawMessage{
		nil, json.RawMessage(`{}`), json.RawMessage(`{ "é" : [1, null], "<": "&\u0000\ud800"}`), json.RawMessage("{\"\u2028\":\"\\\\\\\"\"}"),
	})
)

// grantedTokens is at least each token that a lock has in these tests.
const grantedTokens = 1 << 52

var anyToken = rapid.Custom(func(t *rapid.T) lock.Token {
	return lock.Token(rapid.Int64Range(1, grantedTokens/8).Draw(t, "known token"))
})

func anyID(t *rapid.T) lock.LeaseID {
	return lock.LeaseID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
}

// anyRequest returns a lease with everything that is in a request for it.
func anyRequest(t *rapid.T, name string, mode lock.Mode) lock.Lease {
	return lock.Lease{
		ID: anyID(t), Name: name, Mode: mode, Holder: anyText.Draw(t, "holder"), TTL: anyDuration.Draw(t, "ttl"),
		Grace: anyDuration.Draw(t, "grace"), MaxHold: anyDuration.Draw(t, "max hold"), Left: anyDuration.Draw(t, "left"), Metadata: anyMetadata.Draw(t, "metadata"),
	}
}

func anyLease(t *rapid.T, name string, mode lock.Mode, slot int) lock.Lease {
	l := anyRequest(t, name, mode)
	l.Slot, l.Token = slot, anyToken.Draw(t, "token")
	if mode == lock.Permit && rapid.Bool().Draw(t, "several") {
		l.Slots = lock.SlotsOf([]int{slot, slot + 10, slot + 20})
	}
	l.AcquiredAt, l.ExpiresAt = anyInstant.Draw(t, "acquired"), anyInstant.Draw(t, "expires")
	l.Place, l.Attachment = rapid.Int64().Draw(t, "place"), lock.Attachment(rapid.Int64().Draw(t, "attachment"))
	l.ClaimDeadline = maybeNever.Draw(t, "claim by")
	return l
}

func anyWaiter(t *rapid.T, name string, place int64) *lock.Waiter {
	w := &lock.Waiter{
		Place: place, Lease: anyRequest(t, name, lock.Mode(rapid.Int16Range(1, 3).Draw(t, "mode"))),
		Capacity: rapid.IntRange(0, lock.MaxHolders).Draw(t, "capacity"),
		Permits:  rapid.SampledFrom([]int{0, 2, lock.MaxHolders}).Draw(t, "permits"), JoinedAt: anyInstant.Draw(t, "joined"),
		AliveUntil: maybeNever.Draw(t, "alive"),
	}
	attach(t, w)
	return w
}

// attach changes what a decision can change.
func attach(t *rapid.T, w *lock.Waiter) {
	w.Attachment = lock.Attachment(rapid.Int64().Draw(t, "attachment"))
	w.Replica = lock.Replica(rapid.Int64().Draw(t, "replica"))
	w.WaitUntil, w.KeptUntil = anyInstant.Draw(t, "wait until"), maybeNever.Draw(t, "kept")
	w.GrantedUnclaimed = rapid.Bool().Draw(t, "unclaimed")
}

// anyNext returns a record that may follow r: leases and waiters come, change, stay and go. Tokens only grow.
func anyNext(t *rapid.T, r lock.Record) lock.Record {
	next := lock.Record{
		Name: r.Name, Revision: r.Revision + rapid.Int64Range(1, 40).Draw(t, "transitions"), ChangedAt: anyInstant.Draw(t, "changed"),
		Token: r.Token + anyToken.Draw(t, "token"), LastEnd: lock.Kind(rapid.Int16().Draw(t, "end")),
	}
	switch mode := lock.Mode(rapid.Int16Range(0, 3).Draw(t, "mode")); {
	case mode == lock.Exclusive:
		l := anyLease(t, r.Name, mode, 0)
		l.Token = next.Token
		next.Leases = []lock.Lease{l}
	case mode > lock.Exclusive:
		if mode == lock.Permit || rapid.Bool().Draw(t, "has capacity") {
			next.Capacity = rapid.IntRange(1, lock.MaxHolders).Draw(t, "capacity")
		}
		next.Leases = anyParts(t, r, mode)
		for i := range next.Leases {
			l := &next.Leases[i]
			if kept := slices.ContainsFunc(r.Leases, func(o lock.Lease) bool { return o.ID == l.ID }); !kept && rapid.Bool().Draw(t, "newest") {
				l.Token = next.Token
			}
			next.Token = max(next.Token, l.Token)
		}
	}
	last := int64(0)
	for _, old := range r.Queue {
		last = old.Place
		switch rapid.IntRange(0, 2).Draw(t, "waiter") {
		case 0:
			next.Queue = append(next.Queue, old)
		case 1:
			w := *old
			attach(t, &w)
			next.Queue = append(next.Queue, &w)
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "joins") {
		last += rapid.Int64Range(1, 1e9).Draw(t, "place")
		next.Queue = append(next.Queue, anyWaiter(t, r.Name, last))
	}
	return next
}

func anyParts(t *rapid.T, r lock.Record, mode lock.Mode) (leases []lock.Lease) {
	had := make(map[int]lock.Lease)
	for _, l := range r.Leases {
		had[l.Slot] = l
	}
	for slot := 1; slot < 6; slot++ {
		switch l, has := had[slot]; rapid.IntRange(0, 3).Draw(t, "slot") {
		case 0:
			if has {
				leases = append(leases, l)
			}
		case 1:
			if has { // renewed
				l.ExpiresAt, l.TTL, l.Metadata = anyInstant.Draw(t, "expires"), anyDuration.Draw(t, "ttl"), anyMetadata.Draw(t, "metadata")
				leases = append(leases, l)
			}
		case 2:
			leases = append(leases, anyLease(t, r.Name, mode, slot))
		}
	}
	return leases
}

// TestALookReturnsWhatASwapWrote, whatever that is and whatever was there before.
func TestALookReturnsWhatASwapWrote(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(t, fmt.Sprintf("select setval('paddock.event_batch_ids', %d)", grantedTokens/TokensPerBatch))
	rapid.Check(t, func(t *rapid.T) {
		name := uuid.NewString() + anyText.Draw(t, "name")
		v := f.look(t, name)
		for range rapid.IntRange(1, 4).Draw(t, "swaps") {
			v = f.swapAndLook(t, v, &Change{At: v.Epoch.Now, Before: v.Rows[name], After: anyNext(t, v.Rows[name].Record)})
		}
	})
}

// swapAndLook writes the change, and compares what is left with what is then read, which it returns.
func (f *fixture) swapAndLook(t *rapid.T, v View, c *Change) View {
	name := c.After.Name
	for i := range c.After.Leases { // none ends while the statement runs
		if l := &c.After.Leases[i]; v.Epoch.Now.Before(l.EndsAt()) && l.EndsAt().Before(v.Epoch.Now.Add(time.Hour)) {
			l.ClaimDeadline, l.Grace, l.ExpiresAt = time.Time{}, 0, v.Epoch.Now.Add(-time.Hour)
		}
	}
	s := swapOf(v, c)
	s.Latest = s.Now.Add(time.Hour) // a busy machine may take long
	f.run(t, s)
	if !c.Written {
		t.Fatalf("not written: %s", show(c.After))
	}
	v = f.look(t, name)
	got, left := v.Rows[name], c.Left()
	if !reflect.DeepEqual(normal(got.Record), normal(left.Record)) {
		t.Errorf("read  %s\nwrote %s", show(got.Record), show(left.Record))
	}
	if got.TID != left.TID || got.Xmin != left.Xmin || got.LastEvent != left.LastEvent {
		t.Errorf("read %v, xmin %d, event %d; wrote %v, %d, %d",
			got.TID, got.Xmin, got.LastEvent, left.TID, left.Xmin, left.LastEvent)
	}
	return v
}

func normal(r lock.Record) lock.Record {
	if len(r.Leases) == 0 {
		r.Leases = nil
	}
	if len(r.Queue) == 0 {
		r.Queue = nil
	}
	return r
}

func show(r lock.Record) string {
	var b strings.Builder
	queue := r.Queue
	r.Queue = nil
	fmt.Fprintf(&b, "%+v", r)
	for _, w := range queue {
		fmt.Fprintf(&b, "\n\t%+v", *w)
	}
	return b.String()
}

func TestEmptyRestIsNull(t *testing.T) {
	t.Parallel()
	for _, l := range []lock.Lease{{}, {ID: lock.LeaseID{1}, Holder: "h", TTL: time.Second, Token: 3}} {
		if text := restOf(&l).text(); text != nil {
			t.Errorf("the rest of %+v is %q", l, text)
		}
	}
	if _, _, err := (&storedLease{rest: []byte("{")}).lease("a"); err == nil {
		t.Error("half an object is no error")
	}
	if _, r, err := new(storedLease).lease("a"); err != nil || r != (rest{}) {
		t.Errorf("null is %+v, %v", r, err)
	}
}
