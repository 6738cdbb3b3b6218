package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// Bounds of subscribers.
const (
	// readyWithin is how long clients wait until all subscribers have a cursor.
	readyWithin = 5 * time.Second
	// catchUpWithin is how long subscribers may read after the clients are done.
	catchUpWithin = 15 * time.Second
	// streamShort and streamLong are the two mean times after which a subscriber closes its stream and
	// opens another.
	streamShort, streamLong = 500 * time.Millisecond, 6 * time.Second
	// maxStream bounds both.
	maxStream = time.Minute
	// shortPage is the largest small page that a poller requests.
	shortPage = 20
	// pollWait is the longest wait for a page of events.
	pollWait = time.Second
	// minWatch and maxWatch bound the wait of a blocking read. The wait is long so that a read that
	// misses a change is late.
	minWatch, maxWatch = 3 * time.Second, 10 * time.Second
	// watchers is the number of goroutines that make blocking reads.
	watchers = 2
	// retryPause is the longest pause of a subscriber after an error.
	retryPause = 150 * time.Millisecond
)

// A Stream returns events as they happen, page by page, until it is closed or breaks.
type Stream interface {
	Next() (paddock.Page[lock.Event], error)
	Close() error
}

// StreamOf converts a client's method that opens streams to Replica.Stream.
func StreamOf[S Stream](open func(context.Context, paddock.EventQuery) (S, error)) func(context.Context,
	paddock.EventQuery) (Stream, error) {
	return func(ctx context.Context, q paddock.EventQuery) (Stream, error) {
		s, err := open(ctx, q)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}

// SubscriberStats sum up what subscribers received.
type SubscriberStats struct {
	Streams, Pollers, Watchers int
	Events                     int // received by streams and pollers
	Gaps                       int // received, too
	Connections                int // of streams
	Pages                      int // received by pollers
	Watches                    int // blocking reads that were answered
}

// add adds what other subscribers received.
func (s *SubscriberStats) add(o SubscriberStats) {
	s.Streams, s.Pollers, s.Watchers = s.Streams+o.Streams, s.Pollers+o.Pollers, s.Watchers+o.Watchers
	s.Events, s.Gaps, s.Connections = s.Events+o.Events, s.Gaps+o.Gaps, s.Connections+o.Connections
	s.Pages, s.Watches = s.Pages+o.Pages, s.Watches+o.Watches
}

// subscribers are the subscribers of a run.
type subscribers struct {
	*run
	rec  *verify.Recorder
	ctx  context.Context // ends when all must stop
	stop context.CancelFunc

	ready   sync.WaitGroup // done when each reader has a cursor
	readers sync.WaitGroup // done when each reader has received the last event, or ctx has ended
	waiting sync.WaitGroup // done when all blocking reads have returned

	mu    sync.Mutex
	stats SubscriberStats
	calls Stats // of blocking reads
}

// subscribe starts the subscribers and returns when each has a cursor, or after readyWithin.
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

// endOf returns the name of the lock whose grant is the last event for subscribers.
func (r *run) endOf() string { return r.Prefix + ":end" }

// stopAtEnd creates the last event, lets the subscribers read up to it for at most catchUpWithin, and
// stops them.
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

// markEnd acquires and releases the lock whose grant is the last event.
func (a *subscribers) markEnd() error {
	c := a.client(a.Clients, a.rec)
	l := lease{acquire: lock.Acquire{
		Locks: lock.One(a.endOf()), LeaseID: lock.LeaseID(uuid.New()), Holder: a.Prefix + " end",
		TTL: a.TTL,
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

// An eventReader is a subscriber that reads events.
type eventReader struct {
	*subscribers
	*verify.Subscriber
	rng         rng
	via         int // index of the replica in use
	cursor      string
	stats       SubscriberStats
	cursorReady sync.Once // done when the reader has its first cursor
}

func (a *subscribers) start(kind verify.SubscriptionKind, via int, read func(*eventReader)) {
	n := uint64(via)<<1 | 1<<63
	if kind == verify.Streaming {
		n++
	}
	r := &eventReader{subscribers: a, Subscriber: a.rec.Subscribe(kind, a.Prefix+":"),
		rng: rng{rand.New(rand.NewPCG(a.Seed, n))}, via: via, cursor: paddock.CursorNow}
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

// receive records a page and reports whether it has the last event.
func (r *eventReader) receive(page paddock.Page[lock.Event]) (end bool) {
	r.Received(page)
	r.cursor = page.Next
	r.stats.Events += len(page.Items)
	if page.Gap {
		r.stats.Gaps++
	}
	for _, e := range page.Items {
		end = end || e.Kind == lock.Granted && e.Name == r.endOf()
	}
	r.cursorReady.Do(r.ready.Done)
	return end
}

// stream reads one stream after the other until the last event. It closes streams at random times,
// and moves to another replica after two failures.
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

// connect opens one stream and reads it until it ends. It returns an error if the stream could not be
// opened.
func (r *eventReader) connect() (end bool, err error) {
	s := r.Services[r.via]
	if s.Stream == nil {
		return false, errors.New("workload: the service has no stream")
	}
	ctx, hangUp := context.WithTimeout(r.ctx, r.streamFor())
	defer hangUp()
	r.Requested(s.Via, r.cursor)
	st, err := s.Stream(ctx, paddock.EventQuery{Prefix: r.Prefix + ":", Cursor: r.cursor})
	if err != nil {
		r.Ended(err)
		return false, err
	}
	r.Opened()
	r.stats.Connections++
	for !end && err == nil {
		var page paddock.Page[lock.Event]
		if page, err = st.Next(); err == nil {
			end = r.receive(page)
		}
	}
	r.Ended(errors.Join(err, st.Close()))
	return end, nil
}

// streamFor returns how long to read a stream.
func (r *eventReader) streamFor() time.Duration {
	mean := streamShort
	if r.rng.oneIn(2) {
		mean = streamLong
	}
	return min(time.Duration(r.rng.ExpFloat64()*float64(mean)), maxStream)
}

// poll reads pages of events until the last event. It keeps its cursor over errors and sometimes
// moves to another replica.
func (r *eventReader) poll() {
	for r.ctx.Err() == nil {
		q := paddock.EventQuery{Prefix: r.Prefix + ":", Cursor: r.cursor, Limit: paddock.MaxLimit}
		if r.rng.oneIn(4) {
			q.Limit = 1 + r.rng.IntN(shortPage)
		}
		if r.rng.oneIn(2) && r.cursor != paddock.CursorNow {
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

// page requests a page.
func (r *eventReader) page(q paddock.EventQuery) (paddock.Page[lock.Event], error) {
	ctx, cancel := context.WithTimeout(r.ctx, q.Wait+r.AnswerTimeout)
	defer cancel()
	s := r.Services[r.via]
	r.Requested(s.Via, q.Cursor)
	return s.Locks.Events(ctx, q)
}

// pause waits for a random time between least and most, or until all must stop.
func (r *eventReader) pause(least, most time.Duration) {
	select {
	case <-time.After(r.rng.between(least, most)):
	case <-r.ctx.Done():
	}
}

// watch makes blocking reads of the run's locks until all must stop. It sometimes verifies the
// newest token afterwards, because an ended token must stay ended.
func (a *subscribers) watch(number int) {
	c := a.client(a.Clients+1+number, a.rec)
	d := rng{rand.New(rand.NewPCG(a.Seed, 1<<62|uint64(number)))}
	for a.ctx.Err() == nil {
		w := paddock.Watch{Name: a.names.now(d.IntN(a.Locks))}
		for range 1 + d.IntN(8) {
			l, err := within(a, w.Wait, c.services[d.IntN(len(c.services))].Watch, w)
			c.stats.count(verify.Watch, err)
			if err == nil && l.Token != 0 && d.oneIn(2) {
				_, err = within(a, 0, c.services[d.IntN(len(c.services))].VerifyToken,
					lock.Verify{Name: w.Name, Token: l.Token})
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

// within makes a call with a timeout of its wait and AnswerTimeout.
func within[Q, T any](a *subscribers, wait time.Duration, call func(context.Context, Q) (T, error), q Q) (T, error) {
	ctx, cancel := context.WithTimeout(a.ctx, wait+a.AnswerTimeout)
	defer cancel()
	return call(ctx, q)
}

// String sums up the subscribers in one sentence.
func (s SubscriberStats) String() string {
	return fmt.Sprintf("%d streams (%d connections) and %d pollers (%d pages) "+
		"received %d events and %d gaps; %d blocking reads returned",
		s.Streams, s.Connections, s.Pollers, s.Pages, s.Events, s.Gaps, s.Watches)
}
