package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

const (
	streamPage    = 200      // events that a stream requests at once
	maxStreamText = 64 << 10 // bytes of them that a stream holds until its client has read them; at least one event

	keepAliveInterval = 15 * time.Second // between two comments of an idle stream
	maxStreamAttempts = 3                // calls to an unavailable Service before the stream ends
	streamRetryDelay  = time.Second      // between two of these
)

// StreamEvents sends events until the client disconnects, the Service fails or the Server stops.
func (a *api) StreamEvents(w http.ResponseWriter, r *http.Request, params wire.StreamEventsParams) {
	key, _ := access.KeyFrom(r.Context())
	if err := a.streams.acquire(key.ID); err != nil {
		a.refuse(w, r, err)
		return
	}
	defer a.streams.release(key.ID)
	query, err := params.Domain()
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	query.Limit = streamPage
	first, err := a.locks.Events(r.Context(), query)
	if err != nil {
		a.refuse(w, r, ofLastEventID(err, params))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would buffer the events
	if r.Method == http.MethodHead {
		return
	}
	s := stream{Server: a.Server, w: w, r: r, query: query, encoder: sseEncoder{events: a.events}}
	s.run(first)
}

// ofLastEventID makes an error about the cursor one about Last-Event-ID if the cursor came from that header.
func ofLastEventID(err error, params wire.StreamEventsParams) error {
	e := (*lock.Error)(nil)
	if wire.ValueOf(params.LastEventID) == "" || !errors.As(err, &e) || e.Field != "cursor" {
		return err
	}
	return lock.Invalid("Last-Event-ID", "is not an id of a stream; send the last id unchanged, or omit it to start now")
}

// A stream is one open event stream.
type stream struct {
	*Server
	w       http.ResponseWriter
	r       *http.Request
	query   lock.EventQuery // of the next page
	encoder sseEncoder
}

// run sends pages until reading or writing one fails. A client that is still there reconnects.
func (s *stream) run(page lock.Page[lock.Event]) {
	ctx, cancel := context.WithCancel(access.Continued(clientContext(s.r)))
	defer cancel()
	defer context.AfterFunc(s.stopped, cancel)()
	for {
		texts, next := s.encoder.encodePage(page, s.query.Cursor)
		page = lock.Page[lock.Event]{} // while a slow client reads, only the texts stay in memory
		err := s.send(texts...)
		if err != nil {
			s.log.DebugContext(ctx, "event stream cut off", "request_id", requestID(s.r), "error", err)
			return
		}
		s.query.Cursor = next
		if page, err = s.next(ctx); err != nil {
			s.end(ctx, err)
			return
		}
	}
}

// next returns the next page, which is empty when a keep-alive is due. It retries while the Service is unavailable.
func (s *stream) next(ctx context.Context) (page lock.Page[lock.Event], err error) {
	for try := 1; ; try++ {
		page, err = s.poll(ctx)
		transient := errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrTooManyWaiters)
		if err == nil || try == maxStreamAttempts || !transient {
			return page, err
		}
		select {
		case <-time.After(streamRetryDelay):
		case <-ctx.Done():
			return page, err
		}
	}
}

// poll asks the Service for a page, and waits for new events once the client has all earlier ones.
func (s *stream) poll(ctx context.Context) (lock.Page[lock.Event], error) {
	if s.query.Wait = 0; s.encoder.synced {
		s.query.Wait = keepAliveInterval
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout+s.query.Wait)
	defer cancel()
	return s.locks.Events(ctx, s.query)
}

// send writes the texts without copying them, and fails if the client does not read them in time. Afterwards it
// removes the deadline: over HTTP/2 one that passes ends the stream even while nothing is written.
func (s *stream) send(texts ...[]byte) error {
	s.setWriteDeadline(s.w, s.r, writeTimeout)
	for _, text := range texts {
		if _, err := s.w.Write(text); err != nil {
			return err
		}
	}
	control := http.NewResponseController(s.w)
	if err := control.Flush(); err != nil {
		return err
	}
	if err := control.SetWriteDeadline(time.Time{}); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// end writes why the stream ends, as a comment for people who debug it.
func (s *stream) end(ctx context.Context, err error) {
	why := ": this replica is shutting down; reconnect\n\n"
	if s.stopped.Err() == nil {
		if ctx.Err() != nil {
			return // the client has disconnected
		}
		e := refusalOf(err)
		s.logRefusal(s.r, e, err)
		why = ": this replica cannot continue the stream; reconnect\n\n"
		if refusals[e.Code].status == http.StatusUnauthorized {
			why = ": " + string(e.Code) + "; reconnect with a valid key\n\n"
		}
	}
	if err := s.send([]byte(why)); err != nil {
		s.log.DebugContext(ctx, "cannot write the end of an event stream", "request_id", requestID(s.r), "error", err)
	}
}

// An sseEncoder writes pages of events as text/event-stream.
type sseEncoder struct {
	events *eventCache
	synced bool // the client has all events since the start, or since the last gap
}

// A cursorData is the data of the events sync and gap.
type cursorData struct {
	Cursor string `json:"cursor"`
}

// encodePage returns the page that was requested with this cursor, as texts to write in order, and the next cursor. It
// returns at least one text: for an empty page, a keep-alive. The texts of events are shared with other streams.
// Events beyond maxStreamText bytes are left for the next request.
//
// Each id that the client sees is a cursor after everything sent so far. The id of a gap is the cursor before the gap.
func (t *sseEncoder) encodePage(p lock.Page[lock.Event], cursor string) (texts [][]byte, next string) {
	texts = make([][]byte, 0, len(p.Items)+2) // a gap first, a sync last
	if p.Gap {
		texts = append(texts, encodeSSE(cursor, "gap", cursorData{cursor}))
		t.synced = false
	}
	size := 0
	for i, e := range p.Items {
		text := t.events.text(e)
		if size += len(text); size > maxStreamText && i > 0 {
			return texts, eventID(p.Items[i-1])
		}
		texts = append(texts, text)
	}
	if !t.synced && len(p.Items) < streamPage {
		texts = append(texts, encodeSSE(p.Next, "sync", cursorData{p.Next}))
		t.synced = true
	}
	if len(texts) == 0 {
		texts = append(texts, keepAliveComment(p.Next != cursor, p.Next))
	}
	return texts, p.Next
}

// keepAliveComment returns a comment, preceded by the cursor if it has moved. Clients keep an id without data, but see
// no event.
func keepAliveComment(moved bool, cursor string) []byte {
	if moved {
		return []byte("id: " + cursor + "\n: still here\n\n")
	}
	return []byte(": still here\n\n")
}

func eventID(e lock.Event) string { return strconv.FormatInt(e.ID, 10) }

// sseEvent returns e as text/event-stream.
func sseEvent(e lock.Event) []byte { return encodeSSE(eventID(e), e.Kind.String(), wire.EventOf(e)) }

func encodeSSE(id, name string, data any) []byte {
	return slices.Concat([]byte("id: "+id+"\nevent: "+name+"\ndata: "), encoded(data), []byte("\n"))
}

// cachedEvents bounds an eventCache. The store's tail holds as many, so streams that are not far behind hit the cache.
const cachedEvents = 4096

// An eventCache holds the latest events as text/event-stream, so that an event is encoded once for all streams. The
// slot of an event is its id modulo cachedEvents. It is safe for concurrent use.
type eventCache struct {
	encode func(lock.Event) []byte
	slots  [cachedEvents]eventCacheSlot
}

type eventCacheSlot struct {
	mu   sync.Mutex
	last *cachedEvent // nil: empty
}

type cachedEvent struct {
	event lock.Event
	text  []byte
}

// text returns the encoded event, which must not be changed.
func (c *eventCache) text(e lock.Event) []byte {
	slot := &c.slots[uint64(e.ID)%cachedEvents]
	slot.mu.Lock()
	defer slot.mu.Unlock()
	// After a database restore, another event may have the same id.
	if slot.last == nil || slot.last.event != e {
		slot.last = &cachedEvent{e, c.encode(e)}
	}
	return slot.last.text
}

// A streamLimiter bounds the streams open at once, in total and per API key.
type streamLimiter struct {
	limit, limitPerKey int

	mu    sync.Mutex
	open  int
	byKey map[string]int // by key id
}

func newStreamLimiter(limit, limitPerKey int) *streamLimiter {
	return &streamLimiter{limit: limit, limitPerKey: limitPerKey, byKey: map[string]int{}}
}

// acquire counts a stream of the key, or refuses it. The id is empty without keys. Every success needs a release.
func (l *streamLimiter) acquire(key string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.limit {
		return &lock.Error{Code: lock.ErrTooManyWaiters,
			Detail: "The limit on open event streams is reached. Reconnect later, or poll /v1/events with wait_ms."}
	}
	if key != "" && l.byKey[key] >= l.limitPerKey {
		return &lock.Error{Code: lock.ErrTooManyWaiters,
			Detail: "The limit on open event streams with one API key is reached. Close some, or reconnect later."}
	}
	l.open++
	l.byKey[key]++
	return nil
}

func (l *streamLimiter) release(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.byKey[key]--; l.byKey[key] == 0 {
		delete(l.byKey, key)
	}
}
