package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/row"
)

const (
	// joinLinger is how long an acquire that must wait anyway is held back before it joins the queue of its lock.
	joinLinger = 2 * time.Millisecond
	// queueBudget bounds the queue calls of one batch, and queuedBudget those of them that are about locks with a queue. Each of
	// these costs more the longer the queue is, and small batches are the quickest way through a long one.
	queueBudget  = 256
	queuedBudget = 16
	// queueShare is how many queue calls of one lock a batch takes before it turns to the next lock.
	queueShare = 16
)

// A dispatcher decides which calls go into the next batch of its group.
//
// Queue calls are those about a place in a queue: acquires that may wait, claims, and leaves. There may be ten thousand of
// them at once, and each costs more the longer the queue is. So they are held back here, in a backlog for each lock, and go
// into the group in shares of queueBudget, one share at a time, by turns of the locks. Within a lock they keep their order, but that
// claims go first. All other calls go into the group at once: a renewal waits for one share of queue calls at most,
// not for all that came before it.
//
// A call about a lease_id never overtakes an earlier call with the same lease_id: a client that gives up releases the lease
// that it has just asked for.
//
// An acquire that must wait anyway lingers here for a moment, and goes in with the next batch. So a lock that is contended
// costs a transaction for each hand-off, and not another one for each return to its queue.
type dispatcher struct {
	*group
	linger time.Duration

	mu       sync.Mutex
	backlogs map[string]*backlog // of the locks that have one
	turns    []*backlog          // the same, in the order in which they are served
	held     int                 // calls in all backlogs
	released int                 // queue calls that are in the group, and no batch has taken yet
	due      bool                // whether the backlogs are to be worked off; otherwise they linger
	timer    *time.Timer         // ends the lingering
}

// A backlog is the queue calls of one lock that are held back.
type backlog struct {
	name   string
	queued bool    // whether the lock has a queue, as far as is known
	claims []*call // before all others
	calls  []*call
}

func newDispatcher(g *group) *dispatcher {
	return &dispatcher{group: g, linger: joinLinger, backlogs: make(map[string]*backlog)}
}

// do decides an urgent command, one that is no queue call, and returns its outcome.
func (d *dispatcher) do(ctx context.Context, cmd lock.Command) (row.Outcome, error) {
	c := batch.NewCall[lock.Command, row.Outcome](cmd)
	if !d.offer(c) {
		return row.Outcome{}, batch.ErrFull
	}
	return c.Wait(ctx)
}

// queue decides a queue call and returns its outcome. queued reports whether its lock has a queue, as far as is known: an
// acquire must wait there anyway.
func (d *dispatcher) queue(ctx context.Context, cmd lock.Command, queued bool) (row.Outcome, error) {
	c := batch.NewCall[lock.Command, row.Outcome](cmd)
	_, joins := cmd.(Acquire)
	if !d.hold(c, queued, queued && joins) {
		return row.Outcome{}, batch.ErrFull
	}
	return c.Wait(ctx)
}

// isQueueCall reports whether the command is about a place in a queue.
func isQueueCall(cmd lock.Command) bool {
	switch c := cmd.(type) {
	case Acquire:
		return c.Wait > 0
	case lock.Claim, lock.Leave:
		return true
	}
	return false
}

// offer puts urgent calls into the group, behind a share of the calls that linger, and returns true; or takes none of them,
// if the group has not room for all.
func (d *dispatcher) offer(calls ...*call) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held == 0 {
		return d.Offer(calls...)
	}
	ahead := d.extract(calls)
	if d.released == 0 {
		ahead = append(ahead, d.share()...)
	}
	room := d.Offer(append(ahead, calls...)...)
	if !room {
		d.Add(ahead...)
	}
	d.released += len(ahead)
	return room
}

// hold puts a queue call into the backlog of its lock, and returns true; or false if an acquire finds as many calls held
// back as may be. Claims and leaves are of calls that have been let in before.
func (d *dispatcher) hold(c *call, queued, lingers bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, joins := c.Req.(Acquire); joins && d.held >= MaxQueue {
		return false
	}
	name := home(c.Req)
	b := d.backlogs[name]
	if b == nil {
		b = &backlog{name: name}
		d.backlogs[name], d.turns = b, append(d.turns, b)
	}
	if _, claims := c.Req.(lock.Claim); claims {
		b.claims = append(b.claims, c)
	} else {
		b.calls = append(b.calls, c)
	}
	b.queued = queued
	d.held++
	switch {
	case !lingers:
		d.release()
	case d.timer == nil && !d.due:
		d.timer = time.AfterFunc(d.linger, d.lingered)
	}
	return true
}

// lingered ends the lingering.
func (d *dispatcher) lingered() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.release()
}

// took notes that a batch has taken the calls out of the group, and releases the next share.
func (d *dispatcher) took(calls []*call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.released == 0 {
		return
	}
	for _, c := range calls {
		if isQueueCall(c.Req) {
			d.released--
		}
	}
	d.released = max(d.released, 0) // a call that is done again had not been counted
	if d.due {
		d.release()
	}
}

// release ends the lingering and puts a share of the backlogs into the group, unless one is there. The caller holds mu.
func (d *dispatcher) release() {
	if d.due = d.held > 0; d.released > 0 {
		return
	}
	share := d.share()
	d.released = len(share)
	d.Add(share...)
}

// share takes calls out of the backlogs: queueShare of each lock, by turns, within queueBudget and queuedBudget. A lock for
// which there is no budget keeps its turn. The caller holds mu.
func (d *dispatcher) share() (share []*call) {
	room, queuedRoom := queueBudget, queuedBudget
	for before := -1; before != len(share); {
		before = len(share)
		var keep, served []*backlog
		for _, b := range d.turns {
			most := min(queueShare, room)
			if b.queued {
				most = min(most, queuedRoom)
			}
			calls := b.take(most)
			share, room = append(share, calls...), room-len(calls)
			if b.queued {
				queuedRoom -= len(calls)
			}
			switch {
			case b.empty():
				delete(d.backlogs, b.name)
			case len(calls) > 0:
				served = append(served, b)
			default:
				keep = append(keep, b)
			}
		}
		d.turns = append(keep, served...)
	}
	d.settle(len(share))
	return share
}

// extract takes the calls out of the backlogs that one of the calls must not overtake. The caller holds mu.
func (d *dispatcher) extract(calls []*call) (earlier []*call) {
	for _, c := range calls {
		id, about := leaseIDOf(c.Req)
		b := d.backlogs[home(c.Req)]
		if b == nil || !about {
			continue
		}
		same := func(o *call) bool {
			of, _ := leaseIDOf(o.Req)
			return of == id
		}
		for _, o := range b.calls {
			if same(o) {
				earlier = append(earlier, o)
			}
		}
		b.calls = slices.DeleteFunc(b.calls, same)
		if b.empty() {
			d.turns = slices.DeleteFunc(d.turns, func(o *backlog) bool { return o == b })
			delete(d.backlogs, b.name)
		}
	}
	d.settle(len(earlier))
	return earlier
}

// settle notes that calls were taken out of the backlogs. The caller holds mu.
func (d *dispatcher) settle(taken int) {
	if d.held -= taken; d.held > 0 {
		return
	}
	d.due, d.turns = false, nil
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

func (b *backlog) empty() bool { return len(b.claims)+len(b.calls) == 0 }

// take takes up to n calls, the claims first.
func (b *backlog) take(n int) []*call {
	claims := min(n, len(b.claims))
	others := min(n-claims, len(b.calls))
	taken := append(b.claims[:claims:claims], b.calls[:others]...)
	b.claims, b.calls = b.claims[claims:], b.calls[others:]
	return taken
}

// leaseIDOf returns the lease_id that the command names, false if it names none.
func leaseIDOf(cmd lock.Command) (lock.LeaseID, bool) {
	switch c := cmd.(type) {
	case Acquire:
		return c.LeaseID, true
	case lock.Renew:
		return c.LeaseID, true
	case lock.Release:
		return c.LeaseID, true
	case lock.Claim:
		return c.LeaseID, true
	case lock.Leave:
		return c.LeaseID, true
	}
	return lock.LeaseID{}, false
}
