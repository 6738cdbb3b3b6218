package paddock_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

type e = lock.Event

func at(second int) time.Time { return time.Unix(int64(second), 0).UTC() }

// timelines are events of a lock, one a second, and what they say.
var timelines = map[string]struct {
	events []lock.Event
	want   paddock.Timeline
}{
	"no events": {},
	"a lease that was released, and one that is held": {
		[]e{{Kind: lock.Granted, Holder: "a", Token: 1}, {Kind: lock.Released, Holder: "a", Token: 1}, {Kind: lock.Granted, Holder: "b", Token: 2}},
		paddock.Timeline{Holds: []lock.Hold{
			{Holder: "a", Token: 1, GrantedAt: at(0), EndedAt: at(1), End: lock.Released},
			{Holder: "b", Token: 2, GrantedAt: at(2)},
		}},
	},
	"an end without its beginning comes first": {
		[]e{{Kind: lock.Granted, Slot: 1, Token: 2}, {Kind: lock.Expired, Slot: 2, Token: 1}},
		paddock.Timeline{Holds: []lock.Hold{
			{Slot: 2, Token: 1, EndedAt: at(1), End: lock.Expired},
			{Slot: 1, Token: 2, GrantedAt: at(0)},
		}},
	},
	"a slot is used again under the same token": {
		[]e{
			{Kind: lock.Granted, Slot: 1, Token: 5, Holder: "a"}, {Kind: lock.Granted, Slot: 2, Token: 5, Holder: "b"},
			{Kind: lock.Released, Slot: 1, Token: 5, Holder: "a"}, {Kind: lock.Granted, Slot: 1, Token: 5, Holder: "c"},
			{Kind: lock.Expired, Slot: 1, Token: 5, Holder: "c"},
		},
		paddock.Timeline{Holds: []lock.Hold{
			{Slot: 1, Token: 5, Holder: "a", GrantedAt: at(0), EndedAt: at(2), End: lock.Released},
			{Slot: 2, Token: 5, Holder: "b", GrantedAt: at(1)},
			{Slot: 1, Token: 5, Holder: "c", GrantedAt: at(3), EndedAt: at(4), End: lock.Expired},
		}},
	},
	"a revocation whose grace is skipped ends the lease once": {
		[]e{{Kind: lock.Granted, Token: 1}, {Kind: lock.Revoked, Token: 1, Reason: "first"}, {Kind: lock.Revoked, Token: 1, Reason: "second"}},
		paddock.Timeline{Holds: []lock.Hold{{Token: 1, GrantedAt: at(0), EndedAt: at(1), End: lock.Revoked, Reason: "first"}}},
	},
	"waits end by a grant or without one": {
		[]e{
			{Kind: lock.Queued, Place: 4, Holder: "a"}, {Kind: lock.Queued, Place: 5, Holder: "b"}, {Kind: lock.Queued, Place: 6, Holder: "c"},
			{Kind: lock.Dequeued, Place: 5, Holder: "b", Reason: "r"}, {Kind: lock.Granted, Place: 4, Holder: "a", Token: 9},
		},
		paddock.Timeline{
			Holds: []lock.Hold{{Holder: "a", Token: 9, GrantedAt: at(4)}},
			Waits: []paddock.Wait{
				{Place: 4, Holder: "a", JoinedAt: at(0), LeftAt: at(4), End: lock.Granted},
				{Place: 5, Holder: "b", JoinedAt: at(1), LeftAt: at(3), End: lock.Dequeued, Reason: "r"},
				{Place: 6, Holder: "c", JoinedAt: at(2)},
			},
		},
	},
	"a withdrawn grant goes back to its place": {
		[]e{{Kind: lock.Granted, Place: 2, Holder: "a", Token: 3}, {Kind: lock.Withdrawn, Place: 2, Holder: "a", Token: 3}, {Kind: lock.Granted, Place: 2, Holder: "a", Token: 4}},
		paddock.Timeline{
			Holds: []lock.Hold{
				{Holder: "a", Token: 3, GrantedAt: at(0), EndedAt: at(1), End: lock.Withdrawn},
				{Holder: "a", Token: 4, GrantedAt: at(2)},
			},
			Waits: []paddock.Wait{
				{Place: 2, Holder: "a", LeftAt: at(0), End: lock.Granted},
				{Place: 2, Holder: "a", JoinedAt: at(1), LeftAt: at(2), End: lock.Granted},
			},
		},
	},
}

// TestTimelinePairsBeginningsWithEnds: what began and what ended are one lease, or one wait.
func TestTimelinePairsBeginningsWithEnds(t *testing.T) {
	t.Parallel()
	for name, c := range timelines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range c.events {
				c.events[i].At = at(i)
			}
			if diff := cmp.Diff(c.want, paddock.TimelineOf(c.events)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A longPast is a service whose lock had very many readers, in turn, and always another one.
type longPast struct {
	paddock.Service
	read int // events
}

func (p *longPast) Events(_ context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
	const all = 30_000
	var page paddock.Page[lock.Event]
	id, err := all, error(nil)
	if q.Cursor != "" {
		id, err = strconv.Atoi(q.Cursor)
	}
	for step := map[bool]int{true: -1, false: 1}[q.Descending]; len(page.Items) < q.Limit; {
		if id += step; id < 1 || id >= all {
			break
		}
		kind := []lock.Kind{lock.Granted, lock.Released}[id%2]
		page.Items = append(page.Items, lock.Event{ID: int64(id), At: at(id), Kind: kind, Slot: 1 + id/2%2, Revision: int64(id + 7), Mode: lock.Shared})
		page.Next = strconv.Itoa(id)
	}
	p.read += len(page.Items)
	return page, err
}

// TestHoldsReadOnlySoManyEvents: the answer says that leases may be missing.
func TestHoldsReadOnlySoManyEvents(t *testing.T) {
	t.Parallel()
	p := &longPast{}
	list, err := paddock.ReadHolds(t.Context(), p, paddock.HoldQuery{Name: "a", At: at(15_000)})
	if err != nil || list.Complete {
		t.Errorf("%v; complete: %t", err, list.Complete)
	}
	if most := 2 * (paddock.MaxHoldEvents + paddock.MaxLimit); p.read < paddock.MaxHoldEvents || p.read > most {
		t.Errorf("%d events were read, want %d to %d", p.read, paddock.MaxHoldEvents, most)
	}
	p.read = 0
	if list, err = paddock.ReadHolds(t.Context(), p, paddock.HoldQuery{Name: "a", Limit: 3}); err != nil || !list.Complete || len(list.Holds) != 3 {
		t.Errorf("the last three are %+v, %v", list, err)
	}
	if p.read > paddock.DefaultLimit {
		t.Errorf("%d events were read for three holds", p.read)
	}
}
