package guard

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// SessionOptions describe a session to open. The zero SessionOptions ask for one with the default TTL. Each field has
// the meaning of the same field of [Options].
type SessionOptions struct {
	Holder   string
	TTL      time.Duration
	Grace    time.Duration
	Metadata json.RawMessage
	ID       lock.SessionID // zero means a random id
	Retry    time.Duration
	OnRetry  func(error)
	Margin   time.Duration
	OnState  func(State, error)
	Observer Observer
}

// A Session keeps the leases that are acquired with it alive: one renewal, one goroutine, one timer and one deadline
// serve all of them. When it is lost or closed, all of its leases are lost, and the contexts of their work end. Its
// methods are safe for concurrent use.
type Session struct {
	heart
	locks paddock.Service
	id    lock.SessionID

	leases   sync.Map     // of *Lease, the leases that are not known to have ended
	revoked  atomic.Int64 // the RevokedLeases of the last answer
	searches struct {     // for lost leases
		mu             sync.Mutex
		running, again bool
	}
}

// OpenSession opens a session and renews it until it is closed or lost. It repeats the call for o.Retry while the
// service is unreachable or overloaded. The context bounds the opening, not the session.
func OpenSession(ctx context.Context, locks paddock.Service, o SessionOptions) (*Session, error) {
	return openSession(ctx, locks, o, newClock())
}

func openSession(ctx context.Context, locks paddock.Service, o SessionOptions, c clock) (*Session, error) {
	opts, err := Options{
		Holder: o.Holder, TTL: o.TTL, Grace: o.Grace, Metadata: o.Metadata, Retry: o.Retry, OnRetry: o.OnRetry, Margin: o.Margin,
		OnState: o.OnState, Observer: o.Observer,
	}.resolve()
	if err != nil {
		return nil, err
	}
	s := &Session{locks: locks, id: o.ID}
	if s.id == (lock.SessionID{}) {
		s.id = lock.SessionID(uuid.New())
	}
	g, suspended, err := s.open(ctx, opts, c)
	if err != nil {
		return nil, inOptions(err)
	}
	s.heart = heart{
		name: s.id.Ref().String(), what: "session", lost: lock.ErrSessionLost, opts: opts, clock: c,
		stateNotifier: stateNotifier{callback: o.OnState}, sendRenewal: s.renew, watchEnd: watchEnd(locks, nil, s.id.Ref()),
	}
	s.revoked.Store(g.RevokedLeases)
	s.start(ctx, g.Until, suspended)
	return s, nil
}

// open returns the session, and the clock's suspended time when it was requested.
func (s *Session) open(ctx context.Context, o Options, c clock) (lock.SessionGrant, time.Duration, error) {
	until := deadlineAfter(c.now(), o.Retry)
	for pauses := newRetryBackoff(); ; {
		suspended := c.suspended()
		call, cancel := context.WithTimeout(ctx, answerTimeout)
		g, err := s.locks.OpenSession(call, lock.OpenSession{
			ID: s.id, Holder: o.Holder, TTL: o.TTL, Grace: o.Grace, Metadata: o.Metadata,
		})
		cancel()
		if err == nil || !isTransient(err) || ctx.Err() != nil || !until.IsZero() && !c.now().Before(until) {
			return g, suspended, err
		}
		if o.OnRetry != nil {
			o.OnRetry(err)
		}
		if !pauses.sleep(ctx, err) {
			return g, suspended, err
		}
	}
}

// ID returns the secret session_id, with which other processes can acquire leases in the session.
func (s *Session) ID() lock.SessionID { return s.id }

// Ref returns the public name of the session.
func (s *Session) Ref() lock.SessionRef { return s.id.Ref() }

// Close closes the session, even if ctx has ended, and takes five seconds at most. It immediately closes the Done
// channels of the session and of its leases; then the service ends all of them. Stop the work before calling it. Its
// errors are those of Lease.Release, with lock.ErrSessionLost if the session had ended before.
func (s *Session) Close(ctx context.Context) error {
	return s.release(ctx, func(ctx context.Context) error {
		return s.locks.CloseSession(ctx, lock.CloseSession{ID: s.id})
	})
}

// join makes l a lease of the session. suspended is the clock's suspended time when the grant g was requested.
func (s *Session) join(ctx context.Context, l *Lease, g lock.Grant, suspended time.Duration) {
	var maxHold time.Time
	if g.MaxHold > 0 {
		maxHold = g.Until.Add(g.AcquiredAt.Add(g.MaxHold).Sub(g.ExpiresAt)) // which may be that of the session
	}
	leave := l.follow(ctx, &s.heart, maxHold, suspended, func() {
		l.hinted.Store(true)
		s.search()
	})
	s.leases.Store(l, nil)
	context.AfterFunc(l.ctx, func() {
		leave()
		s.leases.Delete(l)
	})
}

// renew sends a heartbeat. If leases of the session were revoked, it finds out which.
func (s *Session) renew(ctx context.Context) (time.Time, error) {
	g, err := s.locks.RenewSession(ctx, lock.RenewSession{ID: s.id})
	if err != nil {
		return g.Until, err
	}
	s.revoked.Store(g.RevokedLeases)
	s.search()
	return g.Until, nil
}

// search begins a search for lost leases. While one runs, it makes that one search once more, so there is one at a time.
func (s *Session) search() {
	s.searches.mu.Lock()
	defer s.searches.mu.Unlock()
	if s.searches.again = s.searches.running; !s.searches.running {
		s.searches.running = true
		go s.searchAll()
	}
}

// searchAll searches until no further search was asked for meanwhile.
func (s *Session) searchAll() {
	for {
		s.findLost()
		s.searches.mu.Lock()
		again := s.searches.again
		s.searches.again, s.searches.running = false, again
		s.searches.mu.Unlock()
		if !again {
			return
		}
	}
}

// findLost renews the suspects to find out which have ended. The next heartbeat tries again those that are not answered.
// Renewing a lease of a session does not move its end. Of several locks, which end together, it renews the first: while
// that is held, the answer is lock.ErrLeaseInSet.
func (s *Session) findLost() {
	revoked := s.revoked.Load()
	for chunk := range slices.Chunk(s.suspects(revoked), paddock.MaxBatch) {
		items := make([]lock.Command, len(chunk))
		for i, l := range chunk {
			items[i] = lock.Renew{Locks: l.names[:1], LeaseID: l.granted.ID}
		}
		ctx, cancel := context.WithTimeout(s.ctx, answerTimeout)
		suspended := s.clock.suspended()
		for i, r := range s.locks.Batch(ctx, items) {
			chunk[i].isHeldAt(revoked, r.Err, suspended)
		}
		cancel()
	}
}

// suspects returns the leases that may have ended: of which there was a hint, or which are not known to be held since the
// session had lost so many.
func (s *Session) suspects(revoked int64) (all []*Lease) {
	for l := range s.leases.Range {
		l := l.(*Lease)
		if l.hinted.Swap(false) {
			l.heldAt.Store(-1)
		}
		if l.heldAt.Load() < revoked && l.ctx.Err() == nil {
			all = append(all, l)
		}
	}
	return all
}
