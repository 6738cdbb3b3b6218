package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// settleTime is how long a lease must have been watched before it costs a request, and the least time between two
	// requests for more names.
	settleTime = 300 * time.Millisecond
	// hubWait is the wait of a request of the hub.
	hubWait = 10 * time.Second
	// maxUnheard is how long requests may be given up for more names without an answer. Then one does not wait, so that the
	// cursor moves.
	maxUnheard = time.Second

	minHubPause = time.Second
	maxHubPause = 30 * time.Second
	// noEventsPause is the pause after an answer that the service does not, or not to this API key, tell such events.
	noEventsPause = 5 * time.Minute
)

// A hub waits for the ends of all watched leases and sessions of a client, in one request at a time. What it hears is a
// hint. It runs while a lease or a session is watched that has settled.
type hub struct {
	events func(context.Context, paddock.EventQuery) (paddock.Page[lock.Event], error)

	mu      sync.Mutex
	fresh   []*endWatch // that have not settled; some have left
	settled []*endWatch // in the order of joining; some have left
	live    int         // the settled ones that have not left
	timer   *time.Timer // runs while some are fresh
	running bool
	wake    context.CancelFunc // ends the request or the pause of the goroutine
	waits   bool               // the goroutine's request waits: it is given up for more names, else only with the last watch

	cursor string // of the goroutine, empty if it has none
}

// An endWatch is what one guard watches.
type endWatch struct {
	leases  []lock.Lease
	session lock.SessionRef
	hint    func()

	joined  time.Time
	left    bool
	settled bool
	hinted  bool // since the hub has a cursor
}

// WatchEnds watches leases of one grant, or a session, until leave is called. It calls hint whenever one of them may have
// ended: released, expired or revoked, by whomever. That is only a hint, and may be missing: renew the leases or the
// session to find out. It also calls hint once soon after it has begun, so that the renewal finds what has happened
// before.
//
// A lease or session that is watched for less than 300 ms costs no request. All others of the client share one request
// that waits. Failures are not reported. The function hint must not block; it may be called once more while leave is.
func (c *Client) WatchEnds(leases []lock.Lease, session lock.SessionRef, hint func()) (leave func()) {
	w := &endWatch{leases: leases, session: session, hint: hint}
	c.hub.join(w)
	return func() { c.hub.leave(w) }
}

func (h *hub) join(w *endWatch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.joined = time.Now()
	if h.fresh = append(h.fresh, w); len(h.fresh) > 1 {
		return
	}
	if h.timer == nil {
		h.timer = time.AfterFunc(settleTime, h.settle)
	} else {
		h.timer.Reset(settleTime)
	}
}

// settle is called when the first of the fresh watches may have settled. It is called again for the others, together.
func (h *hub) settle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, before := time.Now(), len(h.settled)
	h.fresh = slices.DeleteFunc(h.fresh, func(w *endWatch) bool {
		if w.settled = !w.left && now.Sub(w.joined) >= settleTime; w.settled {
			h.settled = append(h.settled, w)
			h.live++
		}
		return w.left || w.settled
	})
	next := settleTime
	switch {
	case len(h.settled) == before && len(h.fresh) > 0:
		next -= now.Sub(h.fresh[0].joined)
	case len(h.settled) == before:
	case !h.running:
		h.running = true
		go h.run()
	case h.waits:
		h.interrupt()
	}
	if len(h.fresh) > 0 {
		h.timer.Reset(next)
	}
}

func (h *hub) leave(w *endWatch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.left {
		return
	}
	w.left = true
	if w.settled {
		if h.live--; h.live == 0 {
			h.interrupt()
		}
	}
}

// interrupt ends what the goroutine waits for. The caller holds mu.
func (h *hub) interrupt() {
	if h.wake != nil {
		h.wake()
	}
}

// run asks for events until nothing is watched.
func (h *hub) run() {
	pause, heard, late := minHubPause, time.Now(), false
	for {
		ctx, q, ok := h.next(late)
		if !ok {
			return
		}
		sent := time.Now()
		page, err := h.ask(ctx, q)
		late = false
		switch {
		case err == nil:
			pause, heard = minHubPause, time.Now()
			h.hear(page)
			if q.Wait > 0 { // a busy lock must not cost a request for each event
				h.pause(settleTime - time.Since(sent))
			}
		case ctx.Err() != nil: // with further names, or not at all
			h.pause(settleTime - time.Since(sent))
			late = time.Since(heard) >= maxUnheard
		default:
			h.pause(h.failed(err, &pause))
		}
	}
}

// ask sends one request, which a dead connection fails.
func (h *hub) ask(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
	ctx, cancel := context.WithTimeout(ctx, q.Wait+patience)
	defer cancel()
	return h.events(ctx, q)
}

// next returns the next query, or ok false if nothing is watched any more. Its context ends when there is another one.
// If no query was answered for so long that it is late, this one does not wait.
// The watches that no query has had get their first hint: the renewal finds what has happened before the cursor.
func (h *hub) next(late bool) (ctx context.Context, q paddock.EventQuery, ok bool) {
	h.mu.Lock()
	h.settled = slices.DeleteFunc(h.settled, func(w *endWatch) bool { return w.left })
	if len(h.settled) == 0 {
		h.running, h.wake, h.cursor = false, nil, ""
		h.mu.Unlock()
		return nil, q, false
	}
	ctx, h.wake = context.WithCancel(context.Background())
	if q = h.query(); late {
		q.Wait = 0
	}
	h.waits = q.Wait > 0
	var joined []*endWatch
	if h.cursor != "" {
		for _, w := range h.settled {
			if !w.hinted {
				w.hinted = true
				joined = append(joined, w)
			}
		}
	}
	h.mu.Unlock()
	for _, w := range joined {
		w.hint()
	}
	return ctx, q, true
}

// query returns the query for all that is watched: without a cursor one that gets a cursor at once. The caller holds mu.
func (h *hub) query() paddock.EventQuery {
	q := paddock.EventQuery{Kinds: []lock.Kind{lock.Released, lock.Expired, lock.Revoked}, Cursor: h.cursor, Wait: hubWait}
	if h.cursor == "" {
		q.Cursor, q.Wait = paddock.CursorNow, 0
	}
	seen := map[string]bool{}
	for _, w := range h.settled {
		for _, l := range w.leases {
			if !seen[l.Name] && len(q.Names) < paddock.MaxEventNames {
				seen[l.Name] = true
				q.Names = append(q.Names, l.Name)
			}
		}
		if w.session != 0 && len(q.Sessions) < paddock.MaxEventSessions && !slices.Contains(q.Sessions, w.session) {
			q.Sessions = append(q.Sessions, w.session)
		}
	}
	return q
}

// hear gives a hint to those whom the page concerns.
func (h *hub) hear(page paddock.Page[lock.Event]) {
	type key struct {
		name  string
		slot  int
		token lock.Token
	}
	ended, all := map[key]bool{}, page.Gap || len(page.Unreadable) > 0
	for _, e := range page.Items {
		ended[key{e.Name, e.Slot, e.Token}] = true
	}
	h.mu.Lock()
	h.cursor = page.Next
	var concerned []*endWatch
	for _, w := range h.settled {
		if !w.left && (all || slices.Contains(page.EndedSessions, w.session) ||
			slices.ContainsFunc(w.leases, func(l lock.Lease) bool { return ended[key{l.Name, l.Slot, l.Token}] })) {
			concerned = append(concerned, w)
		}
	}
	h.mu.Unlock()
	for _, w := range concerned {
		w.hint()
	}
}

// failed returns the pause after a failed request, and doubles the next one. The cursor is kept, unless the service
// refuses it.
func (h *hub) failed(err error, pause *time.Duration) time.Duration {
	now := *pause/2 + rand.N(*pause/2+1)
	*pause = min(2*(*pause), maxHubPause)
	if e := (*lock.Error)(nil); errors.As(err, &e) {
		switch e.Code {
		case lock.ErrRoleMissing, lock.ErrNameNotAllowed, lock.ErrNotFound, noRoute:
			return noEventsPause
		case lock.ErrInvalid:
			h.forget()
		}
	}
	return now
}

// noRoute is the code of a service without the route.
const noRoute lock.Code = "no_route"

// forget drops the cursor, so that all get a hint when there is another one.
func (h *hub) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cursor = ""
	for _, w := range h.settled {
		w.hinted = false
	}
}

// pause returns after that time, or when nothing is watched any more.
func (h *hub) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	h.mu.Lock()
	var ctx context.Context
	ctx, h.wake = context.WithCancel(context.Background())
	if h.waits = false; h.live == 0 {
		h.wake()
	}
	h.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
