package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// Bounds of subscribers.
const (
	// readyWithin is how long the clients wait until all subscribers have a cursor.
	readyWithin = 5 * time.Second
	// catchUpWithin is how long subscribers may read on when the clients are done.
	catchUpWithin = 15 * time.Second
	// streamShort and streamLong are the mean times, each for one stream of two, after which
	// a subscriber closes its stream and opens another one, unless it breaks before.
	streamShort, streamLong = 500 * time.Millisecond, 6 * time.Second
	// maxStream bounds both.
	maxStream = time.Minute
	// shortPage bounds the pages of which a poller asks for few events.
	shortPage = 20
	// pollWait is the longest wait for a page of events.
	pollWait = time.Second
	// minWatch and longestWatch bound the wait of a blocking read. It is long, so that
	// one that overlooks a change is late.
	minWatch, maxWatch = 3 * time.Second, 10 * time.Second
	// watchers is how many goroutines make blocking reads.
	watchers = 2
	// retryPause is the longest pause of a subscriber after an error.
	retryPause = 150 * time.Millisecond
)

// A Stream sends events as they happen, page by page, until it is closed or breaks.
type Stream interface {
	Next() (lock.Page[lock.Event], error)
	Close() error
}

// StreamOf returns what opens streams of a client as a Replica has it.
func StreamOf[S Stream](open func(context.Context, lock.EventQuery) (S, error)) func(context.Context, lock.EventQuery) (Stream, error) {
	return func(ctx context.Context, q lock.EventQuery) (Stream, error) {
		s, err := open(ctx, q)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}

// SubscriberStats say what subscribers were told.
type SubscriberStats struct {
	Streams, Pollers, Watchers int
	Events                     int // told to streams and pollers
	Gaps                       int // told, too
	Connections                int // of streams
	Pages                      int // answered to pollers
	Watches                    int // blocking reads that were answered
}

// An subscribers are the subscribers of a run.
type subscribers struct {
	*run
	rec  *verify.Recorder
	ctx  context.Context // ends when all are to stop
	stop context.CancelFunc

	ready   sync.WaitGroup // until each reader of events has a cursor
	readers sync.WaitGroup // until each has been told of the end, or ctx has ended
	waiting sync.WaitGroup // until each blocking read is over

	mu    sync.Mutex
	stats SubscriberStats
	calls Stats // of blocking reads
}

// subscribe starts subscribers and returns when each has a cursor, or after readyWithin.
func (r *run) subscribe(rec *verify.Recorder) *subscribers {
	a := &subscribers{run: r, rec: rec}
	a.ctx, a.stop = context.WithCancel(r.base)
	if !r.Subscribers {
		return a
	}
	for i, s := range r.Services {
		if s.Stream != nil {
			a.stats.Streams++
			a.start(verify.Streaming, i, (*eventReader).stream)
		}
		a.stats.Pollers++
		a.start(verify.Polling, i, (*eventReader).poll)
	}
	a.stats.Watchers = watchers
	for i := range watchers {
		a.waiting.Go(func() { a.watch(i) })
	}
	all := make(chan struct{})
	go func() { a.ready.Wait(); close(all) }()
	select {
	case <-all:
	case <-time.After(readyWithin):
	}
	return a
}

// endOf returns the name of the lock whose grant tells subscribers that there is no more.
func (r *run) endOf() string { return r.Prefix + ":end" }

// stopAtEnd marks the end of the run with a lock of its own, lets the subscribers read up
// to there, for catchUpWithin at most, and stops them.
func (a *subscribers) stopAtEnd() {
	defer a.stop()
	if !a.Subscribers {
		return
	}
	if err := a.markEnd(); err == nil {
		defer time.AfterFunc(catchUpWithin, a.stop).Stop()
	} else {
		a.stop()
	}
	a.readers.Wait()
	a.stop()
	a.waiting.Wait()
}

// markEnd acquires and releases the lock of the end.
func (a *subscribers) markEnd() error {
	c := a.client(a.Clients, a.rec)
	l := lease{acquire: lock.Acquire{
		Name: a.endOf(), LeaseID: lock.LeaseID(uuid.New()), Holder: a.Prefix + " end", Mode: lock.Exclusive, TTL: a.TTL,
	}}
	err := c.sendAcquire(&l, 0, never)
	if err == nil {
		err = c.release(l, 0)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls.add(c.stats)
	return err
}

// A eventReader is a subscriber that reads events.
type eventReader struct {
	*subscribers
	*verify.Subscriber
	rng         rng
	via         int // the replica that is asked
	cursor      string
	stats       SubscriberStats
	cursorReady sync.Once // done when the reader has its first cursor
}

func (a *subscribers) start(kind verify.SubscriptionKind, via int, read func(*eventReader)) {
	n := uint64(via)<<1 | 1<<63
	if kind == verify.Streaming {
		n++
	}
	r := &eventReader{subscribers: a, Subscriber: a.rec.Subscribe(kind, a.Prefix+":"), rng: rng{rand.New(rand.NewPCG(a.Seed, n))}, via: via, cursor: lock.CursorNow}
	a.ready.Add(1)
	a.readers.Go(func() {
		defer r.cursorReady.Do(a.ready.Done)
		read(r)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.stats.Events += r.stats.Events
		a.stats.Gaps += r.stats.Gaps
		a.stats.Connections += r.stats.Connections
		a.stats.Pages += r.stats.Pages
	})
}

// receive records a page and returns whether it tells of the end.
func (r *eventReader) receive(page lock.Page[lock.Event]) (end bool) {
	r.Received(page)
	r.cursor = page.Next
	r.stats.Events += len(page.Items)
	if page.Gap {
		r.stats.Gaps++
	}
	for _, e := range page.Items {
		end = end || e.Kind == lock.Granted && e.Name == r.endOf()
	}
	r.cursorReady.Do(r.subscribers.ready.Done)
	return end
}

// stream reads streams of events, one after the other, until it is told of the end. It
// closes them at random moments, and asks another replica when one cannot be asked.
func (r *eventReader) stream() {
	for home, failed := r.via, 0; r.ctx.Err() == nil; {
		r.via = (home + failed/2) % len(r.Services)
		end, err := r.connect()
		if end {
			return
		}
		if failed++; err == nil {
			failed = 0
		}
		r.pause(time.Millisecond, retryPause)
	}
}

// connect opens one stream and reads it until it ends. It returns an error if it could
// not be opened.
func (r *eventReader) connect() (end bool, err error) {
	s := r.Services[r.via]
	if s.Stream == nil {
		return false, errors.New("load: no stream")
	}
	ctx, hangUp := context.WithTimeout(r.ctx, r.streamFor())
	defer hangUp()
	r.Requested(s.Via, r.cursor)
	st, err := s.Stream(ctx, lock.EventQuery{Prefix: r.Prefix + ":", Cursor: r.cursor})
	if err != nil {
		r.Ended(err)
		return false, err
	}
	r.Opened()
	r.stats.Connections++
	for !end && err == nil {
		var page lock.Page[lock.Event]
		if page, err = st.Next(); err == nil {
			end = r.receive(page)
		}
	}
	r.Ended(errors.Join(err, st.Close()))
	return end, nil
}

// streamFor returns for how long to read a stream.
func (r *eventReader) streamFor() time.Duration {
	mean := streamShort
	if r.rng.oneIn(2) {
		mean = streamLong
	}
	return min(time.Duration(r.rng.ExpFloat64()*float64(mean)), maxStream)
}

// poll reads pages of events until it is told of the end. It keeps its cursor over
// errors, and moves to another replica now and then.
func (r *eventReader) poll() {
	for r.ctx.Err() == nil {
		q := lock.EventQuery{Prefix: r.Prefix + ":", Cursor: r.cursor, Limit: lock.MaxLimit}
		if r.rng.oneIn(4) {
			q.Limit = 1 + r.rng.IntN(shortPage)
		}
		if r.rng.oneIn(2) && r.cursor != lock.CursorNow {
			q.Wait = r.rng.between(0, pollWait)
		}
		page, err := r.page(q)
		switch {
		case err == nil && r.receive(page):
			r.Ended(nil)
			return
		case err == nil:
			r.Ended(nil)
			r.stats.Pages++
		default:
			r.Ended(err)
		}
		if r.rng.oneIn(40) || err != nil && r.rng.oneIn(2) {
			r.via = (r.via + 1) % len(r.Services)
		}
		switch {
		case err != nil:
			r.pause(retryPause/3, retryPause)
		case len(page.Items) < q.Limit:
			r.pause(time.Millisecond, 40*time.Millisecond)
		}
	}
}

// page asks for a page.
func (r *eventReader) page(q lock.EventQuery) (lock.Page[lock.Event], error) {
	ctx, cancel := context.WithTimeout(r.ctx, q.Wait+r.AnswerTimeout)
	defer cancel()
	s := r.Services[r.via]
	r.Requested(s.Via, q.Cursor)
	return s.Locks.Events(ctx, q)
}

// pause waits for a time between the two, or until all are to stop.
func (r *eventReader) pause(least, most time.Duration) {
	select {
	case <-time.After(r.rng.between(least, most)):
	case <-r.ctx.Done():
	}
}

// watch makes blocking reads of the locks of the run until all are to stop. After some it
// asks how the newest token stands: that a lease is over has to be final.
func (a *subscribers) watch(number int) {
	c := a.client(a.Clients+1+number, a.rec)
	d := rng{rand.New(rand.NewPCG(a.Seed, 1<<62|uint64(number)))}
	for a.ctx.Err() == nil {
		w := lock.Watch{Name: a.names.now(d.IntN(a.Locks))}
		for range 1 + d.IntN(8) {
			l, err := within(a, w.Wait, c.services[d.IntN(len(c.services))].Watch, w)
			c.stats.count(verify.Watch, err)
			if err == nil && l.Token != 0 && d.oneIn(2) {
				_, err = within(a, 0, c.services[d.IntN(len(c.services))].VerifyToken, lock.Verify{Name: w.Name, Token: l.Token})
				c.stats.count(verify.VerifyToken, err)
			}
			if err != nil {
				break
			}
			w.Seen, w.Wait = l.Version(), d.between(minWatch, maxWatch)
		}
		select {
		case <-time.After(d.between(time.Millisecond, 40*time.Millisecond)):
		case <-a.ctx.Done():
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stats.Watches += c.stats.Calls[verify.Watch][Done]
	a.calls.add(c.stats)
}

// within makes a call that may take a while longer than it waits.
func within[Q, T any](a *subscribers, wait time.Duration, call func(context.Context, Q) (T, error), q Q) (T, error) {
	ctx, cancel := context.WithTimeout(a.ctx, wait+a.AnswerTimeout)
	defer cancel()
	return call(ctx, q)
}

// String says what subscribers there were, and what they were told.
func (s SubscriberStats) String() string {
	return fmt.Sprintf("%d streams were told over %d connections, and %d pollers in %d pages, %d events and %d gaps; %d blocking reads returned",
		s.Streams, s.Connections, s.Pollers, s.Pages, s.Events, s.Gaps, s.Watches)
}
