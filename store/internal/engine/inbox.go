package engine

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/row"
)

const (
	// runnerIdle is how long the goroutine that runs batches waits for the next one, so that it keeps its stack, which
	// has grown: one client alone has an acquire 7 % sooner.
	runnerIdle = time.Second
	// joinLinger is how long an acquire is held back at most, if waiters of this replica are before it in the queue.
	joinLinger = 50 * time.Millisecond
	// lingerWait is how long an acquire must be willing to wait so that it lingers: it is in the queue for most of that.
	lingerWait = 4 * joinLinger
	// lingerShare says which part of a queue has to be of this replica: one waiter in so many. With fewer, its clients
	// would have fewer turns than others, since an acquire that lingers misses the turn of its replica.
	lingerShare = 8
	// queueBudget bounds the queue calls of one batch, and queuedBudget those of them on locks with a queue. Each of
	// these costs more the longer the queue is, and small batches are the quickest way through a long one.
	queueBudget  = 256
	queuedBudget = 16
	// queueShare is how many queue calls of one lock a batch takes before it turns to the next lock.
	queueShare = 16
)

// An inbox gathers calls, and runs them in batches, one batch at a time. Calls that arrive while a batch runs form the
// next one.
//
// Queue calls are those about a place in a queue: acquires that may wait, claims, and leaves. There may be ten
// thousand of them at once, and each costs more the longer the queue is. So they are held back in a backlog for each
// lock, and a batch takes a share of queueBudget, by turns of the locks. Within a lock they keep their order, but
// claims go first. All other calls are urgent: they are in the next batch, so a renewal waits for one share of queue
// calls at most.
//
// A call, except for a claim, never overtakes an earlier acquire or leave with the same lease_id: a client that gives
// up releases the lease that it has just asked for.
//
// An acquire lingers behind waiters of this replica, see cache.queued: it joins the queue together with the next call
// about its lock, or after joinLinger. So a contended lock costs a commit for each hand-off, and not another one for
// each return to its queue. While waiters of another replica are granted the lock in turn, the acquires of this replica
// do not write the lock. They gather until this replica's turn, so its waiters are neighbours in the queue. The lock is
// never free meanwhile: the waiter ahead is granted it, or leaves, and both are calls about the lock. But an acquire at
// another replica may join the queue before an earlier acquire that lingers here.
type inbox struct {
	serve func([]*call) // must answer each of the calls, or put it back
	room  int           // for urgent calls
	next  chan int      // received by a runner without a batch: the value of started for it

	mu       sync.Mutex
	urgent   []*call
	backlogs map[string]*backlog // of the locks that have one
	turns    []*backlog          // those that are due, in the order in which they are served
	held     int                 // calls in all backlogs

	running bool      // a batch runs that is not detached
	started int       // incremented by detach: the batches before are not waited for
	active  int       // batches that run, detached ones included
	idle    sync.Cond // signaled when active is zero
	ended   chan struct{}
	end     sync.Once // closes ended
}

// A backlog is the queue calls of one lock that are held back.
type backlog struct {
	name   string
	queued bool    // whether the lock has a queue, as far as is known
	claims []*call // before all others
	calls  []*call

	due    bool        // it is in turns; otherwise its calls linger
	linger *time.Timer // ends that; nil if none has lingered
}

// errFull is returned by do when there is no room for the call.
var errFull = errors.New("too many calls are queued")

// newInbox returns an inbox.
func newInbox(serve func([]*call)) *inbox {
	b := &inbox{serve: serve, room: MaxQueue, next: make(chan int), ended: make(chan struct{}), backlogs: make(map[string]*backlog)}
	b.idle.L = &b.mu
	return b
}

// do decides the call's command in a batch, and returns its outcome. queued and lingers report whether its lock has a
// queue, and whether an acquire may linger, as far as is known.
func (b *inbox) do(ctx context.Context, c *call, queued, lingers bool) (*row.Outcome, error) {
	put := func() bool { return b.offer(c) }
	if use := c.Req.traits.Queue; use != lock.NoQueue {
		put = func() bool { return b.hold(c, queued, lingers && use == lock.Joins) }
	}
	if !put() {
		return nil, errFull
	}
	return c.Wait(ctx)
}

// offer adds urgent calls, in order, and returns true; or none of them, if there is not room for all.
func (b *inbox) offer(calls ...*call) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.urgent)+len(calls) > b.room {
		return false
	}
	b.urgent = append(append(b.urgent, b.extract(calls)...), calls...)
	for _, c := range calls {
		b.endLinger(b.backlogs[c.Req.home])
	}
	b.start()
	return true
}

// putBack adds calls that were accepted before.
func (b *inbox) putBack(calls ...*call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.urgent = append(b.urgent, calls...)
	b.start()
}

// hold adds a queue call to the backlog of its lock, and returns true; or false if an acquire finds too many calls
// held back. Claims and leaves are of calls that have been let in before.
func (b *inbox) hold(c *call, queued, lingers bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	use, name := c.Req.traits.Queue, c.Req.home
	if use == lock.Joins && b.held >= MaxQueue {
		return false
	}
	of := b.backlogs[name]
	if of == nil {
		of = &backlog{name: name}
		b.backlogs[name] = of
	}
	if use == lock.Claims {
		of.claims = append(of.claims, c)
	} else {
		of.calls = append(of.calls, c)
	}
	of.queued = queued
	b.held++
	switch {
	case !lingers:
		b.endLinger(of)
		b.start()
	case of.linger == nil && !of.due:
		of.linger = time.AfterFunc(joinLinger, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.backlogs[name] == of {
				b.endLinger(of)
				b.start()
			}
		})
	}
	return true
}

// endLinger makes the backlog due, if there is one. The caller holds mu.
func (b *inbox) endLinger(of *backlog) {
	if of != nil && !of.due {
		of.due, b.turns = true, append(b.turns, of)
	}
}

// remove removes a backlog that is empty, but not from turns. The caller holds mu.
func (b *inbox) remove(of *backlog) {
	delete(b.backlogs, of.name)
	if of.linger != nil {
		of.linger.Stop()
	}
}

// start runs batches, unless one runs. The caller holds mu.
func (b *inbox) start() {
	if b.running || !b.pending() {
		return
	}
	b.running = true
	b.active++
	started := b.started
	select {
	case b.next <- started:
	default:
		go b.runner(started)
	}
}

// runner runs batches until there is none for runnerIdle.
func (b *inbox) runner(started int) {
	idle := time.NewTimer(runnerIdle)
	defer idle.Stop()
	for {
		for calls := b.gather(started); calls != nil; calls = b.gather(started) {
			b.serve(calls)
		}
		idle.Reset(runnerIdle)
		select {
		case started = <-b.next:
		case <-idle.C:
			return
		case <-b.ended:
			return
		}
	}
}

func (b *inbox) pending() bool { return len(b.urgent) > 0 || len(b.turns) > 0 }

// gather returns the next batch, nil if there is none, or if the runner was detached. Callers that the last batch has
// answered often make their next call at once, so it yields to them first.
func (b *inbox) gather(started int) []*call {
	runtime.Gosched()
	b.mu.Lock()
	defer b.mu.Unlock()
	if started != b.started || !b.pending() {
		if started == b.started {
			b.running = false
		}
		if b.active--; b.active == 0 {
			b.idle.Broadcast()
		}
		return nil
	}
	calls := b.share()
	n := min(len(b.urgent), MaxBatch-len(calls))
	calls = append(calls, b.urgent[:n]...)
	if b.urgent = b.urgent[n:]; len(b.urgent) == 0 {
		b.urgent = nil
	}
	return calls
}

// detach makes the inbox go on beside its running batch, which may take very long.
func (b *inbox) detach() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running, b.started = false, b.started+1
	b.start()
}

// wait returns when no call is left and nothing runs. It ends the runners.
func (b *inbox) wait() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, of := range b.backlogs {
		b.endLinger(of)
	}
	b.start()
	for b.active > 0 {
		b.idle.Wait()
	}
	b.end.Do(func() { close(b.ended) })
}

// share takes calls out of the backlogs that are due: queueShare of each lock, by turns, within queueBudget and
// queuedBudget. A lock for which there is no budget keeps its turn. The caller holds mu.
func (b *inbox) share() (share []*call) {
	room, queuedRoom := queueBudget, queuedBudget
	for before := -1; before != len(share); {
		before = len(share)
		var keep, served []*backlog
		for _, of := range b.turns {
			most := min(queueShare, room)
			if of.queued {
				most = min(most, queuedRoom)
			}
			calls := of.take(most)
			share, room = append(share, calls...), room-len(calls)
			if of.queued {
				queuedRoom -= len(calls)
			}
			switch {
			case of.empty():
				b.remove(of)
			case len(calls) > 0:
				served = append(served, of)
			default:
				keep = append(keep, of)
			}
		}
		b.turns = append(keep, served...)
	}
	b.held -= len(share)
	return share
}

// extract takes the calls out of the backlogs that one of the calls must not overtake. The caller holds mu.
func (b *inbox) extract(calls []*call) (earlier []*call) {
	if b.held == 0 {
		return nil
	}
	for _, c := range calls {
		of := b.backlogs[c.Req.home]
		if of == nil || !c.Req.isAboutLease() {
			continue
		}
		same := func(o *call) bool { return o.Req.traits.Lease == c.Req.traits.Lease }
		for _, o := range of.calls {
			if same(o) {
				earlier = append(earlier, o)
			}
		}
		if of.calls = slices.DeleteFunc(of.calls, same); of.empty() {
			b.turns = slices.DeleteFunc(b.turns, func(o *backlog) bool { return o == of })
			b.remove(of)
		}
	}
	b.held -= len(earlier)
	return earlier
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
