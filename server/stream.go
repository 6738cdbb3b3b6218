package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

const (
	streamPageSize = 200       // events per page
	maxTurnText    = 256 << 10 // bytes of events that a stream writes in one turn, unless one block has more

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
	s.clients.streams.Add(1)
	defer s.clients.streams.Add(-1)
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
	live := stream{Server: s, w: w, r: r, query: query}
	live.at, _ = paddock.ParseMark(query.Cursor) // zero for the first event, and for now, after which nothing is missing
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
	w      http.ResponseWriter
	r      *http.Request
	query  paddock.EventQuery
	at     paddock.Mark // the client has all events before it
	synced bool         // it has all events since the start, or since the last gap
}

// A writeError is why the client cannot be reached.
type writeError struct{ error }

// run sends events until the Service or the connection fails.
func (s *stream) run(first paddock.Page[lock.Event]) {
	ctx, cancel := context.WithCancel(access.Continued(clientContext(s.r)))
	defer cancel()
	defer context.AfterFunc(s.stopped, cancel)()
	live, err := s.sendPage(first)
	for err == nil {
		wait := time.Duration(0)
		if live { // as far as is known, so after the feed it waits for news by itself
			err = s.follow(ctx)
			wait = keepAliveInterval
		}
		if err == nil {
			live, err = s.sendNext(ctx, wait)
		}
	}
	if errors.As(err, new(writeError)) {
		s.log.DebugContext(ctx, "event stream cut off", "request_id", requestID(s.r), "error", err)
		return
	}
	s.end(ctx, err)
}

// sendPage sends the first events of a page. live reports whether there are no further events at present.
func (s *stream) sendPage(p paddock.Page[lock.Event]) (live bool, err error) {
	b := newBlock(p, s.at)
	last := len(p.Items) < streamPageSize && (!p.Gap || len(p.Items) == 0) // after a gap, a page may be short
	if _, err := b.add(p, last); err != nil {
		return false, err
	}
	return b.live, s.sendBlocks([]block{*b}, b.upTo)
}

// sendNext reads and sends the next page, for which it waits. If the client was once up to date, and streams have no time to read for it all
// that it has missed since, it is told of a gap.
func (s *stream) sendNext(ctx context.Context, wait time.Duration) (live bool, err error) {
	if err := s.pace.turn(ctx); err != nil {
		return false, err
	}
	s.query.Cursor, s.query.Wait = s.at.String(), wait
	page, err := s.nextPage(ctx, s.query)
	if err != nil {
		return false, err
	}
	s.pace.took(len(page.Items) * eventKBytes)
	live, err = s.sendPage(page)
	if err != nil || live || !s.synced || !s.pace.exhausted() {
		return live, err
	}
	s.query.Cursor, s.query.Wait = paddock.CursorNow, 0
	if page, err = s.nextPage(ctx, s.query); err != nil {
		return false, err
	}
	page.Gap = true
	return s.sendPage(page)
}

// follow sends what a feed has. It returns nil when the feed does not cover the events that the client needs.
func (s *stream) follow(ctx context.Context) error {
	f, at := s.feeds.enter(s.r, s.query, s.at)
	if f == nil {
		return nil
	}
	defer s.feeds.leave(f)
	for {
		for more := f.waitFor(at); more != nil; more = f.waitFor(at) {
			select {
			case <-more:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := s.pace.turn(ctx); err != nil {
			return err
		}
		blocks, next, err := f.take(at)
		if errors.Is(err, errLeftBehind) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.sendBlocks(blocks, next.mark); err != nil {
			return err
		}
		at = next
	}
}

// nextPage returns a page of events. If the Service is unavailable, it retries.
func (s *Server) nextPage(ctx context.Context, q paddock.EventQuery) (page paddock.Page[lock.Event], err error) {
	for try := 1; ; try++ {
		page, err = s.poll(ctx, q)
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

func (s *Server) poll(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout+q.Wait)
	defer cancel()
	return s.locks.Events(ctx, q)
}

// send writes and flushes the texts. It fails if the client does not read one of them within writeTimeout. It clears
// the deadline afterwards, because over HTTP/2 an expired deadline ends even an idle stream.
func (s *stream) send(texts ...[]byte) error {
	size := 0
	for _, text := range texts {
		s.setWriteDeadline(s.w, s.r, writeTimeout)
		if _, err := s.w.Write(text); err != nil {
			return writeError{err}
		}
		size += len(text)
	}
	s.pace.took(size >> 10)
	control := http.NewResponseController(s.w)
	if err := control.Flush(); err != nil {
		return writeError{err}
	}
	if err := control.SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return writeError{err}
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

// A cursorData is the data of a sync or gap event.
type cursorData struct {
	Cursor string `json:"cursor"`
}

// sendBlocks sends the blocks, after which the client has all events before the mark. If they are empty, it sends a
// keep-alive.
//
// The id of each text is the cursor to resume after it. The id of a gap, and of a row that cannot be read, is the
// cursor before the block, so a client may receive it again.
func (s *stream) sendBlocks(blocks []block, upTo paddock.Mark) error {
	var texts [][]byte
	for _, b := range blocks {
		cursor := b.after.String()
		if b.gap {
			texts = append(texts, encodeSSE(cursor, "gap", cursorData{cursor}))
			s.synced = false
		}
		for _, u := range b.unreadable {
			texts = append(texts, encodeSSE(cursor, "unreadable", wire.UnreadableOf(u)))
		}
		if len(b.text) > 0 {
			texts = append(texts, b.text)
		}
		cursor = b.upTo.String()
		switch {
		case !s.synced && b.live:
			texts = append(texts, encodeSSE(cursor, "sync", cursorData{cursor}))
			s.synced = true
		case len(b.text) == 0 && b.unreadable != nil:
			texts = append(texts, keepAliveComment(true, cursor))
		}
	}
	if len(texts) == 0 {
		texts = append(texts, keepAliveComment(upTo.String() != s.at.String(), upTo.String()))
	}
	s.at = upTo
	return s.send(texts...)
}

// keepAliveComment returns a comment, with the cursor as id if it has moved. Clients store an id without data, but
// dispatch no event.
func keepAliveComment(moved bool, cursor string) []byte {
	if moved {
		return []byte("id: " + cursor + "\n: still here\n\n")
	}
	return []byte(": still here\n\n")
}

// sseEvent returns e as text/event-stream. upTo is after it.
func sseEvent(e lock.Event, upTo paddock.Mark) []byte {
	return encodeSSE(upTo.String(), e.Kind.String(), wire.EventOf(e))
}

func encodeSSE(id, name string, data any) []byte {
	return slices.Concat([]byte("id: "+id+"\nevent: "+name+"\ndata: "), encoded(data), []byte("\n"))
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
