package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

const (
	streamPageSize = 200      // events per page
	maxStreamText  = 64 << 10 // bytes of encoded events that a stream writes at once; one larger event is allowed

	keepAliveInterval = 15 * time.Second // between two comments of an idle stream
	maxStreamAttempts = 3                // calls to an unavailable Service before the stream ends
	streamRetryDelay  = time.Second      // between two of these calls
)

// streamEvents sends events until the client disconnects, the Service fails or the Server stops.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request) {
	key, _ := access.KeyFrom(r.Context())
	if err := s.streams.acquire(key.ID); err != nil {
		s.refuse(w, r, err)
		return
	}
	defer s.streams.release(key.ID)
	query, err := streamQueryIn(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	query.Limit = streamPageSize
	first, err := s.locks.Events(r.Context(), query)
	if err != nil {
		s.refuse(w, r, asLastEventIDError(err, r))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would buffer the events
	if r.Method == http.MethodHead {
		return
	}
	live := stream{Server: s, w: w, r: r, query: query, encoder: sseEncoder{events: s.events}}
	live.run(first)
}

// asLastEventIDError replaces an error about the cursor by one about Last-Event-ID if the cursor is from that header.
func asLastEventIDError(err error, r *http.Request) error {
	e := (*lock.Error)(nil)
	if r.Header.Get("Last-Event-ID") == "" || !errors.As(err, &e) || e.Field != "cursor" {
		return err
	}
	return lock.Invalid("Last-Event-ID", "is not an id of a stream; send the last id unchanged, or omit it to start now")
}

// A stream is one open event stream.
type stream struct {
	*Server
	w       http.ResponseWriter
	r       *http.Request
	query   paddock.EventQuery // of the next page
	encoder sseEncoder
}

// run sends pages until the Service or the connection fails.
func (s *stream) run(page paddock.Page[lock.Event]) {
	ctx, cancel := context.WithCancel(access.Continued(clientContext(s.r)))
	defer cancel()
	defer context.AfterFunc(s.stopped, cancel)()
	for {
		texts, next := s.encoder.encodePage(page, s.query.Cursor)
		page = paddock.Page[lock.Event]{} // while a slow client reads, only the texts stay in memory
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

// next returns the next page; it is empty when a keep-alive is due. If the Service is unavailable, next retries.
func (s *stream) next(ctx context.Context) (page paddock.Page[lock.Event], err error) {
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

// poll requests a page from the Service. It waits for new events if the client has all earlier ones.
func (s *stream) poll(ctx context.Context) (paddock.Page[lock.Event], error) {
	if s.query.Wait = 0; s.encoder.synced {
		s.query.Wait = keepAliveInterval
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout+s.query.Wait)
	defer cancel()
	return s.locks.Events(ctx, s.query)
}

// send writes and flushes the texts. It fails if the client does not read them within writeTimeout. It clears the
// deadline afterwards, because over HTTP/2 an expired deadline ends even an idle stream.
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

// end writes a comment with the reason why the stream ends, for debugging.
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

// A cursorData is the data of a sync or gap event.
type cursorData struct {
	Cursor string `json:"cursor"`
}

// encodePage returns texts to write in order, and the cursor for the next page. The page p was requested with cursor.
// A page without events becomes a keep-alive. Events beyond maxStreamText bytes are left for the next page. Other
// streams share the texts of events.
//
// The id of each text is the cursor to resume after it. The id of a gap, and of a row that cannot be read, is the
// cursor before the page, so a client may receive it again.
func (t *sseEncoder) encodePage(p paddock.Page[lock.Event], cursor string) (texts [][]byte, next string) {
	texts = make([][]byte, 0, len(p.Items)+len(p.Unreadable)+2) // a gap first, a sync last
	if p.Gap {
		texts = append(texts, encodeSSE(cursor, "gap", cursorData{cursor}))
		t.synced = false
	}
	for _, u := range p.Unreadable {
		texts = append(texts, encodeSSE(cursor, "unreadable", wire.UnreadableOf(u)))
	}
	size := 0
	for i, e := range p.Items {
		text := t.events.text(e)
		if size += len(text); size > maxStreamText && i > 0 {
			return texts, eventID(p.Items[i-1])
		}
		texts = append(texts, text)
	}
	switch {
	case !t.synced && len(p.Items) < streamPageSize:
		texts = append(texts, encodeSSE(p.Next, "sync", cursorData{p.Next}))
		t.synced = true
	case len(p.Items) == 0:
		texts = append(texts, keepAliveComment(p.Next != cursor, p.Next))
	}
	return texts, p.Next
}

// keepAliveComment returns a comment, with the cursor as id if it has moved. Clients store an id without data, but
// dispatch no event.
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

// eventCacheSize is the number of slots of an eventCache. It equals the size of the store's tail.
const eventCacheSize = 4096

// An eventCache holds the latest events as text/event-stream, so that an event is encoded once for all streams. The
// slot of an event is its id modulo eventCacheSize. It is safe for concurrent use.
type eventCache struct {
	slots [eventCacheSize]eventCacheSlot
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
	slot := &c.slots[uint64(e.ID)%eventCacheSize]
	slot.mu.Lock()
	defer slot.mu.Unlock()
	// After a database restore, another event may have the same id.
	if slot.last == nil || slot.last.event != e {
		slot.last = &cachedEvent{e, sseEvent(e)}
	}
	return slot.last.text
}

// A streamLimiter limits the open streams, in total and per API key.
type streamLimiter struct {
	limit, limitPerKey int

	mu    sync.Mutex
	open  int
	byKey map[string]int // by key id
}

func newStreamLimiter(limit, limitPerKey int) *streamLimiter {
	return &streamLimiter{limit: limit, limitPerKey: limitPerKey, byKey: map[string]int{}}
}

// acquire counts one more stream of the key, or fails at a limit. Every success needs a release. key is the key's id,
// empty without authentication; then only the total is limited.
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
