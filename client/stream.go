package client

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

const contentStream = "text/event-stream"

// maxStreamLine is the greatest length of a line of a stream, in bytes. An event is one line.
const maxStreamLine = 1 << 20

// maxStreamPause is how long a stream may be silent before it counts as broken, if there is another address. The service
// sends a comment every 15 seconds.
const maxStreamPause = 20 * time.Second

// A Stream is a connection on which the service sends events as they happen. It ends
// with its context, when the service stops, and when the connection breaks. If the
// client has several addresses, the stream then goes on at the next one, after its
// cursor. To go on after the end without a loss and without a repetition, open another
// one with the Cursor of this one, at this service or another replica of it. A Stream is
// not safe for concurrent use.
type Stream struct {
	client *Client
	query  paddock.EventQuery
	ctx    context.Context
	cancel context.CancelFunc
	cursor string

	mu sync.Mutex // held while streamConn is replaced, for Close
	streamConn
}

// A streamConn is the connection of a Stream to one address.
type streamConn struct {
	res    *http.Response
	lines  *bufio.Scanner
	opened time.Time
	round  *round      // in which the address was found
	watch  *time.Timer // breaks a silent connection while something waits for it; nil for the only address
	hangUp context.CancelCauseFunc
}

// Stream opens a stream of the events of q. It begins after q.Cursor; after all that
// has happened if there is none. Limit and Wait are not used. It returns once the
// service has accepted the request. A Timeout of the HTTP client ends a stream, too.
// Close the stream in the end.
func (c *Client) Stream(ctx context.Context, q paddock.EventQuery) (*Stream, error) {
	if q.FollowsSeveral() {
		return nil, lock.Invalid("lock", "is one lock in a stream; follow several locks, or sessions, with Events")
	}
	s := &Stream{client: c, query: paddock.EventQuery{Names: q.Names, Prefix: q.Prefix}, cursor: q.Cursor}
	s.ctx, s.cancel = context.WithCancel(ctx)
	if err := s.open(c.addresses.round()); err != nil {
		s.cancel()
		return nil, err
	}
	return s, nil
}

// open connects to the first address of the round that answers.
func (s *Stream) open(r *round) error {
	for {
		status, err := s.connect(r)
		switch {
		case !moves(status, err) || s.ctx.Err() != nil || !r.several():
			return err
		case !r.fail(err):
			return r.err()
		}
	}
}

// connect opens a connection to the round's address. The status is zero if no complete answer came.
func (s *Stream) connect(r *round) (status int, err error) {
	req := request{path: "/v1/events/stream" + wire.EventQueryString(s.query)}
	if s.cursor != paddock.CursorNow {
		req.header = [2]string{"Last-Event-ID", s.cursor}
	}
	ctx, hangUp := context.WithCancelCause(s.ctx)
	conn := streamConn{hangUp: hangUp, round: r, opened: time.Now()}
	if r.several() {
		bound := r.share(patience)
		conn.watch = time.AfterFunc(bound, func() { hangUp(silentError{bound}) })
	}
	traced, trace := traced(ctx)
	res, err := s.client.send(traced, r.address(), req, nil)
	if err != nil {
		return 0, conn.failed(lost(false, trace, silent(ctx, err)))
	}
	conn.res = res
	if isPaddock(res) && res.StatusCode == http.StatusOK && mediaType(res) == contentStream {
		conn.lines = bufio.NewScanner(res.Body)
		conn.lines.Buffer(nil, maxStreamLine)
		if conn.watch != nil {
			conn.watch.Stop()
		}
		s.mu.Lock()
		s.streamConn = conn
		s.mu.Unlock()
		return res.StatusCode, nil
	}
	text, err := read(res, maxResponse)
	switch {
	case err != nil:
		return 0, conn.failed(lost(false, trace, silent(ctx, err)))
	case !isPaddock(res), res.StatusCode == http.StatusOK:
		return res.StatusCode, conn.failed(notPaddock(false, res, text, errors.New("the answer is not a stream of events")))
	}
	return res.StatusCode, conn.failed(refusal(false, res, text))
}

// failed frees a connection without a stream. It returns err.
func (c *streamConn) failed(err error) error {
	if c.watch != nil {
		c.watch.Stop()
	}
	c.hangUp(nil)
	return err
}

// scan reads the next line. A line shows that the connection lives.
func (c *streamConn) scan() bool {
	if c.watch != nil {
		c.watch.Reset(maxStreamPause)
		defer c.watch.Stop()
	}
	return c.lines.Scan()
}

// canMove reports whether the stream can go on at another address after its connection has broken. A stream without a
// cursor would miss events, and one that breaks at once would be opened again and again.
func (s *Stream) canMove() bool {
	return s.round.several() && s.ctx.Err() == nil && s.cursor != "" && s.cursor != paddock.CursorNow &&
		time.Since(s.opened) >= minWait
}

// move goes on at the next address that answers.
func (s *Stream) move() error {
	s.round.failed(s.round.index())
	if err := s.failed(nil); err != nil {
		return err
	}
	return s.open(s.client.addresses.round())
}

// Next returns what the service sends next: a page with one event, or with none. On a page without
// an event Gap reports that events before the next one are missing: they were pruned, were lost in
// a fail-over or a restore, or were more than the service had time to send, see paddock.Page;
// Unreadable is a row that cannot be read, whose events are left out; otherwise Next has moved on,
// past events of other locks. Comments are not returned. An error ends the stream; it is a
// *lock.Error with the code ErrUnavailable.
func (s *Stream) Next() (paddock.Page[lock.Event], error) {
	for {
		name, data, err := s.message()
		if err == nil {
			return s.page(name, data)
		}
		if s.canMove() {
			moved := s.move()
			if moved == nil {
				continue
			}
			err = errors.Join(err, moved)
		}
		return paddock.Page[lock.Event]{}, &lock.Error{Code: lock.ErrUnavailable, Cause: err,
			Detail: "The stream of events has ended. Open another one with the cursor of this one."}
	}
}

// message returns the next message on the connection. The cursor moves with a whole message only.
func (s *Stream) message() (name, data string, err error) {
	cursor := s.cursor
	for s.scan() {
		line := s.lines.Text()
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && (data != "" || cursor != s.cursor):
			s.cursor = cursor
			return name, data, nil
		case line == "":
			name = ""
		case field == "id":
			cursor = value
		case field == "event":
			name = value
		case field == "data":
			data += value
		}
	}
	return "", "", cmp.Or(s.lines.Err(), errors.New("the service has ended the stream"))
}

// page returns the page of a message.
func (s *Stream) page(name, data string) (paddock.Page[lock.Event], error) {
	page := paddock.Page[lock.Event]{Next: s.cursor, Gap: name == "gap"}
	if data == "" || name == "gap" || name == "sync" {
		return page, nil
	}
	var e api.Event
	var bad api.Unreadable
	into := any(&e)
	if name == "unreadable" {
		into = &bad
	}
	if err := json.Unmarshal([]byte(data), into); err != nil {
		return page, &lock.Error{Code: lock.ErrUnavailable, Cause: fmt.Errorf("event %q: %w", name, err),
			Detail: "The stream of events holds one that cannot be read. Open another one, or read pages of events."}
	}
	if name == "unreadable" {
		page.Unreadable = []paddock.Unreadable{wire.ToUnreadable(bad)}
	} else {
		page.Items = []lock.Event{wire.ToEvent(e)}
	}
	return page, nil
}

// Cursor returns the cursor after all that Next has returned. It is that of the query
// until the service has sent another one.
func (s *Stream) Cursor() string { return s.cursor }

// Close ends the stream. It may be called while Next runs, which then returns an error.
func (s *Stream) Close() error {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed(s.res.Body.Close())
}
